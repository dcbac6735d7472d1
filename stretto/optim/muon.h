// Muon: the momentum of a matrix is made nearly orthogonal before it is added. What is no matrix, and what is named,
// AdamW updates.
//
//   compile(model, muon({.lr = 3e-4}), ...)
#pragma once
#include <string>
#include <vector>

#include "stretto/optim/optimizer.h"

namespace stretto {

struct Muon {
  enum class Scale : std::uint8_t {
    rms,       // 0.2 sqrt(max(rows, columns)): an update is as large as one of AdamW, and so may the rates be
    original,  // sqrt(max(1, columns / rows))
  };
  double lr = 3e-4, momentum = 0.95, decay = 0.1;
  bool nesterov = true;
  Scale scale = Scale::rms;
  int steps = 5;         // of Newton and Schulz
  double eps = 1e-7;     // the least length that a matrix is divided by
  AdamW others = {};     // its rate and decay are those above
  double others_lr = 1;  // times lr
  std::vector<std::string> numbers = {"wte", "wpe", "head*", "*embed*", "*lm_head*"};  // matrices that AdamW updates
};
Optimizer muon(Muon options = Muon());

}  // namespace stretto
