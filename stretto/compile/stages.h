// The stages of a compiled program as text: what each computes, holds and keeps, and a check that nothing of the model
// is left out.
//
//   fmt::print("{}", stages_str(compiled));
#pragma once
#include <optional>
#include <string>

#include "stretto/compile/compile.h"

namespace stretto {

std::string stages_str(const Compiled&);

// A stage that cannot be cut any further and takes more than an actor's share of all; or the head, where actors have
// several stages, if it is far longer than an even one. The others wait for it.
struct Limit {
  StageId stage;
  std::string name = {};        // its layers
  double takes = 0, share = 0;  // of all of a microbatch's work: this stage, and an even share
  bool alone = false;           // the share is an actor's; else a stage's
  int head_parts = 0;           // it is the head: parts that would be small enough; else 0
  std::string shares() const;   // "takes 28.4% of the time, an actor's share is 25.0%"
};
std::optional<Limit> limit_of(const Compiled&);

// Pieces that no stage takes, parameters that no stage reads, trained parameters without a gradient: none, or the
// program does not train the model.
std::vector<Fault> verify_stages(const Compiled&);

}  // namespace stretto
