// Keys of config.json that several model types have, for models/hf_*.cpp only.
#pragma once
#include "stretto/formats/fields.h"
#include "stretto/models/config.h"

namespace stretto::hf {

void read_activation(FieldReader&, std::string_view key, ModelConfig&);
std::string written(Activation);
void must_be(FieldReader&, std::string_view key, bool value);  // a switch that only works in one position
void no_jitter(FieldReader&);                                  // refuses noise on what a router sees
void read_rate(FieldReader&, std::string_view key, double& to, double otherwise);
struct RopeHabits {
  bool partial = false;  // a part of a head may be turned
  bool grows = false;    // mscale_all_dim is of scores, too
};
void read_rope(FieldReader&, ModelConfig&, RopeHabits = {});  // after the sizes of heads and the context
void read_rope_table(FieldReader&, std::string_view key, ModelConfig&, RopeHabits = {});
Field rope_config(const RopeScaling&);

}  // namespace stretto::hf
