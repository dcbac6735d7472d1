// What the calls of a piece's task touch, and whose it is: the lifetimes of a stage's buffers are put together from
// these (turn_buffers.h).
//
//   const TaskBuffers all = buffers_of(program, task);
//   for (std::uint32_t b : all.touched_by(*program.calls[task], CallId(0))) bytes += all.list[b].bytes;
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "stretto/program/program.h"

namespace stretto {

struct PieceBuffer {
  enum class Kind : std::uint8_t {
    temporary,
    own,        // a value between tasks of the piece
    input,      // what the piece before hands on, made by its F
    again,      // the same, made by its R
    gradient,   // of what the piece hands on
    handed,     // made here: the next piece's input, by an F or an R
    sent_back,  // made here: the gradient of the piece before
    gathered,   // a parameter that is whole for a while
  } kind = Kind::temporary;
  Part maker = Part::F;      // of an own one
  std::uint32_t number = 0;  // among what the maker makes for tasks of its own piece, or of others
  u64 bytes = 0;
};

struct TaskBuffers {
  std::vector<PieceBuffer> list = {};
  double of_body = 0;  // how many the body has, whatever they are
  u64 block = 0;       // temporaries, packed
  std::vector<std::uint32_t> touched_by(const Calls&, CallId) const;

  std::vector<std::optional<std::uint32_t>> at = {};  // where in `list` each of the body's is
};
TaskBuffers buffers_of(const Program&, TaskId);

}  // namespace stretto
