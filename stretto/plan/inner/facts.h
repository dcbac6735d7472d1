// What a stage of a model takes and holds under one layout, from the compile of a short model on one actor.
// Whatever a step of the whole model is made of (kernels after fusion, collectives beside them, gathers, sums, update)
// is in these numbers, because they are read off the same program and the same player.
//
//   const StageFacts f = facts_of(problem, {.data = 8, .tensor = 4, .sequence = true, .rows = 1});
//   double t = f.stage.F + 12 * f.layer.F;       // forward of a stage of 12 layers
//
// A stage takes what every stage takes, as often `layer` as it has layers, and at the ends `embedding` or `head`.
#pragma once
#include <memory>
#include <vector>

#include "stretto/plan/problem.h"

namespace stretto {

// Everything that decides about a rank's graph.
struct Variant {
  int data = 1, tensor = 1, context = 1, expert = 1;
  bool sequence = false;
  int zero = 0;
  i64 rows = 1;  // of a microbatch
  Recompute recompute = Recompute::none;
  auto operator<=>(const Variant&) const = default;
};
Variant variant_of(const PlanProblem&, const RunKeys&);
// The same with nothing shared over the data axis: what all sizes of it have in common.
Variant without_data(Variant);

struct PieceFacts {
  // Seconds of one microbatch, as a program is arranged; R is a part of I and B. B is I with its W, which fills gaps.
  double F = 0, I = 0, B = 0;
  double R = 0;                                      // of a backward, before it needs a gradient
  double placed_F = 0, placed_I = 0, placed_W = 0;   // with every collective waited for in place, nothing beside it
  double products = 0, attention = 0, elements = 0;  // of all that, in kernels
  // Where parameters or gradients are cut: what goes on beside tasks in every microbatch, and what is added up here
  // once it is there.
  double gather = 0, gather_back = 0, scatter = 0, add = 0;
  double sums = 0, update = 0;                  // seconds, once a step: sums of gradients over ranks; norms and update
  double kept_i = 0, kept_w = 0;                // bytes from F until I, until W
  double for_w = 0;                             // bytes from I until W
  double beside = 0;                            // bytes beyond what is kept, while backward works
  double beside_i = 0, beside_w = 0;            // the same of an I and of a W
  double params = 0, gradients = 0, state = 0;  // bytes of a rank

  double work() const { return F + B; }
  double kept() const { return kept_i + kept_w; }
  PieceFacts& operator+=(const PieceFacts&);
  PieceFacts operator*(double) const;
};

// What other software keeps of a piece's forward (simulate/held.h), in bytes.
struct PieceKept {
  double beside = 0, products = 0;
};
struct KeptOfPieces {
  PieceKept embedding = {};
  std::vector<PieceKept> period = {}, head = {};  // the pieces of layers that repeat; the parts of the head
  double logits = 0;                              // how many the head makes
  const PieceKept& of(int piece, int pieces) const {
    if (piece == 0) return embedding;
    const int before_head = pieces - int(head.size());
    return piece >= before_head ? head[piece - before_head] : period[(piece - 1) % period.size()];
  }
};

struct StageFacts {
  PieceFacts stage, attention, mlp, embedding, head;  // attention, mlp: the two halves of a layer
  int head_parts = 1;                                 // `head` is one of them
  double message = 0;                                 // bytes of one microbatch from stage to stage
  double before = 0;                                  // seconds before the first microbatch
  double tied = 0;                                    // bytes of parameters that both ends hold
  double scratch = 0;                                 // bytes of a rank, whatever its stages
  std::shared_ptr<const KeptOfPieces> kept = {};
};

// Refused like the run itself, with what is wrong. Seconds of tasks are without gathers and scatters of storage: what
// is waited for of these depends on what stands beside them in a real stage.
StageFacts facts_of(const PlanProblem&, const Variant&);

// A model that has every kind of layer and is as short as that allows, times `times`.
ModelConfig shortened(const ModelConfig&, int times);

}  // namespace stretto
