// What the tasks of a piece are made of, call by call, and what waits for what: read off a short program once, put
// together into the turns of any stage (turn_work.h).
//
//   const LayerWork work = layer_work(program, cluster, 1);
//   const PartWork& forward = work.of(piece, pieces)[Part::F];
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "stretto/cost/machine.h"
#include "stretto/plan/piece_buffers.h"
#include "stretto/program/program.h"

namespace stretto {

struct PieceCall {
  double seconds = 0;
  double unhurried = 0;                    // seconds on the unhurried cluster (program/overlap/overlap.h)
  std::optional<std::uint32_t> link = {};  // a collective
  struct After {
    Part part;
    std::uint32_t call;
  };
  std::vector<After> after = {};            // of the same piece and microbatch
  bool chained = false;                     // comes after what the piece before it in the pass gives
  bool gathered = false;                    // reads parameters that are gathered
  std::vector<std::uint32_t> touches = {};  // which buffers of its part
};

struct PartWork {
  std::vector<PieceCall> calls = {};
  std::uint32_t gives = 0;  // the call that makes what the next piece in the pass waits for
  std::size_t at_end = 0;   // R: how many of its calls run if the piece is the last of its stage
  TaskBuffers buffers = {};
  double seconds() const;
  bool gathers() const;
};

// What is done with a piece's parameters once a step, and how many buffers its gathers have.
struct PieceEnd {
  double buffers = 0, of_gather = 0;
  u64 block = 0;      // temporaries
  u64 scattered = 0;  // gradients that are scattered then
};

// What other software keeps of its forward (simulate/held.h).
struct PieceKept {
  double beside = 0, products = 0;
};

// Those of a piece's tasks that a turn runs: F, R, I, W, A; of S only its buffers.
class PieceWork {
 public:
  PartWork& operator[](Part p) { return parts_.at(std::size_t(p) - std::size_t(Part::F)); }
  const PartWork& operator[](Part p) const { return parts_.at(std::size_t(p) - std::size_t(Part::F)); }
  PieceEnd end = {};
  PieceKept kept = {};

 private:
  std::array<PartWork, std::size_t(Part::A) - std::size_t(Part::F) + 1> parts_;
};

struct LayerWork {
  PieceWork embedding;
  std::vector<PieceWork> period;  // pieces of layers, in turn
  std::vector<PieceWork> head;    // its parts
  double logits = 0;              // that it makes
  const PieceWork& of(int piece, int pieces) const {
    if (piece == 0) return embedding;
    const int before_head = pieces - int(head.size());
    return piece >= before_head ? head[piece - before_head] : period[(piece - 1) % period.size()];
  }
};

// Reads a program of one actor: an embedding, four periods of layers, so many parts of a head. The last two periods are
// one stage.
LayerWork layer_work(const Program&, const Cluster&, int head_parts);

}  // namespace stretto
