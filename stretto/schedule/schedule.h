// A pipeline schedule as plain data: per actor, the ordered list of actions. Smallest use (1F1B by hand):
//
//   Schedule mine(const Request& r) {
//     Schedule s = looped(r);
//     for (int a = 0; a < r.actors; ++a) {
//       int warm = std::min(r.actors - a - 1, r.microbatches), f = 0, b = 0;
//       while (f < warm) s.rows[a].F(a, f++);
//       while (f < r.microbatches) s.rows[a].F(a, f++).B(a, b++);
//       while (b < r.microbatches) s.rows[a].B(a, b++);
//     }
//     return s;
//   }
#pragma once
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "stretto/base/enum_array.h"
#include "stretto/base/id.h"
#include "stretto/cost/times.h"

namespace stretto {

// F forward, B backward (= I then W), I gradient of the inputs, W gradient of the weights,
// R recompute of what F did not keep (implied right before I or B when it is absent).
enum class Phase : std::uint8_t { F, B, I, W, R };
char letter(Phase);
template <class T>
using PerPhase = EnumArray<Phase, T, 5>;

constexpr PipeId down_pipe{0}, up_pipe{1};  // the up pipe: of bidirectional schedules

struct Action {
  Phase phase = Phase::F;
  PipeId pipe = down_pipe;
  StageId stage = {};            // logical stage, 0 .. stages-1 in either pipe
  MicrobatchId microbatch = {};  // 0 .. microbatches-1
  std::uint16_t segment = 0;     // sequence segment, 0 .. segments-1
  std::uint32_t overlap =
      0;  // members of one row with the same non-zero number run overlapped; they stand side by side
  auto operator<=>(const Action&) const = default;
};

struct Row : std::vector<Action> {
  using vector::vector;
  Row& F(int stage, int microbatch) { return add(Phase::F, stage, microbatch); }
  Row& B(int stage, int microbatch) { return add(Phase::B, stage, microbatch); }
  Row& I(int stage, int microbatch) { return add(Phase::I, stage, microbatch); }
  Row& W(int stage, int microbatch) { return add(Phase::W, stage, microbatch); }
  Row& R(int stage, int microbatch) { return add(Phase::R, stage, microbatch); }
  Row& add(Phase phase, int stage, int microbatch, int pipe = 0, int segment = 0);
};

// Collectives of storage that is cut over ranks, of a whole stage, before the row's action at a position: parameters
// become whole, are let go, gradients are reduced.
struct StorageMark {
  enum class Kind : std::uint8_t { unshard, reshard, reduce_grad } kind = Kind::unshard;
  PipeId pipe = down_pipe;
  StageId stage = {};
  ActionId before = {};
  auto operator<=>(const StorageMark&) const = default;
};

// One per actor. Builders count with plain numbers, so these index rows too.
struct ScheduleRows : IdVector<ActorId, Row> {
  using IdVector::IdVector;
  using IdVector::operator[];
  Row& operator[](int actor) { return (*this)[ActorId(actor)]; }
  const Row& operator[](int actor) const { return (*this)[ActorId(actor)]; }
};

// actor_of[pipe][stage]
using StagePlacement = IdVector<PipeId, IdVector<StageId, ActorId>>;
StagePlacement placement(const std::vector<std::vector<int>>&);  // placement({{0, 1, 1, 0}}): a V

constexpr int most_actors = 65535;

struct Schedule {
  std::string name;                  // what it was made from; not part of equality or hash
  int stages = 0, microbatches = 0;  // logical stages of one pipe
  int segments = 1;                  // sequence segments per microbatch
  StagePlacement actor_of;
  ScheduleRows rows;
  // Per actor, in order; none of a kind: they are placed when a program is made. Not part of equality or hash.
  IdVector<ActorId, std::vector<StorageMark>> marks = {};

  int actors() const { return rows.size(); }
  int pipes() const { return actor_of.size(); }
  std::size_t actions() const;
  bool marked(ActorId, StorageMark::Kind) const;  // does its row have such marks?
  bool operator==(const Schedule&) const;
  std::uint64_t hash() const;
  std::string str() const;  // one line per actor, cells as in CSV
};

// PyTorch's notation for one action: "2F3", "0I1", ...; the up pipe's stage s is written stages + s.
std::string cell(const Action&, int stages);

// What a builder is asked for. `chunks` is v, the stages per actor; 0: the builder's default.
struct Request {
  int actors = 1, microbatches = 1, chunks = 0;
  int segments = 1;         // that sequences are cut into
  Times times = {};         // for builders that look at times (zb-auto)
  double memory = 0;        // cap in full-stage activations per actor (zb-auto); 0: the builder's default
  double freed_by_i = 0;    // share of an activation that I frees already when the cap is counted
  bool descending = false;  // backward order of gpipe and looped-bfs
};

// Refuses sizes that no schedule has: below 1, or more than can be held. Chunks are settled.
void check_sizes(const Request&);

// Schedules without actions, with their placement: fill in the rows.
Schedule looped(const Request&);         // stage s on actor s mod actors
Schedule v_shaped(const Request&);       // two chunks: stage s on actor s, then back: 2p-1-s
Schedule bidirectional(const Request&);  // two pipes: stage s on actor s, and on actor p-1-s

}  // namespace stretto
