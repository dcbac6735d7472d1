// Step and schedule -> instructions, with memory.
//
//   Program p = lower(step, schedule, stage_of, {.states = 2});
#pragma once
#include <optional>

#include "stretto/program/overlap/overlap.h"
#include "stretto/program/program.h"

namespace stretto {

struct LowerOptions {
  int states = 0;          // optimizer states per trainable parameter
  i64 rows = 1;            // of the batch, per microbatch
  SharedRows shared = {};  // see Program
  Mesh mesh = {};          // see Program
  Link link = {};          // between ranks: how large buckets of gradients are
  // That each parameter is cut over; empty: all are whole.
  IdVector<ParamId, std::vector<std::string>> param_axes = {};
  // Ranks share no memory: nothing is made in the receiver's, and what is sent stays for a while.
  bool remote = false;
  int threads = 1;
  Reshard reshard = Reshard::microbatch;
  std::optional<OverlapOptions> overlap = {};  // collectives of tasks go on beside other work; none: waited for
  bool undo = false;                           // memory is planned for what parameters and state were before a step
  Purpose purpose = Purpose::run;
  const Program* params_of = nullptr;  // parameters lie where this program has them: both use one arena
};
Program lower(Step, const Schedule&, IdVector<PieceId, StageId> stage_of, const LowerOptions&);

}  // namespace stretto
