#include "stretto/base/dtype.h"

#include "stretto/base/enum_array.h"

namespace stretto {
namespace {
struct Row {
  DType dtype;
  std::string_view name;
  std::size_t size;
};
constexpr EnumArray<DType, Row, 5> rows{
    {Row{f32, "f32", 4}, Row{f64, "f64", 8}, Row{i32, "i32", 4}, Row{f16, "f16", 2}, Row{bf16, "bf16", 2}}};
}  // namespace

std::size_t size_of(DType t) { return rows[t].size; }
std::string_view name_of(DType t) { return rows[t].name; }

std::optional<DType> dtype_named(std::string_view name) {
  for (const Row& r : rows)
    if (r.name == name) return r.dtype;
  return std::nullopt;
}

}  // namespace stretto
