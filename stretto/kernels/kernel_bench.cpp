#include "stretto/kernels/kernel_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "stretto/base/bf16.h"
#include "stretto/base/clock.h"
#include "stretto/ops/all.h"
#include "stretto/ops/attention_grad.h"
#include "stretto/ops/copy.h"

namespace stretto {
namespace {

constexpr int bench_runs = 5;
constexpr double long_enough = 0.05;  // seconds after which a kernel has been seen often enough

// One node with memory of its own.
class OneKernel {
 public:
  OneKernel(const Graph& g, NodeId node, Device& device) : call_{.graph = g, .node = g.node(node)}, device_(device) {
    const auto buffer = [&](const Type& t, float value) {
      const std::size_t n = std::size_t(g.elements(t)), bytes = n * size_of(t.dtype);
      std::byte* const at = device_.allocate(bytes + 64);
      const std::vector<float> wide(n, value);
      const std::vector<BF16> half(t.dtype == bf16 ? n : 0, BF16(value));
      device_.write(at, t.dtype == bf16 ? static_cast<const void*>(half.data()) : wide.data(), bytes);
      return at;
    };
    for (Value v : call_.node.operands) {
      call_.in.push_back(contiguous_view(g, g.type(v)));
      in_.push_back(buffer(g.type(v), 0.5f));
    }
    for (const Type& t : call_.node.results) {
      call_.out.push_back(contiguous_view(g, t));
      out_.push_back(buffer(t, 0));
    }
    if (call_.node.op->scratch) scratch_ = device_.allocate(call_.node.op->scratch(call_.op()) + 64);
    kernel_ = device_.prepare(call_);
  }

  double best_seconds() {
    const EventId from = device_.event(), to = device_.event();
    double best = INFINITY;
    const double start = now();
    for (int i = 0; i < bench_runs || (best < 1e-3 && now() - start < long_enough); ++i) {
      device_.record(from, DeviceLane::compute);
      device_.launch(DeviceLane::compute, kernel_,
                     {.in = in_.data(), .out = out_.data(), .scratch = scratch_, .now = now_});
      device_.record(to, DeviceLane::compute);
      device_.finish();
      best = std::min(best, std::max(device_.seconds(to) - device_.seconds(from), 1e-9));
    }
    return best;
  }
  Cost cost() const { return call_.node.op->cost(call_.op()); }

 private:
  Call call_;
  Device& device_;
  Now now_;
  KernelId kernel_;
  std::vector<std::byte*> in_, out_;
  std::byte* scratch_ = nullptr;
};

class KernelMeasures {
 public:
  KernelMeasures(Device& device, double scale, DType dtype) : device_(device), scale_(scale), dtype_(dtype) {}

  void product(i64 m, i64 n, i64 k) {
    const Dim rows = dim("m", m), columns = dim("n", n), inner = dim("k", k);
    Examples e;
    e.dtype = dtype_;
    const Tensor y = contract(e.real({rows, inner}), e.real({inner, columns}), inner);
    add(fmt::format("product {} x {} x {}", rows.size, columns.size, inner.size), e, y);
  }
  void attention(i64 sequence, i64 head) {
    const Dim s = dim("s", sequence), t = dim("t", sequence), h{"h", 4}, d{"d", head};
    const auto one = [&](Examples& e) {
      const Tensor q = e.real({h, s, d}), k = e.real({h, t, d}), v = e.real({h, t, d});
      return stretto::attention(q, k, v, {.query = s, .key = t, .head = d});
    };
    Examples forward;
    forward.dtype = dtype_;
    const Tensor o = one(forward);
    add(fmt::format("attention of {}", s.size), forward, o);
    Examples backward;
    backward.dtype = dtype_;
    const Tensor p = one(backward), g = backward.real({h, s, d});
    const auto& in = backward.builder.graph.node(p.value.node).operands;
    const auto operand = [&](std::size_t i) { return Tensor{&backward.builder, in[i]}; };
    const AttentionAttrs attrs = backward.builder.graph.node(p.value.node).attrs.as<AttentionAttrs>();
    const Tensor dq = attention_grad(operand(0), operand(1), operand(2), p, backward.builder.result(p, 1), g, attrs);
    add(fmt::format("attention of {}, backward", s.size), backward, dq);
  }
  void passes(i64 elements) {
    const Dim n = dim("n", elements);
    const auto one = [&](const char* name, auto&& f) {
      Examples e;
      e.dtype = dtype_;
      add(fmt::format("{} of {}", name, n.size), e, f(e, n));
    };
    one("copy", [](Examples& e, const Dim& d) { return copy(e.real({d})); });
    one("add", [](Examples& e, const Dim& d) { return e.real({d}) + e.real({d}); });
    one("gelu", [](Examples& e, const Dim& d) { return gelu(e.real({d})); });
  }
  void launch() {
    Examples e;
    e.dtype = dtype_;
    const Dim n{"n", 16};
    const Tensor y = e.real({n}) + e.real({n});
    add("launch", e, y);
  }
  std::vector<BenchedKernel> all;

 private:
  Dim dim(const char* name, i64 size) const { return {name, std::max<i64>(16, std::llround(size * scale_))}; }
  void add(std::string name, const Examples& e, Tensor result) {
    OneKernel k(e.builder.graph, result.value.node, device_);
    all.push_back({std::move(name), k.cost(), k.best_seconds()});
  }
  Device& device_;
  double scale_;
  DType dtype_;
};

}  // namespace

std::vector<BenchedKernel> measure_kernels(Device& device, double scale, DType dtype) {
  KernelMeasures m(device, scale, dtype);
  for (const auto& [rows, columns, inner] : {std::array<i64, 3>{1024, 1024, 1024},
                                             {512, 2048, 512},
                                             {2048, 512, 512},
                                             {512, 512, 2048},
                                             {256, 256, 256},
                                             {64, 1024, 1024},
                                             {1024, 64, 1024},
                                             {1024, 1024, 64},
                                             {32, 512, 512},
                                             {512, 32, 512},
                                             {512, 512, 32},
                                             {64, 64, 64}})
    m.product(rows, columns, inner);
  for (i64 sequence : {128, 512, 1024}) m.attention(sequence, 64);
  for (i64 elements : {1 << 16, 1 << 20, 1 << 23}) m.passes(elements);
  m.launch();
  return std::move(m.all);
}

}  // namespace stretto
