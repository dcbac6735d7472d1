// How fast a model's rotary pairs turn.
//
//   RotaryOptions o = turns_of(config, 'w', 4096);     // of layers with a window, in sequences of so many tokens
#pragma once
#include "stretto/models/config.h"
#include "stretto/ops/rotary.h"

namespace stretto {

RotaryOptions turns_of(const ModelConfig&, char kind, i64 length);
// By what scores grow with the context, beside the lengths of queries and keys.
double score_growth(const RopeScaling&);

}  // namespace stretto
