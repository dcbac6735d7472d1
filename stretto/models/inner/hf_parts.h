// What functions of model types are made of: keys that many have. For models/hf_*.cpp only.
//
//   common(x, c, {.norm_eps = 1e-5});     // then what is the type's own
#pragma once
#include "stretto/models/inner/hf_exchange.h"
#include "stretto/models/inner/hf_types.h"

namespace stretto::hf {

// What missing keys mean, and what the activation is called.
struct Habits {
  double norm_eps = 1e-6, rope_base = 1e4;
  bool tied = false;
  std::string_view activation = "hidden_act";
};
void common(Exchange&, ModelConfig&, const Habits& = {});  // what all types have
void head_dim(Exchange&, ModelConfig&);
void rope(Exchange&, ModelConfig&, RopeHabits = {});
void windows(Exchange&, ModelConfig&, const std::string& habit);  // kinds of layers, by the list or by habit
void experts(Exchange&, ModelConfig&, std::string_view many);     // as most types have them
void granite(Exchange&, ModelConfig&);

// Kinds of layers as letters, f or w, of `layer_types`; others are faults.
void read_layer_types(FieldReader&, i64 layers, std::string& kinds);
void check_layers(FieldReader&, std::string_view key, i64 named, i64 layers);  // a list that has one for each
Field layer_types(const ModelConfig&);
std::string shortest_period(const std::string& letters);  // "wfwf" -> "wf"

std::span<const HfType> dense_types();
std::span<const HfType> sparse_types();  // with experts

}  // namespace stretto::hf
