// How fast a model's rotary pairs turn.
//
//   RotaryOptions o = turns_of(config, 'w');     // of layers with a window
#pragma once
#include "stretto/models/config.h"
#include "stretto/ops/rotary.h"

namespace stretto {

RotaryOptions turns_of(const ModelConfig&, char kind);

}  // namespace stretto
