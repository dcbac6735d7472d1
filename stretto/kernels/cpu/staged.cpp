#include "stretto/kernels/cpu/staged.h"

#include <algorithm>
#include <memory>
#include <numeric>

#include "stretto/base/bf16.h"
#include "stretto/ir/stage.h"
#include "stretto/kernels/cpu/nest.h"

namespace stretto {
namespace {

// An operand or a result and its copy.
struct Copy {
  std::size_t which = 0;
  i64 at = 0;  // bytes, in scratch
  Nest nest;   // arrays: bf16, f32
};

// The view of a copy: without gaps, its dims in the order in which they lie in memory.
View copy_of(const View& v) {
  View copy = v;
  copy.dtype = f32;
  std::vector<std::size_t> order(v.dims.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return v.strides[a] < v.strides[b]; });
  i64 stride = 1;
  for (const std::size_t d : order) {
    if (v.strides[d] == 0) continue;  // broadcast: the copy has one, too
    copy.strides[d] = stride;
    stride *= v.sizes[d];
  }
  return copy;
}

Nest copy_nest(const View& v, const View& copy) {
  std::vector<std::size_t> order(v.dims.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return v.strides[a] > v.strides[b]; });
  Nest nest;
  for (const std::size_t d : order)
    if (v.strides[d] != 0) add_loop(nest, v.sizes[d], {v.strides[d], copy.strides[d]});
  return nest;
}

// Of an operand or a result: bytes from slice to slice, along each dim that is cut.
using SliceSteps = std::vector<i64>;

i64 start_of_slice(i64 slice, const std::vector<i64>& turns, const SliceSteps& steps) {
  i64 at = 0;
  for (std::size_t d = turns.size(); d-- > 0; slice /= turns[d]) at += slice % turns[d] * steps[d];
  return at;
}

struct Stage {
  std::shared_ptr<const Graph> graph;  // what the call refers to
  Call call;                           // of one slice
  std::vector<Copy> in, out;
  std::vector<SliceSteps> in_steps, out_steps;
  std::vector<i64> turns;           // how many slices there are along each dim
  i64 slices = 1, scratch = 0;      // scratch: where the kernel's own begins
  std::vector<std::byte*> to = {};  // where the kernel writes; kept, so that nothing is allocated in a step
};

View slice_of(View v, const DimSet& along) {
  for (const DimId d : along) {
    const std::size_t i = position(v.dims, d);
    v.sizes[i] = 1;
    v.limits[i] = v.offsets[i] + 1;
  }
  return v;
}

Stage stage_of(const Call& call) {
  auto graph = std::make_shared<const Graph>(staged(call.op()));
  Stage s{.graph = graph,
          .call = {.graph = *graph,
                   .node = graph->nodes.back(),
                   .accumulate = call.accumulate && call.out[0].dtype != bf16,
                   .poll = call.poll}};
  const DimSet along = stage_slices(call.op());
  for (const DimId d : along) s.turns.push_back(call.in[0].size(d)), s.slices *= s.turns.back();
  const auto add = [&](const std::vector<View>& views, std::vector<View>& to, std::vector<Copy>& copies,
                       std::vector<SliceSteps>& steps) {
    for (std::size_t i = 0; i < views.size(); ++i) {
      const View slice = slice_of(views[i], along);
      steps.emplace_back();
      for (const DimId d : along) steps.back().push_back(views[i].stride(d) * i64(size_of(views[i].dtype)));
      to.push_back(slice);
      if (slice.dtype != bf16) continue;
      to.back() = copy_of(slice);
      copies.push_back({i, s.scratch, copy_nest(slice, to.back())});
      s.scratch += i64(staged_bytes(slice.elements()));
    }
  };
  add(call.in, s.call.in, s.in, s.in_steps);
  add(call.out, s.call.out, s.out, s.out_steps);
  return s;
}

void widen_all(Nest nest, const BF16* from, float* to) {
  const Loop inner = take_innermost(nest);
  run_nest(nest, [&](Steps at) {
    const BF16* x = from + at[0];
    float* y = to + at[1];
    if (inner.step[0] == 1 && inner.step[1] == 1) return widen(x, inner.size, y);
    for (i64 i = 0; i < inner.size; ++i) y[i * inner.step[1]] = x[i * inner.step[0]];
  });
}

void narrow_all(Nest nest, const float* from, BF16* to, bool add) {
  const Loop inner = take_innermost(nest);
  run_nest(nest, [&](Steps at) {
    BF16* x = to + at[0];
    const float* y = from + at[1];
    if (!add && inner.step[0] == 1 && inner.step[1] == 1) return narrow(y, inner.size, x);
    for (i64 i = 0; i < inner.size; ++i) {
      BF16& element = x[i * inner.step[0]];
      element = BF16(add ? element + y[i * inner.step[1]] : y[i * inner.step[1]]);
    }
  });
}

}  // namespace

bool accepts_staged(const Kernel& k, const Call& call) { return !k.accepts || k.accepts(stage_of(call).call); }

Runner prepare_staged(const Kernel& k, const Call& call) {
  Stage stage = stage_of(call);
  Runner kernel = k.prepare(stage.call);
  const std::vector<std::byte*> ins(call.in.size()), outs(call.out.size());
  return [s = std::move(stage), run = std::move(kernel), in = ins, out = outs,
          accumulate = call.accumulate](const Args& args) mutable {
    const bool add = accumulate && !args.now.overwrite;
    const auto memory = [&](const Copy& c) { return reinterpret_cast<float*>(args.scratch + c.at); };
    for (i64 slice = 0; slice < s.slices; ++slice) {
      for (std::size_t i = 0; i < in.size(); ++i) in[i] = args.in[i] + start_of_slice(slice, s.turns, s.in_steps[i]);
      for (std::size_t i = 0; i < out.size(); ++i)
        out[i] = args.out[i] ? args.out[i] + start_of_slice(slice, s.turns, s.out_steps[i]) : nullptr;
      for (const Copy& c : s.in) {
        widen_all(c.nest, reinterpret_cast<const BF16*>(in[c.which]), memory(c));
        in[c.which] = args.scratch + c.at;
      }
      std::vector<std::byte*>& to = s.to;
      to = out;
      for (const Copy& c : s.out)
        if (out[c.which]) to[c.which] = args.scratch + c.at;
      run({.in = in.data(),
           .out = to.data(),
           .scratch = args.scratch + s.scratch,
           .now = args.now,
           .poll = args.poll,
           .poller = args.poller,
           .launch = args.launch,
           .fault = args.fault});
      for (const Copy& c : s.out)
        if (out[c.which]) narrow_all(c.nest, memory(c), reinterpret_cast<BF16*>(out[c.which]), add && c.which == 0);
    }
  };
}

}  // namespace stretto
