#include "stretto/runtime/check_calls.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "stretto/base/bf16.h"
#include "stretto/base/philox.h"

namespace stretto {
namespace {

double tolerance_of(DType t) { return t == f64 ? 1e-9 : t == bf16 ? 0.05 : 1e-3; }

std::size_t span_bytes(const View& v) {
  i64 last = 0;
  for (std::size_t i = 0; i < v.sizes.size(); ++i) last += (v.sizes[i] - 1) * v.strides[i];
  return v.elements() == 0 ? 0 : std::size_t(last + 1) * size_of(v.dtype);
}

double number_at(const std::byte* p, DType t) {
  const auto as = [&]<class T>(T x) { return std::memcpy(&x, p, sizeof x), double(x); };
  return t == f64 ? as(double{}) : t == bf16 ? as(BF16{}) : t == i32 ? as(std::int32_t{}) : as(float{});
}
void put_number(std::byte* p, DType t, double v) {
  const auto as = [&](auto x) { std::memcpy(p, &x, sizeof x); };
  t == f64 ? as(v) : t == bf16 ? as(BF16(float(v))) : t == i32 ? as(std::int32_t(v)) : as(float(v));
}

std::size_t aligned(std::size_t bytes) { return (bytes / 256 + 1) * 256; }
std::size_t scratch_bytes(const Call& call) {
  return call.node.op->scratch ? aligned(call.node.op->scratch(call.op())) : 0;
}
std::size_t bytes_of(const Call& call) {
  std::size_t all = scratch_bytes(call);
  for (const std::vector<View>* views : {&call.in, &call.out})
    for (const View& v : *views) all += aligned(span_bytes(v));
  return all;
}

// One call on a device, in memory that one after the other uses.
class OneCall {
 public:
  OneCall(const Call& call, Device& device, std::byte* memory)
      : call_(call), device_(device), kernel_(device.prepare(call)) {
    const auto take = [&](std::size_t bytes) { return std::exchange(memory, memory + aligned(bytes)); };
    for (const View& v : call.in) in_.push_back(take(span_bytes(v)));
    for (const View& v : call.out) out_.push_back(take(span_bytes(v)));
    scratch_ = memory;
  }
  using Bytes = std::vector<std::vector<std::byte>>;
  Bytes results(const Bytes& operands) {
    for (std::size_t i = 0; i < in_.size(); ++i) device_.write(in_[i], operands[i].data(), operands[i].size());
    Bytes all;
    for (const View& v : call_.out) all.emplace_back(span_bytes(v));
    for (std::size_t k = 0; k < out_.size(); ++k) device_.write(out_[k], all[k].data(), all[k].size());
    const Now now{.seed = 1, .step = 1, .key = 7};
    device_.launch(DeviceLane::compute, kernel_,
                   {.in = in_.data(), .out = out_.data(), .scratch = scratch_, .now = now});
    device_.finish();
    for (std::size_t k = 0; k < out_.size(); ++k) device_.read(all[k].data(), out_[k], all[k].size());
    return all;
  }

 private:
  const Call& call_;
  Device& device_;
  KernelId kernel_;
  std::vector<std::byte*> in_, out_;
  std::byte* scratch_ = nullptr;
};

class CallChecker {
 public:
  CallChecker(const Program& p, Device& device) : p_(p), device_(device), cpu_(cpu_device()) {}

  CallCheck run() {
    std::size_t most = 0;
    for_calls([&](const Call& call) { most = std::max(most, bytes_of(call)); });
    here_ = cpu_->allocate(most), there_ = device_.allocate(most);
    for_calls([&](const Call& call) { one(call); });
    out_.ops = int(ops_.size());
    return out_;
  }

 private:
  template <class F>
  void for_calls(F f) const {
    std::set<const Calls*> known;
    const Coordinates here = coordinates_of(p_.mesh, 0);
    for (const TaskId t : p_.calls.ids()) {
      const Calls& body = *p_.calls[t];
      if (!known.insert(&body).second) continue;
      for (const KernelCall& k : body.calls) {
        const Graph& g = body.graph;
        Call call{.graph = g, .node = g.node(k.node), .accumulate = k.accumulate};
        if (call.node.op->collective) continue;
        for (const Ref& r : k.in) call.in.push_back(on_rank(r.view, g, p_.mesh, here));
        for (const Ref& r : k.out) call.out.push_back(on_rank(r.view, g, p_.mesh, here));
        f(call);
      }
    }
  }

  void one(const Call& call) {
    const auto operands = numbers_for(call);
    if (!operands) return void(++out_.left_out);
    OneCall there(call, device_, there_), cpu(call, *cpu_, here_);
    const OneCall::Bytes first = there.results(*operands), again = there.results(*operands);
    if (first != again)
      throw Error("device", "{}: the same numbers gave two results", call.node.op->name)
          .hint("this is worth a report, with the version of the libraries")
          .as(Error::Kind::run);
    const OneCall::Bytes expected = cpu.results(*operands);
    for (std::size_t r = 0; r < expected.size(); ++r) compare(call, r, first[r], expected[r]);
    ops_.insert(call.node.op->name), ++out_.calls;
  }

  // None: a whole number that is no id.
  std::optional<OneCall::Bytes> numbers_for(const Call& call) {
    OneCall::Bytes all;
    std::optional<IdOperand> ids;
    if (call.node.op->ids) ids = call.node.op->ids(call.op());
    for (std::size_t i = 0; i < call.in.size(); ++i) {
      const DType t = call.in[i].dtype;
      const bool whole = t == i32, id = ids && ids->operand == int(i);
      if (whole && !id) return std::nullopt;
      std::vector<std::byte>& bytes = all.emplace_back(span_bytes(call.in[i]));
      const PhiloxKey key = philox_key(++seed_, "calls");
      for (std::size_t n = 0; n < bytes.size() / size_of(t); ++n) {
        const double u = uniform_at(key, n);
        put_number(&bytes[n * size_of(t)], t, whole ? std::floor(u * double(ids->limit)) : 0.25 + 0.5 * u);
      }
    }
    return all;
  }

  void compare(const Call& call, std::size_t r, const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
    const DType t = call.out[r].dtype;
    double most = 1e-30, worst = 0;
    for (std::size_t n = 0; n < a.size() / size_of(t); ++n) {
      const double x = number_at(&a[n * size_of(t)], t), y = number_at(&b[n * size_of(t)], t);
      if (std::isnan(x) && std::isnan(y)) continue;
      worst = x == y ? worst : std::isfinite(x - y) ? std::max(worst, std::abs(x - y)) : INFINITY;
      if (std::isfinite(y)) most = std::max(most, std::abs(y));
    }
    worst /= most;
    double allowed = tolerance_of(t);
    for (const View& v : call.in)
      if (v.dtype != i32) allowed = std::max(allowed, tolerance_of(v.dtype));
    if (worst > allowed)
      throw Error("device", "{}: result {} differs from the CPU's by {:.2e} of its largest element", call.node.op->name,
                  r, worst)
          .hint("this is worth a report, with the chip and the version of the libraries")
          .as(Error::Kind::run);
    if (t != bf16 && worst > out_.worst) out_.worst = worst, out_.worst_op = call.node.op->name;
  }

  const Program& p_;
  Device& device_;
  std::unique_ptr<Device> cpu_;
  std::byte *here_ = nullptr, *there_ = nullptr;
  CallCheck out_;
  std::set<std::string_view> ops_;
  u64 seed_ = 0;
};

}  // namespace

CallCheck check_calls(const Program& p, Device& device) { return CallChecker(p, device).run(); }

}  // namespace stretto
