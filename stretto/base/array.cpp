#include "stretto/base/array.h"

#include "stretto/base/text.h"

namespace stretto {

i64 Array::elements() const {
  i64 n = 1;
  for (i64 s : sizes) n *= s;
  return n;
}

std::string Array::str() const {
  std::vector<std::string> parts;
  for (i64 s : sizes) parts.push_back(std::to_string(s));
  return fmt::format("{}[{}]", name_of(dtype), join(parts, ", "));
}

std::vector<double> Array::doubles() const {
  std::vector<double> r;
  r.reserve(elements());
  if (dtype == f32)
    for (float v : as<float>()) r.push_back(v);
  else if (dtype == f64)
    for (double v : as<double>()) r.push_back(v);
  else if (dtype == bf16)
    for (float v : as<BF16>()) r.push_back(v);
  else
    for (std::int32_t v : as<std::int32_t>()) r.push_back(v);
  return r;
}

}  // namespace stretto
