// What a stage keeps from one of its actions to a later one, per microbatch.
//
//   for (const Keep& k : keeps(step, stage_of)[StageId(0)].values) fmt::print("{}\n", step.values[k.value].name);
//
// A value that arrives from another stage counts from the first action of this stage that reads it.
#pragma once
#include <vector>

#include "stretto/step/step.h"

namespace stretto {

struct Keep {
  ValueId value;
  Part from = Part::F, until = Part::W;  // kept after F, R or I, until R, I or W has read it
  bool arrives = false;                  // made in another stage
};
struct StageKeeps {
  std::vector<Keep> values;
  // Bytes that F keeps until I has read them; that F keeps until W has; that I (or R) keeps for W. What R makes for I
  // does not outlive the action, unless the schedule has an R of its own.
  u64 until_i = 0, until_w = 0, for_w = 0;
};
IdVector<StageId, StageKeeps> keeps(const Step&, const IdVector<PieceId, StageId>& stage_of);

}  // namespace stretto
