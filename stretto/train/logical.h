// Parameters as the user sees them: without padding, independent of where they lie.
//
//   Array all = logical_array(param);
//   for (every rank) read_logical(param, stored_part(compiled, i, coordinates), reading(worker, arena, at), all);
#pragma once
#include <functional>

#include "stretto/base/array.h"
#include "stretto/checkpoint/fragment.h"
#include "stretto/compile/compile.h"
#include "stretto/runtime/worker.h"

namespace stretto {

// Which elements of a parameter some memory holds: of a box of it, padding included, `count` in order from `first` on.
struct StoredPart {
  std::vector<i64> sizes, offsets;  // of the box, per dim
  i64 first = 0, count = 0;
  bool copy = false;  // a rank with smaller coordinates holds the same
};
StoredPart whole_part(const CompiledParam&);
// What a rank keeps of it between steps; `updated`: of its optimizer state, and of its gradient after a step.
StoredPart stored_part(const Compiled&, ParamId, const Coordinates&, bool updated = false);

// Logical values are f32 where a parameter is bf16: of its master, its gradient, its states. What is read here has that
// type, whatever it has in memory; what is written may go to bf16, `as`, and is rounded.

// To be filled by read_logical; `memory` is used again.
Array logical_array(const CompiledParam&, Array memory = {});
// Bytes of a part, from its first element on.
using ReadBytes = std::function<void(std::size_t at, void* to, std::size_t bytes)>;
using WriteBytes = std::function<void(std::size_t at, const void* from, std::size_t bytes)>;
ReadBytes reading(const Worker&, Arena, u64 offset);
ReadBytes widened(ReadBytes bf16_elements);                       // the same as f32
ReadBytes parameter_in(const Compiled&, const Worker&, ParamId);  // beside its master; null: it is not on this rank
WriteBytes writing(Worker&, Arena, u64 offset);

// A function of seed, name and logical index only. Padding stays zero.
void initialise(const CompiledParam&, const StoredPart&, u64 seed, const WriteBytes&, DType as);
void read_logical(const CompiledParam&, const StoredPart&, const ReadBytes&, Array& to);
void write_logical(const CompiledParam&, const StoredPart&, const Array&, const WriteBytes&,
                   DType as);  // checks its type

// Where the elements of a part lie in the logical array, padding left out; its count is 0 when there are none.
Fragment fragment_of(const CompiledParam&, const StoredPart&);
// These elements, in order; `memory` is used again.
Array read_fragment(const CompiledParam&, const StoredPart&, const ReadBytes&, Array memory = {});

}  // namespace stretto
