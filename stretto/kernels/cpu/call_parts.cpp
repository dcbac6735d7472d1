#include "stretto/kernels/cpu/call_parts.h"

#include <algorithm>

#include "stretto/kernels/cpu/share.h"

namespace stretto {
namespace {

// What a thread does of most kernels in a second: enough to tell what is worth another thread.
constexpr double operations_per_second = 20e9, bytes_per_second = 10e9;

double seconds_of(const Call& call) {
  const Cost c = call.node.op->cost(call.op());
  return std::max(c.flops / operations_per_second, (c.read + c.written) / bytes_per_second);
}

// Dims along which results do not depend on each other, and of which every result has a part of its own. One that no
// operand has is where what they say puts things: its parts may have as much to do as all of it.
DimSet separate_dims(const Call& call) {
  const Op& op = *call.node.op;
  const bool elsewhere = op.relocates || op.layout_change || op.regroups != Regroups::none || op.collective_kind;
  if (elsewhere || !op.spread || call.out.empty()) return {};
  const Spread s = op.spread(call.op());
  DimSet dims;
  for (DimId d : call.out[0].dims) {
    const bool reduced = std::ranges::any_of(s.reduce, [&](const auto& r) { return r.first == d; });
    const bool everywhere = std::ranges::all_of(call.out, [&](const View& v) { return contains(v.dims, d); });
    const bool given = std::ranges::any_of(call.in, [&](const View& v) { return contains(v.dims, d); });
    const bool free = !reduced && !contains(s.serial, d) && !contains(s.extra, d);
    if (everywhere && given && free && call.out[0].size(d) > 1) dims.push_back(d);
  }
  return dims;
}

// So many that the largest part is as small as can be, and of such dims that whose parts lie the furthest apart.
std::optional<DimId> best_dim(const Call& call, int most) {
  const View& out = call.out[0];
  const auto largest = [&](DimId d) {  // part, as a share of the whole
    const i64 size = out.size(d), parts = std::min<i64>(most, size);
    return double((size + parts - 1) / parts) / double(size);
  };
  std::optional<DimId> best;
  constexpr double alike = 1.05;
  for (DimId d : separate_dims(call)) {
    const bool smaller = !best || largest(d) * alike < largest(*best);
    if (smaller || (largest(d) < largest(*best) * alike && out.stride(d) > out.stride(*best))) best = d;
  }
  return best;
}

// Neighbours write into lines of their own, nearly always.
i64 unit_of(i64 size, i64 stride, i64 parts) {
  constexpr i64 line = 16;
  return stride == 1 && size >= parts * line ? line : 1;
}

i64 narrow(View& v, DimId d, PartRange part) {
  if (!contains(v.dims, d)) return 0;
  const std::size_t i = static_cast<std::size_t>(position(v.dims, d));
  v.sizes[i] = part.end - part.first;
  v.offsets[i] += part.first;
  return part.first * v.strides[i] * i64(size_of(v.dtype));
}

}  // namespace

std::vector<CallPart> parts_of(const Call& call, int most) {
  const std::optional<DimId> d = most > 1 ? best_dim(call, most) : std::nullopt;
  if (!d) return {};
  const i64 size = call.out[0].size(*d), stride = call.out[0].stride(*d), count = std::min<i64>(most, size);
  std::vector<CallPart> parts;
  for (i64 i = 0; i < count; ++i) {
    CallPart part{.call = call, .in = {}, .out = {}};
    const PartRange here = range_of_part(size, unit_of(size, stride, count), i, count);
    for (View& v : part.call.in) part.in.push_back(narrow(v, *d, here));
    for (View& v : part.call.out) part.out.push_back(narrow(v, *d, here));
    parts.push_back(std::move(part));
  }
  return parts;
}

namespace {

// With the operands and results where a part's begin.
class PartRun {
 public:
  PartRun(const CallPart& p, Runner run) : in_(p.in), out_(p.out), run_(std::move(run)) {}
  void operator()(Args args) const {
    std::byte *in[most_pointers], *out[most_pointers];
    for (std::size_t i = 0; i < in_.size(); ++i) in[i] = args.in[i] + in_[i];
    for (std::size_t i = 0; i < out_.size(); ++i) out[i] = args.out[i] ? args.out[i] + out_[i] : nullptr;
    args.in = in, args.out = out;
    run_(args);
  }
  static constexpr std::size_t most_pointers = 64;

 private:
  std::vector<i64> in_, out_;
  Runner run_;
};

}  // namespace

Runner prepare_in_parts(const Kernel& kernel, const Call& call, const Team& team) {
  const int most = kernel.shares ? 1 : team.worth(seconds_of(call));
  const std::vector<CallPart> parts = parts_of(call, most);
  const bool takes = std::ranges::all_of(parts, [&](const CallPart& p) { return accepts(kernel, p.call); });
  if (parts.size() < 2 || !takes) return kernel.prepare(call);
  STRETTO_ASSERT(call.in.size() <= PartRun::most_pointers && call.out.size() <= PartRun::most_pointers);
  std::vector<PartRun> runs;
  for (const CallPart& p : parts) runs.emplace_back(p, kernel.prepare(p.call));
  return [runs = std::move(runs)](const Args& args) {
    share(args, static_cast<int>(runs.size()), [&](const Args& mine, int part) { runs[part](mine); });
  };
}

}  // namespace stretto
