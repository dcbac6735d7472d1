// Moves: an operand to its place inside the result, with zeros around it, or beside other operands.
#include "stretto/kernels/cuda/kernel.h"
#include "stretto/ops/block.h"
#include "stretto/ops/constant.h"
#include "stretto/ops/index.h"
#include "stretto/ops/slice.h"
#include "stretto/ops/values.h"

namespace stretto {
namespace {

// The whole as the part's own dims step through it: where the part lies, as a view with the part's dims.
View inside(const View& part, const View& whole, const ViewMap& map) {
  View v = part;
  for (std::size_t i = 0; i < part.dims.size(); ++i) v.strides[i] = whole.strides[*map.from[i]] * map.step_of(i);
  return v;
}

CudaSource zeros(const Call& call) {
  CudaText t(call);
  t.space("x", call.out[0].dims, CudaText::padded);
  return t.kernel("if (!adds) for (unsigned x = thread; x < x_n; x += threads) o0[at_o0(x)] = Out0(0);\n",
                  {.grid = blocks_for(t.count("x"))});
}

CudaSource placed(const Call& call, std::size_t operand, const ViewMap& map) {
  Call one{.graph = call.graph,
           .node = call.node,
           .in = {call.in[operand]},
           .out = {inside(call.in[operand], call.out[0], map)},
           .accumulate = call.accumulate};
  one.out[0].limits = one.in[0].limits, one.out[0].offsets = one.in[0].offsets;  // padding moves too
  CudaText t(one);
  t.space("x", one.in[0].dims, CudaText::padded).integer("start", start_of(call.out[0], map));
  CudaSource s = t.kernel(
      "for (unsigned x = thread; x < x_n; x += threads) store(o0 + start + at_o0(x), get(i0 + at_i0(x)), adds);\n",
      {.grid = blocks_for(t.count("x"))});
  s.operands = {operand};
  return s;
}

std::vector<CudaSource> place_in_zeros(const Call& call, const ViewMap& map) {
  return {zeros(call), placed(call, 0, map)};
}
ViewMap in_order(const Call& call) {
  ViewMap map{.from = {}, .start = std::vector<i64>(call.out[0].dims.size(), 0)};
  for (std::size_t i = 0; i < call.in[0].dims.size(); ++i) map.from.push_back(int(i));
  return map;
}

std::vector<CudaSource> write_pad(const Call& call) {
  const SliceAttrs& a = call.attrs<SliceAttrs>();
  const DimSet& dims = call.out[0].dims;
  ViewMap map{.from = {}, .start = std::vector<i64>(dims.size(), 0)};
  for (DimId d : call.in[0].dims) map.from.push_back(position(dims, d == a.from ? a.to : d));
  map.start[std::size_t(position(dims, a.to))] = a.start;
  return place_in_zeros(call, map);
}
std::vector<CudaSource> write_unindex(const Call& call) {
  const UnindexAttrs& a = call.attrs<UnindexAttrs>();
  ViewMap map{.from = {}, .start = std::vector<i64>(call.out[0].dims.size(), 0)};
  for (DimId d : call.in[0].dims) map.from.push_back(position(call.out[0].dims, d));
  map.start[std::size_t(a.position)] = a.at;
  return place_in_zeros(call, map);
}
std::vector<CudaSource> write_unblock(const Call& call) {
  const UnblockAttrs& a = call.attrs<UnblockAttrs>();
  const View &x = call.in[0], &y = call.out[0];
  const auto out = std::size_t(position(y.dims, a.to));
  ViewMap map = in_order(call);
  map.start[out] = x.offsets[std::size_t(position(x.dims, a.from))] - y.offsets[out];
  return place_in_zeros(call, map);
}
std::vector<CudaSource> write_parts(const Call& call) {
  std::vector<CudaSource> all;
  for (std::size_t i = 0; i < call.in.size(); ++i)
    all.push_back(placed(call, i, call.node.op->into(call.op(), int(i))));
  return all;
}

// The part of a dim, or of all elements in their order, that this rank has.
std::vector<CudaSource> write_block(const Call& call) {
  const BlockAttrs& a = call.attrs<BlockAttrs>();
  const View &x = call.in[0], &y = call.out[0];
  CudaText t(call);
  if (a.flat) {
    t.space("x", y.dims, CudaText::padded).space("e", x.dims, CudaText::padded).integer("first", y.offsets[0]);
    return {
        t.kernel("for (unsigned x = thread; x < x_n; x += threads) {\n"
                 "const i64 e = first + x;\n"
                 "o0[at_o0(x, 0)] = e < e_n ? i0[at_i0(0, (unsigned)e)] : Out0(0);\n}\n",
                 {.grid = blocks_for(t.count("x"))})};
  }
  const auto in = std::size_t(position(x.dims, a.from[0])), out = std::size_t(position(y.dims, a.to));
  Call cut{.graph = call.graph, .node = call.node, .in = {x}, .out = {y}, .accumulate = call.accumulate};
  cut.in[0].dims = y.dims, cut.in[0].sizes = y.sizes;
  CudaText c(cut);
  c.space("x", y.dims, CudaText::padded).integer("start", (y.offsets[out] - x.offsets[in]) * x.strides[in]);
  return {c.kernel("for (unsigned x = thread; x < x_n; x += threads) o0[at_o0(x)] = i0[start + at_i0(x)];\n",
                   {.grid = blocks_for(c.count("x"))})};
}

std::vector<CudaSource> write_constant(const Call& call) {
  CudaText t(call);
  t.number("value", call.attrs<ConstantAttrs>().value);
  return {t.kernel("if (thread == 0) store(o0, value);\n", {.block = 32})};
}
std::vector<CudaSource> write_iota(const Call& call) {
  CudaText t(call);
  t.space("x", call.out[0].dims, CudaText::padded).integer("first", call.out[0].offsets[0]);
  return {t.kernel("for (unsigned x = thread; x < x_n; x += threads) o0[at_o0(x)] = Out0(first + x);\n",
                   {.grid = blocks_for(t.count("x"))})};
}

// Numbers that the program holds, in the order of the result's dims; padding is zero.
std::vector<CudaSource> write_values(const Call& call) {
  const ValuesAttrs& a = call.attrs<ValuesAttrs>();
  const View& v = call.out[0];
  std::vector<double> numbers(std::size_t(v.elements()));
  for (std::size_t x = 0; x < numbers.size(); ++x) {
    i64 from = 0, rest = i64(x), weight = 1;
    bool valid = true;
    for (std::size_t d = v.dims.size(); d-- > 0; rest /= v.sizes[d]) {
      const i64 at = v.offsets[d] + rest % v.sizes[d];
      valid = valid && at < v.limits[d];
      from += at * weight, weight *= a.sizes[d];
    }
    numbers[x] = valid ? a.numbers.all[std::size_t(from)] : 0;
  }
  CudaText t(call);
  t.space("x", v.dims, CudaText::padded);
  const auto* const bytes = reinterpret_cast<const std::byte*>(numbers.data());
  return {
      t.kernel("for (unsigned x = thread; x < x_n; x += threads) store(o0 + at_o0(x), W(((const double*)table)[x]));\n",
               {.grid = blocks_for(t.count("x")), .table = {bytes, bytes + 8 * numbers.size()}})};
}

constexpr CudaKernel pads[] = {{.name = "pad", .write = &write_pad}};
constexpr CudaKernel unindexes[] = {{.name = "unindex", .write = &write_unindex}};
constexpr CudaKernel unblocks[] = {{.name = "unblock", .write = &write_unblock}};
constexpr CudaKernel parts[] = {{.name = "parts", .write = &write_parts}};
constexpr CudaKernel blocks[] = {{.name = "block", .write = &write_block}};
constexpr CudaKernel constants[] = {{.name = "constant", .write = &write_constant}};
constexpr CudaKernel iotas[] = {{.name = "iota", .write = &write_iota}};
constexpr CudaKernel numbers[] = {{.name = "values", .write = &write_values}};

}  // namespace

std::span<const CudaKernel> pad_cuda_kernels() { return pads; }
std::span<const CudaKernel> unindex_cuda_kernels() { return unindexes; }
std::span<const CudaKernel> unblock_cuda_kernels() { return unblocks; }
std::span<const CudaKernel> stack_cuda_kernels() { return parts; }
std::span<const CudaKernel> concat_cuda_kernels() { return parts; }
std::span<const CudaKernel> weave_cuda_kernels() { return parts; }
std::span<const CudaKernel> block_cuda_kernels() { return blocks; }
std::span<const CudaKernel> constant_cuda_kernels() { return constants; }
std::span<const CudaKernel> iota_cuda_kernels() { return iotas; }
std::span<const CudaKernel> values_cuda_kernels() { return numbers; }

}  // namespace stretto
