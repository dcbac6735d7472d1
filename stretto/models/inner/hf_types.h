// Model types of config.json that are Llama or Mixtral with options of their own: one function per type, which reads
// and writes its keys. For models/hf_*.cpp only.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "stretto/formats/fields.h"
#include "stretto/models/config.h"

namespace stretto {

class Exchange;
struct HfType {
  std::string_view name, architecture, family;
  void (*keys)(Exchange&, ModelConfig&);
};
std::span<const HfType> hf_types();
const HfType* find_hf_type(std::string_view name);  // null: there is none of that name
void read_type(const HfType&, FieldReader&, ModelConfig&);
Field write_type(const HfType&, const ModelConfig&);

}  // namespace stretto
