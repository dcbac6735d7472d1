// Turns of an actor's row that were written out before: one that is like another gets its code, and only what its
// numbers stand for is found.
//
//   KnownTurns known(emitter, actor);
//   if (!known.repeat(key, standing, left)) known.add(key, standing, write_out(key), left);
#pragma once
#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "stretto/program/emit/emitter.h"

namespace stretto {

// Gradients of a piece that are being reduced and scattered.
struct GradientsUnderWay {
  CollectiveId collective;
  TaskId scatter;
  PieceId piece;
  MicrobatchId microbatch;
};
// What a turn leaves to the next one.
struct LeftOver {
  std::vector<Instruction> starts = {};  // collectives that start with it
  std::optional<GradientsUnderWay> settles = {};
};

// What the numbers of a key stand for.
struct Standing {
  ActionId from;
  std::vector<MicrobatchId> microbatches = {};
  std::vector<CollectiveId> left = {};
  std::uint32_t begun = 0;  // collectives of the actor before the turn
  std::uint32_t number(MicrobatchId);
  std::int64_t distance(ActionId a) const { return std::int64_t{a.value} - from.value; }
};

class KnownTurns {
 public:
  KnownTurns(Emitter& e, ActorId actor) : e_(e), p_(e.program), actor_(actor) {}

  // Places a turn like one that is known, which leaves what that did; false: none is known.
  bool repeat(const TurnKey&, const Standing&, LeftOver&);
  // Places a turn that was just written out, and notes how one like it is made.
  void add(const TurnKey&, Standing&, const std::vector<Instruction>&, const LeftOver&);

 private:
  struct Message {
    ValueId value;
    std::uint32_t microbatch = 0;  // of the key's
    ActorId target;
  };
  struct Begun {  // a collective: by the turn itself, or left to it
    bool here = true;
    std::uint32_t number = 0;
  };
  struct LeftStart {
    Run run;  // its microbatch is one of the key's
    std::optional<std::int64_t> action = {};
    Begun collective;
  };
  struct LeftSum {
    Begun collective;
    TaskId scatter;
    PieceId piece;
    std::uint32_t microbatch = 0;
  };
  struct Known {
    TurnCodeId code;
    std::vector<std::uint32_t> microbatches = {};  // of the key's
    std::vector<std::int64_t> actions = {};        // how far from the turn's first
    std::vector<Message> messages = {};
    std::vector<Begun> collectives = {};
    std::uint32_t begun = 0;  // collectives
    std::vector<LeftStart> starts = {};
    std::optional<LeftSum> settles = {};
  };
  static Begun begun_as(CollectiveId, const Standing&);
  static CollectiveId collective(const Begun&, const Standing&);
  static ActionId action(std::int64_t distance, const Standing&);
  void note_left(Known&, Standing&, const LeftOver&) const;

  Emitter& e_;
  Program& p_;
  const ActorId actor_;
  std::map<TurnKey, Known> known_;
};

}  // namespace stretto
