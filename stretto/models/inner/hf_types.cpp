#include "stretto/models/inner/hf_types.h"

#include "stretto/models/inner/hf_parts.h"

namespace stretto {

std::span<const HfType> hf_types() {
  static const std::vector<HfType> all = [] {
    std::vector<HfType> types;
    for (const auto& some : {hf::dense_types(), hf::sparse_types()})
      types.insert(types.end(), some.begin(), some.end());
    return types;
  }();
  return all;
}

const HfType* find_hf_type(std::string_view name) {
  for (const HfType& t : hf_types())
    if (t.name == name) return &t;
  return nullptr;
}

void read_type(const HfType& type, FieldReader& r, ModelConfig& c) {
  c.family = type.family;
  c.hf_type = type.name;
  Exchange x(r);
  type.keys(x, c);
}

Field write_type(const HfType& type, const ModelConfig& config) {
  if (config.family != type.family)
    throw Error("hugging face", "model type {} is of family '{}' and not '{}'", type.name, type.family, config.family)
        .hint("use family '{}', or another hf_type", type.family);
  Field f{Field::Table{}};
  f.set("model_type", std::string(type.name));
  f.set("architectures", Field::Array{Field(std::string(type.architecture))});
  ModelConfig c = config;
  Exchange x(f);
  type.keys(x, c);
  return f;
}

}  // namespace stretto
