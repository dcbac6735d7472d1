#include "stretto/kernels/kernel_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "stretto/kernels/cpu/products.h"
#include "stretto/kernels/kernel.h"
#include "stretto/ops/all.h"
#include "stretto/ops/attention_grad.h"
#include "stretto/ops/copy.h"

namespace stretto {
namespace {

constexpr int bench_runs = 5;
constexpr double long_enough = 0.05;  // seconds after which a kernel has been seen often enough

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// One node with memory of its own.
class OneKernel {
 public:
  OneKernel(const Graph& g, NodeId node) : call_{.graph = g, .node = g.node(node)} {
    const auto buffer = [&](const Type& t, float value) {
      memory_.emplace_back(g.elements(t) + 64, value);
      return reinterpret_cast<std::byte*>(memory_.back().data());
    };
    for (Value v : call_.node.operands) {
      call_.in.push_back(contiguous_view(g, g.type(v)));
      in_.push_back(buffer(g.type(v), 0.5f));
    }
    for (const Type& t : call_.node.results) {
      call_.out.push_back(contiguous_view(g, t));
      out_.push_back(buffer(t, 0));
    }
    if (call_.node.op->scratch) scratch_.resize(call_.node.op->scratch(call_.op()) + 4096);
    runner_ = choose_kernel(call_).prepare(call_);
  }

  double best_seconds() const {
    double best = INFINITY;
    const double start = now_seconds();
    for (int i = 0; i < bench_runs || (best < 1e-3 && now_seconds() - start < long_enough); ++i) {
      const double from = now_seconds();
      runner_({.in = in_.data(), .out = out_.data(), .scratch = aligned(), .now = now_});
      best = std::min(best, now_seconds() - from);
    }
    return best;
  }
  Cost cost() const { return call_.node.op->cost(call_.op()); }

 private:
  std::byte* aligned() const {
    const auto at = reinterpret_cast<std::uintptr_t>(scratch_.data());
    return const_cast<std::byte*>(scratch_.data()) + (64 - at % 64) % 64;
  }
  Call call_;
  Now now_;
  std::vector<std::vector<float>> memory_;
  std::vector<std::byte*> in_, out_;
  std::vector<std::byte> scratch_;
  Runner runner_;
};

class KernelMeasures {
 public:
  explicit KernelMeasures(double scale) : scale_(scale) {}

  void product(i64 m, i64 n, i64 k) {
    const Dim rows = dim("m", m), columns = dim("n", n), inner = dim("k", k);
    Examples e;
    e.dtype = f32;
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
    forward.dtype = f32;
    const Tensor o = one(forward);
    add(fmt::format("attention of {}", s.size), forward, o);
    Examples backward;
    backward.dtype = f32;
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
      e.dtype = f32;
      add(fmt::format("{} of {}", name, n.size), e, f(e, n));
    };
    one("copy", [](Examples& e, const Dim& d) { return copy(e.real({d})); });
    one("add", [](Examples& e, const Dim& d) { return e.real({d}) + e.real({d}); });
    one("gelu", [](Examples& e, const Dim& d) { return gelu(e.real({d})); });
  }
  void launch() {
    Examples e;
    e.dtype = f32;
    const Dim n{"n", 16};
    const Tensor y = e.real({n}) + e.real({n});
    add("launch", e, y);
  }
  std::vector<BenchedKernel> all;

 private:
  Dim dim(const char* name, i64 size) const { return {name, std::max<i64>(16, std::llround(size * scale_))}; }
  void add(std::string name, const Examples& e, Tensor result) {
    const OneKernel k(e.builder.graph, result.value.node);
    all.push_back({std::move(name), k.cost(), k.best_seconds()});
  }
  double scale_;
};

}  // namespace

std::vector<BenchedKernel> measure_kernels(double scale) {
  reserve_products(1);
  KernelMeasures m(scale);
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
