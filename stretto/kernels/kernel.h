// Kernels: what computes an op on a device. Per op an ordered list of implementations (kernels/cpu/<op>.cpp, or a tile
// in kernels/cpu/pointwise/; one line in kernels/cpu/kernels.def); the first that accepts the arguments is used, the
// last is the plain reference that is correct for everything. `prepare` looks at shapes and strides once; what it
// returns is called every time.
//
//   Runner run = choose_kernel(call).prepare(call);     // before step 0
//   run({.in = in, .out = out, .scratch = scratch, .now = now});
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "stretto/ir/op.h"
#include "stretto/ir/view.h"

namespace stretto {

// What may change from one run of a task to the next.
struct Now {
  u64 seed = 0;
  i64 step = 0;
  i64 first_row = 0;      // logical index, in the step's batch, of this microbatch's first row
  bool overwrite = true;  // the first time in a step an accumulator is written, not added to
  u64 key = 0;            // of this node's random numbers: hash of its scoped name
};

// Which launch, in the words of whoever launches; a fault comes back with it.
struct Launch {
  std::uint32_t instruction = 0, call = 0;
};
// What a kernel found wrong in its data: an id outside of [0, limit). It goes on, with NaN where it can, and does not
// throw from where it runs; the first of a step is kept. The op says it in words (Op::out_of_range).
struct KernelFault {
  Launch launch;
  i64 value = 0, limit = 0;
};

class Team;

struct Args {
  std::byte* const* in = nullptr;
  std::byte* const* out = nullptr;
  std::byte* scratch = nullptr;
  const Now& now;
  // What a long kernel calls about twice a millisecond, so that messages move on meanwhile; may be null.
  void (*poll)(void*) = nullptr;
  void* poller = nullptr;
  Launch launch = {};
  std::optional<KernelFault>* fault = nullptr;  // the device's
  // The threads that a kernel's work may be shared among; null: the one that calls. Each has scratch of its own.
  Team* team = nullptr;
  std::size_t scratch_each = 0;  // bytes from one's to the next one's
  // Whether an id, a label or a position is one; the fault is noted if not.
  bool within(i64 value, i64 limit) const {
    if (value >= 0 && value < limit) return true;
    if (fault && !*fault) *fault = {launch, value, limit};
    return false;
  }
  void pause() const {
    if (poll) poll(poller);
  }
  template <class T>
  const T* input(int i) const {
    return reinterpret_cast<const T*>(in[i]);
  }
  template <class T>
  T* output(int i = 0) const {
    return reinterpret_cast<T*>(out[i]);
  }
};
using Runner = std::function<void(const Args&)>;

struct Call {
  const Graph& graph;
  const Node& node;
  std::vector<View> in, out;
  bool accumulate = false;  // add to result 0 unless now.overwrite
  OpCall op() const { return {graph, node}; }
  template <class T>
  const T& attrs() const {
    return node.attrs.as<T>();
  }
};

struct Kernel {
  std::string_view name;
  bool (*accepts)(const Call&) = nullptr;  // null: accepts everything
  Runner (*prepare)(const Call&) = nullptr;
  bool shares = false;  // it shares its work among Args::team; others are cut into calls (cpu/call_parts.h)
};
inline bool accepts(const Kernel& k, const Call& call) { return !k.accepts || k.accepts(call); }

std::span<const Kernel> cpu_kernels(const Op&);  // ordered; empty for ops that never run (views, sources)
const Kernel& choose_kernel(const Call&);        // the first that accepts

// Pointwise ops: one function on tiles per op and type, shared by the op alone and by fused groups. n is a multiple of
// 16 and the tiles are 64-byte aligned and padded: tails are computed like bodies, so that an element's bits never
// depend on where it stands.
using Tile = void (*)(void* out, const void* const* in, i64 n);
Tile cpu_tile(const Op&, std::span<const DType> in, DType out);  // null when there is none

}  // namespace stretto
