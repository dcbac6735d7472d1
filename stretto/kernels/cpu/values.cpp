#include "stretto/ops/values.h"
#include "stretto/base/bf16.h"
#include "stretto/kernels/kernel.h"

namespace stretto {
namespace {

// Every element of the view, in the order of its dims: f(place in memory, place in the array; none of padding).
template <class F>
void each_element(const View& v, const std::vector<i64>& sizes, F&& f, std::size_t d = 0, i64 at = 0, i64 from = 0,
                  bool valid = true) {
  if (d == v.sizes.size()) return f(at, valid ? std::optional(from) : std::nullopt);
  for (i64 i = 0; i < v.sizes[d]; ++i)
    each_element(v, sizes, f, d + 1, at + i * v.strides[d], from * sizes[d] + v.offsets[d] + i,
                 valid && v.offsets[d] + i < v.limits[d]);
}

template <class T>
Runner copying(const Call& call) {
  const ValuesAttrs& a = call.attrs<ValuesAttrs>();
  std::vector<std::pair<i64, T>> elements;
  each_element(call.out[0], a.sizes, [&](i64 at, std::optional<i64> from) {
    elements.emplace_back(at, from ? T(a.numbers.all[*from]) : T(0));
  });
  return [elements = std::move(elements)](const Args& args) {
    T* out = args.output<T>();
    for (const auto& [at, x] : elements) out[at] = x;
  };
}

Runner prepare(const Call& call) {
  switch (call.out[0].dtype) {
    case f64:
      return copying<double>(call);
    case f32:
      return copying<float>(call);
    case i32:
      return copying<std::int32_t>(call);
    default:
      return copying<BF16>(call);
  }
}
constexpr Kernel kernels[] = {{.name = "plain", .prepare = &prepare}};

}  // namespace

std::span<const Kernel> values_kernels() { return kernels; }
}  // namespace stretto
