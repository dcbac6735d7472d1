#include "stretto/kernels/cuda/text.h"

#include <algorithm>
#include <limits>

#include "stretto/base/error.h"

namespace stretto {
namespace {

constexpr i64 most_elements = std::numeric_limits<std::int32_t>::max();

// How far behind its first element a view's last one lies.
i64 extent(const View& v) {
  i64 at = 0;
  for (std::size_t i = 0; i < v.dims.size(); ++i) at += (v.sizes[i] - 1) * v.strides[i];
  return at;
}

// "x / 4u % 12u * 48u": what the index of a space adds to a place in the view.
void add_terms(std::string& sum, const View& v, const std::string& index, const DimSet& dims,
               const std::vector<i64>& sizes, const char* suffix) {
  i64 below = 1;
  for (std::size_t i = dims.size(); i-- > 0;) {
    const i64 stride = v.stride(dims[i]), size = sizes[i], first = below;
    below *= size;
    if (stride == 0 || size == 1) continue;
    i64 length = size;  // of this dim and those above it that the view steps through as if they were one
    while (i > 0 && v.stride(dims[i - 1]) == stride * length) length *= sizes[--i], below *= sizes[i];
    std::string term = index;
    if (first > 1) term += fmt::format(" / {}u", first);
    if (i > 0) term += fmt::format(" % {}u", length);
    if (stride != 1) term += fmt::format(" * {}{}", stride, suffix);
    sum += (sum.empty() ? "" : " + ") + term;
  }
}

}  // namespace

CudaText::CudaText(const Call& call) : call_(call) {}

CudaText& CudaText::space(const std::string& name, const DimSet& dims, Extent extent) {
  Space s{.name = name, .dims = dims};
  for (const DimId d : dims) {
    std::optional<i64> size;
    for (const std::vector<View>* views : {&call_.in, &call_.out})
      for (const View& v : *views) {
        if (!contains(v.dims, d)) continue;
        const i64 here = extent == padded ? v.size(d) : v.valid(d);
        size = !size ? here : extent == padded ? std::max(*size, here) : std::min(*size, here);
      }
    s.sizes.push_back(size.value_or(1));
    s.count *= s.sizes.back();
  }
  if (s.count > most_elements)
    throw Error("cuda", "{} runs over {} elements, a kernel over {} at most", call_.node.op->name, s.count,
                most_elements)
        .hint("use more microbatches, or split a dim over more ranks");
  definitions_ += fmt::format("constexpr unsigned {}_n = {};\n", name, s.count);
  spaces_.push_back(std::move(s));
  return *this;
}
CudaText& CudaText::number(std::string_view name, double value) {
  definitions_ += fmt::format("constexpr W {} = W({:.17g});\n", name, value);
  return *this;
}
CudaText& CudaText::integer(std::string_view name, i64 value) {
  definitions_ += fmt::format("constexpr long long {} = {};\n", name, value);
  return *this;
}
CudaText& CudaText::text(std::string_view definitions) {
  definitions_ += definitions;
  return *this;
}
i64 CudaText::count(std::string_view space) const {
  return std::find_if(spaces_.begin(), spaces_.end(), [&](const Space& s) { return s.name == space; })->count;
}

std::string CudaText::at(const View& v) const {
  std::string sum;
  for (const Space& s : spaces_) add_terms(sum, v, s.name, s.dims, s.sizes, extent(v) > most_elements ? "ll" : "u");
  return sum.empty() ? "0" : sum;
}

std::string CudaText::places() const {
  std::string parameters;
  for (const Space& s : spaces_) parameters += (parameters.empty() ? "unsigned " : ", unsigned ") + s.name;
  std::string all;
  const auto add = [&](char kind, std::size_t i, const View& v) {
    all += fmt::format("static __device__ __forceinline__ {} at_{}{}({}) {{ return {}; }}\n",
                       extent(v) > most_elements ? "long long" : "unsigned", kind, i, parameters, at(v));
  };
  for (std::size_t i = 0; i < call_.in.size(); ++i) add('i', i, call_.in[i]);
  for (std::size_t i = 0; i < call_.out.size(); ++i) add('o', i, call_.out[i]);
  return all;
}

// Per padded dim what is beyond its end, and before the ends of the padded dims above: no element twice.
std::string CudaText::clearing() const {
  std::string all;
  for (std::size_t k = 0; k < call_.out.size(); ++k) {
    const View& v = call_.out[k];
    for (std::size_t p = 0; p < v.dims.size(); ++p) {
      const i64 end = v.valid(v.dims[p]);
      if (end == v.sizes[p]) continue;
      std::vector<i64> sizes;
      i64 n = 1;
      for (std::size_t i = 0; i < v.dims.size(); ++i) {
        sizes.push_back(i == p ? v.sizes[p] - end : i < p ? v.valid(v.dims[i]) : v.sizes[i]);
        n *= sizes.back();
      }
      std::string place;
      add_terms(place, v, "x", v.dims, sizes, "ll");
      all += fmt::format("  if (o{}{}) for (unsigned x = thread; x < {}u; x += threads) o{}[{}ll + ({})] = Out{}(0);\n",
                         k, k == 0 ? " && !adds" : "", n, k, end * v.strides[p], place.empty() ? "0" : place, k);
    }
  }
  return all;
}

std::string CudaText::signature() const {
  std::string s = fmt::format("extern \"C\" __global__ void {}(", cuda_entry(*call_.node.op));
  for (std::size_t i = 0; i < call_.in.size(); ++i) s += fmt::format("const In{}* i{}, ", i, i);
  for (std::size_t i = 0; i < call_.out.size(); ++i) s += fmt::format("Out{}* o{}, ", i, i);
  return s + "const Now now, char* work, const char* table, Fault* fault)";
}

CudaSource CudaText::kernel(std::string_view body, CudaShape shape) const {
  std::string t(cuda_prelude());
  for (std::size_t i = 0; i < call_.in.size(); ++i)
    t += fmt::format("typedef {} In{};\n", cuda_memory_type(call_.in[i].dtype), i);
  for (std::size_t i = 0; i < call_.out.size(); ++i)
    t += fmt::format("typedef {} Out{};\n", cuda_memory_type(call_.out[i].dtype), i);
  t += fmt::format("typedef {} W;\n", cuda_type((call_.in.empty() ? call_.out : call_.in)[0].dtype));
  t += definitions_ + places() + signature() + " {\n";
  t += "  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;\n";
  t += fmt::format("  const bool adds = {};\n", call_.accumulate ? "!now.overwrite" : "false");
  t += std::string(body) + clearing() + "}\n";
  return {.text = std::move(t),
          .grid = shape.grid,
          .block = shape.block,
          .work = shape.work,
          .table = std::move(shape.table)};
}

i64 offset_of(const View& v, DimId d) { return v.offsets[std::size_t(position(v.dims, d))]; }
std::string cuda_entry(const Op& op) { return fmt::format("stretto_{}", op.name); }
unsigned blocks_for(i64 threads, unsigned block) {
  return unsigned(std::clamp<i64>((threads + block - 1) / block, 1, 1 << 24));
}
const char* cuda_memory_type(DType t) { return t == bf16 ? "bf16" : cuda_type(t); }
const char* cuda_type(DType t) { return t == f64 ? "double" : t == i32 ? "int" : "float"; }

}  // namespace stretto
