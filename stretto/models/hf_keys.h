// Keys of config.json that several model types have, for models/hf_*.cpp only.
#pragma once
#include "stretto/formats/fields.h"
#include "stretto/models/config.h"

namespace stretto::hf {

void read_activation(FieldReader&, std::string_view key, ModelConfig&);
std::string written(Activation);
void must_be(FieldReader&, std::string_view key, bool value);  // a switch that only works in one position
void read_rate(FieldReader&, std::string_view key, double& to, double otherwise);
// After the sizes of heads. `partial`: a part of a head may be turned.
void read_rope(FieldReader&, ModelConfig&, bool partial = false);
void read_rope_table(FieldReader&, std::string_view key, ModelConfig&, bool partial = false);
Field rope_config(const RopeScaling&);

}  // namespace stretto::hf
