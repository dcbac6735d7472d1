#include <algorithm>
#include <array>
#include <cstring>

#include "stretto/base/bf16.h"
#include "stretto/kernels/cpu/pauses.h"
#include "stretto/kernels/cpu/pointwise/tile_plan.h"
#include "stretto/ops/fused.h"

namespace stretto {
namespace {

// Not a multiple of 4096: registers at equal offsets would share the few lines of one set of the first-level cache.
constexpr std::size_t register_bytes = tile_length * 8 + 192;

template <class F>
void with_type(DType t, F f) {
  if (t == f32)
    f.template operator()<float>();
  else if (t == bf16)
    f.template operator()<BF16>();
  else if (t == f64)
    f.template operator()<double>();
  else
    f.template operator()<std::int32_t>();
}

template <class T>
void fill(void* to, T value) {
  std::fill_n(static_cast<Wide<T>*>(to), tile_length, Wide<T>(value));
}

template <class T>
void gather(std::byte* to, const std::byte* from, i64 stride, i64 n, i64 padded) {
  Wide<T>* o = reinterpret_cast<Wide<T>*>(to);
  const T* a = reinterpret_cast<const T*>(from);
  if (stride != 1)
    for (i64 i = 0; i < n; ++i) o[i] = a[i * stride];
  else if constexpr (std::is_same_v<T, BF16>)
    widen(a, n, o);
  else
    std::memcpy(o, a, n * sizeof(T));
  for (i64 i = n; i < padded; ++i) o[i] = Wide<T>(1);  // harmless for every function
}

template <class T>
void scatter(std::byte* to, const std::byte* from, i64 stride, i64 n, bool add) {
  T* o = reinterpret_cast<T*>(to);
  const Wide<T>* a = reinterpret_cast<const Wide<T>*>(from);
  if (add)
    for (i64 i = 0; i < n; ++i) o[i * stride] = T(o[i * stride] + a[i]);
  else if (stride != 1)
    for (i64 i = 0; i < n; ++i) o[i * stride] = T(a[i]);
  else if constexpr (std::is_same_v<T, BF16>)
    narrow(a, n, o);
  else
    std::memcpy(o, a, n * sizeof(T));
}

void round_register(void* r, i64 n) {
  float* x = static_cast<float*>(__builtin_assume_aligned(r, 64));
  for (i64 i = 0; i < n; ++i) x[i] = BF16(x[i]);
}

bool aligned(const std::byte* p) { return reinterpret_cast<std::uintptr_t>(p) % 64 == 0; }

// Part of a row of the innermost dim. What tiles compute is padded to whole vectors.
struct TileRange {
  i64 begin, n, padded;
};

// One call: the iteration space row by row, each in tiles.
class TileRun {
 public:
  TileRun(const TilePlan& plan, const Args& args) : plan_(plan), args_(args), last_(plan.sizes.size() - 1) {
    for (const TileFill& f : plan.fills) {
      reg_[f.reg] = home(f.reg);
      with_type(f.dtype, [&]<class T>() { fill(home(f.reg), T(f.value)); });
    }
    find_deferred();
  }

  void run() {
    const i64 inner = plan_.sizes[last_], calls = std::ssize(plan_.calls);
    i64 rows = 1;
    for (std::size_t d = 0; d < last_; ++d) rows *= plan_.sizes[d];
    Pauses pauses(args_);
    for (i64 row = 0; row < rows; ++row, next_row()) {
      for (std::size_t i = 0; i < plan_.sources.size(); ++i) from_[i] = args_.in[i] + row_at(plan_.sources[i]);
      for (std::size_t k = 0; k < plan_.results.size(); ++k) to_[k] = args_.out[k] + row_at(plan_.results[k]);
      for (i64 begin = 0; begin < inner; begin += tile_length) {
        const i64 n = std::min(tile_length, inner - begin);
        const TileRange range{begin, n, (n + 15) / 16 * 16};
        pauses.after(n * calls);
        for (std::size_t i = 0; i < plan_.sources.size(); ++i) load(i, range);
        compute(range);
        for (std::size_t k = 0; k < plan_.results.size(); ++k) store(k, range);
      }
    }
  }

 private:
  std::byte* home(int r) { return memory_ + r * register_bytes; }
  i64 stride_of(const TileOperand& o) const { return o.strides[last_]; }
  i64 bytes_to(const TileOperand& o, i64 elements) const { return elements * i64(size_of(o.dtype)); }

  i64 row_at(const TileOperand& o) const {
    i64 at = 0;
    for (std::size_t d = 0; d < last_; ++d) at += index_[d] * o.strides[d];
    return bytes_to(o, at);
  }
  void next_row() {
    for (std::size_t d = last_; d-- > 0;) {
      if (++index_[d] < plan_.sizes[d]) break;
      index_[d] = 0;
    }
  }

  bool adds(std::size_t k) const { return plan_.accumulate && k == 0 && !args_.now.overwrite; }

  // A result that shares memory with an operand is written only after the whole tile is computed.
  void find_deferred() {
    for (std::size_t k = 0; k < plan_.results.size(); ++k) {
      deferred_[k] = adds(k);
      for (std::size_t i = 0; i < plan_.sources.size(); ++i) deferred_[k] |= args_.in[i] == args_.out[k];
      for (std::size_t j = 0; j < k; ++j) deferred_[k] |= plan_.results[j].reg == plan_.results[k].reg;
    }
  }

  // May a register be this memory itself?
  bool in_place(const TileOperand& o, const std::byte* p, const TileRange& t) const {
    return stride_of(o) == 1 && t.n == t.padded && aligned(p) && o.dtype != bf16;
  }

  void load(std::size_t i, const TileRange& t) {
    const TileOperand& s = plan_.sources[i];
    const i64 stride = stride_of(s);
    const std::byte* p = from_[i] + bytes_to(s, t.begin * stride);
    if (in_place(s, p, t)) {
      reg_[s.reg] = const_cast<std::byte*>(p);
      return;
    }
    std::byte* const r = home(s.reg);
    reg_[s.reg] = r;
    if (stride != 0)
      with_type(s.dtype, [&]<class T>() { gather<T>(r, p, stride, t.n, t.padded); });
    else if (t.begin == 0)  // else it is filled for this row already
      with_type(s.dtype, [&]<class T>() { fill(r, *reinterpret_cast<const T*>(p)); });
  }

  std::byte* place_of(std::size_t k, const TileRange& t) const {
    return to_[k] + bytes_to(plan_.results[k], t.begin * stride_of(plan_.results[k]));
  }

  // A result is computed where it belongs. Its register may have held other values, of a wider type, before.
  void compute(const TileRange& t) {
    std::array<std::byte*, fused_registers> there;
    for (std::size_t k = 0; k < plan_.results.size(); ++k) {
      std::byte* const p = place_of(k, t);
      there[k] = !deferred_[k] && in_place(plan_.results[k], p, t) ? p : nullptr;
    }
    const void* operands[4];
    for (const TileCall& c : plan_.calls) {
      for (std::size_t a = 0; a < c.args.size(); ++a) operands[a] = reg_[c.args[a]];
      std::byte* const own = c.result ? there[*c.result] : nullptr;
      void* const out = own ? own : home(c.out);
      reg_[c.out] = out;
      c.tile(out, operands, t.padded);
      if (c.rounds) round_register(out, t.padded);
    }
  }

  void store(std::size_t k, const TileRange& t) {
    const TileOperand& r = plan_.results[k];
    const std::byte* have = static_cast<const std::byte*>(reg_[r.reg]);
    std::byte* const p = place_of(k, t);
    if (have != p) with_type(r.dtype, [&]<class T>() { scatter<T>(p, have, stride_of(r), t.n, adds(k)); });
  }

  const TilePlan& plan_;
  const Args& args_;
  std::size_t last_;                                    // the innermost dim
  std::array<i64, most_tile_dims> index_{};             // of the row
  std::array<bool, fused_registers> deferred_{};        // per result
  std::array<const std::byte*, fused_registers> from_;  // where the row starts, per source
  std::array<std::byte*, fused_registers> to_;          // ... and per result
  std::array<void*, fused_registers> reg_;              // where a register is now: at home, or in an operand's memory
  alignas(64) std::byte memory_[fused_registers * register_bytes];
};

}  // namespace

void run_tiles(const TilePlan& plan, const Args& args) { TileRun(plan, args).run(); }

}  // namespace stretto
