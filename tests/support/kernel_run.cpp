#include "support/kernel_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "stretto/base/bf16.h"
#include "stretto/kernels/cpu/call_parts.h"

namespace stretto {
namespace {
constexpr unsigned char untouched = 0xA5;
}

KernelRun::KernelRun(const Graph& g, NodeId node, u64 seed, Layout layout)
    : call{.graph = g, .node = g.node(node)}, random_(seed) {
  for (Value v : call.node.operands) call.in.push_back(contiguous_view(g, g.type(v)));
  for (const Type& t : call.node.results) call.out.push_back(contiguous_view(g, t));
  for (View& v : call.in) in_.push_back(place(v, layout));
  for (View& v : call.out) out_.push_back(place(v, layout));
}

KernelRun::Memory KernelRun::place(View& v, Layout layout) {
  Memory m;
  i64 length = 1;
  const std::size_t rank = v.dims.size();
  if (layout == strided) {
    std::vector<std::size_t> order(rank);
    std::iota(order.begin(), order.end(), 0);
    if (random_() % 2) std::shuffle(order.begin(), order.end(), random_);
    for (std::size_t i = rank; i-- > 0;) {  // gaps between rows, sometimes between elements
      const std::size_t d = order[i];
      if (random_() % 3 == 0) length += i64(random_() % 5);
      v.strides[d] = length;
      length *= v.sizes[d];
    }
    m.start = i64(random_() % 7);
  } else {
    length = v.elements();
  }
  m.bytes.assign(std::size_t(length + m.start + 64) * size_of(v.dtype), std::byte{untouched});
  return m;
}

std::vector<i64> KernelRun::Memory::offsets(const View& v) const {
  std::vector<i64> all{start};
  for (std::size_t d = 0; d < v.dims.size(); ++d) {
    std::vector<i64> next;
    for (i64 at : all)
      for (i64 i = 0; i < v.sizes[d]; ++i) next.push_back(at + i * v.strides[d]);
    all = std::move(next);
  }
  return all;
}

double KernelRun::get(const Memory& m, const View& v, i64 at) const {
  const std::byte* p = m.bytes.data() + std::size_t(at) * size_of(v.dtype);
  const auto as = [&]<class T>(T x) { return std::memcpy(&x, p, sizeof x), double(x); };
  return v.dtype == f32    ? as(float{})
         : v.dtype == f64  ? as(double{})
         : v.dtype == bf16 ? as(BF16{})
                           : as(std::int32_t{});
}

void KernelRun::put(Memory& m, const View& v, i64 at, double value) {
  std::byte* p = m.bytes.data() + std::size_t(at) * size_of(v.dtype);
  const auto as = [&](auto x) { std::memcpy(p, &x, sizeof x); };
  if (v.dtype == f32) return as(float(value));
  if (v.dtype == f64) return as(value);
  if (v.dtype == bf16) return as(BF16(value));
  as(std::int32_t(value));
}

void KernelRun::fill(int operand, double lo, double hi) {
  std::uniform_real_distribution<double> u(lo, hi);
  std::vector<double> values(std::size_t(call.in[std::size_t(operand)].elements()));
  for (double& x : values) x = u(random_);
  set(operand, values);
}

void KernelRun::fill_ids(int operand, i64 below) {
  std::uniform_int_distribution<i64> u(0, below - 1);
  std::vector<double> values(std::size_t(call.in[std::size_t(operand)].elements()));
  for (double& x : values) x = double(u(random_));
  set(operand, values);
}

void KernelRun::set(int operand, const std::vector<double>& values) {
  const View& v = call.in[std::size_t(operand)];
  Memory& m = in_[std::size_t(operand)];
  const std::vector<i64> at = m.offsets(v);
  ASSERT_EQ(at.size(), values.size());
  for (std::size_t i = 0; i < at.size(); ++i) {
    bool padding = false;
    std::size_t rest = i;
    for (std::size_t d = v.dims.size(); d-- > 0; rest /= std::size_t(v.sizes[d]))
      padding = padding || i64(rest % std::size_t(v.sizes[d])) >= v.valid(v.dims[d]);
    put(m, v, at[i], padding && v.dtype != i32 ? 1e30 : values[i]);
  }
}

void KernelRun::set_offset(int which, DimId d, i64 offset) {
  View& v = which >= 0 ? call.in[std::size_t(which)] : call.out[std::size_t(-1 - which)];
  const std::size_t i = std::size_t(position(v.dims, d));
  v.offsets[i] = offset;
  v.limits[i] = std::max(v.limits[i], offset + v.sizes[i]);
}

std::vector<double> KernelRun::operand(int i) const {
  std::vector<double> values;
  for (i64 at : in_[std::size_t(i)].offsets(call.in[std::size_t(i)]))
    values.push_back(get(in_[std::size_t(i)], call.in[std::size_t(i)], at));
  return values;
}

std::vector<double> KernelRun::result(int i) const {
  std::vector<double> values;
  for (i64 at : out_[std::size_t(i)].offsets(call.out[std::size_t(i)]))
    values.push_back(get(out_[std::size_t(i)], call.out[std::size_t(i)], at));
  return values;
}

void KernelRun::run(const Kernel& kernel, std::vector<int> skip, Team* team) {
  // Fresh copies on 64-byte boundaries, so that only `start` decides how aligned a view is.
  std::vector<std::vector<std::byte>> room;
  const auto aligned = [&](std::size_t bytes) {
    room.emplace_back(bytes + 128);
    const auto at = reinterpret_cast<std::uintptr_t>(room.back().data());
    return room.back().data() + (64 - at % 64) % 64;
  };
  std::vector<std::byte*> in, out, base;
  for (std::size_t i = 0; i < in_.size(); ++i) {
    std::byte* p = aligned(in_[i].bytes.size());
    std::memcpy(p, in_[i].bytes.data(), in_[i].bytes.size());
    in.push_back(p + std::size_t(in_[i].start) * size_of(call.in[i].dtype));
  }
  for (std::size_t i = 0; i < out_.size(); ++i) {
    base.push_back(aligned(out_[i].bytes.size()));
    std::memcpy(base[i], out_[i].bytes.data(), out_[i].bytes.size());
    const bool skipped = std::find(skip.begin(), skip.end(), int(i)) != skip.end();
    out.push_back(skipped ? nullptr : base[i] + std::size_t(out_[i].start) * size_of(call.out[i].dtype));
  }
  const std::size_t each = (call.op().scratch() + 63) / 64 * 64, scratch = team ? each * team->threads() : each;
  std::byte* workspace = aligned(scratch + 64);
  std::memset(workspace, untouched, scratch + 64);
  pauses = 0;
  std::optional<KernelFault> fault;
  const Runner prepared = team ? prepare_in_parts(kernel, call, *team) : kernel.prepare(call);
  prepared({.in = in.data(),
            .out = out.data(),
            .scratch = workspace,
            .now = now,
            .poll = [](void* n) { ++*static_cast<int*>(n); },
            .poller = &pauses,
            .fault = &fault,
            .team = team,
            .scratch_each = each});
  if (fault) throw call.node.op->out_of_range(call.op(), fault->value, fault->limit);
  for (std::size_t i = 0; i < 64; ++i)
    ASSERT_EQ(workspace[scratch + i], std::byte{untouched}) << kernel.name << " wrote beyond its scratch";
  for (std::size_t i = 0; i < out_.size(); ++i) {
    std::vector<std::byte> after(base[i], base[i] + out_[i].bytes.size());
    std::swap(out_[i].bytes, after);
    ASSERT_TRUE(out[i] || out_[i].bytes == after) << kernel.name << " wrote a result nobody uses";
    std::vector<std::byte> blank = out_[i].bytes;  // now only what is outside of the view
    const std::size_t size = size_of(call.out[i].dtype);
    for (i64 at : out_[i].offsets(call.out[i])) std::memset(blank.data() + std::size_t(at) * size, untouched, size);
    ASSERT_TRUE(std::all_of(blank.begin(), blank.end(), [](std::byte b) { return b == std::byte{untouched}; }))
        << kernel.name << " wrote outside of result " << i;
  }
}

std::vector<std::string> check_kernels(const Graph& g, NodeId node, u64 seed,
                                       const std::function<void(KernelRun&)>& fill, double tolerance,
                                       std::vector<int> skip) {
  std::vector<std::string> names;
  for (const KernelRun::Layout layout : {KernelRun::contiguous, KernelRun::strided})
    for (const bool accumulate : {false, true}) {
      if (accumulate && !g.node(node).op->accumulates) continue;
      KernelRun run(g, node, seed, layout);
      fill(run);
      const std::span<const Kernel> kernels = cpu_kernels(*run.call.node.op);
      const auto twice = [&](const Kernel& k) {  // the second time adds
        KernelRun r = run;
        r.run(k, skip);
        if (accumulate) {
          r.call.accumulate = true;
          r.now.overwrite = false;
          r.run(k, skip);
        }
        return r;
      };
      const KernelRun expected = twice(kernels.back());
      for (const Kernel& k : kernels.first(kernels.size() - 1)) {
        if (!accepts(k, run.call)) continue;
        names.emplace_back(k.name);
        const KernelRun got = twice(k);
        for (std::size_t r = 0; r < run.call.out.size(); ++r) {
          if (std::find(skip.begin(), skip.end(), int(r)) != skip.end()) continue;
          const std::vector<double> a = got.result(int(r)), b = expected.result(int(r));
          for (std::size_t i = 0; i < a.size(); ++i) {
            const bool near = a[i] == b[i] || std::abs(a[i] - b[i]) <= tolerance * (1 + std::abs(b[i]));
            EXPECT_TRUE(near) << k.name << " result " << r << " element " << i << " is " << a[i] << ", the reference's "
                              << b[i] << (layout == KernelRun::strided ? ", strided" : "")
                              << (accumulate ? ", accumulated" : "");
            if (!near) return names;
          }
        }
      }
    }
  return names;
}

}  // namespace stretto
