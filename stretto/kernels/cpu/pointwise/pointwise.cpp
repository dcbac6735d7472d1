#include "stretto/kernels/cpu/pointwise/pointwise.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "stretto/base/bf16.h"
#include "stretto/kernels/cpu/pauses.h"
#include "stretto/ops/fused.h"

namespace stretto {
namespace {

// Not a multiple of 4096: registers at equal offsets would share the few lines of one set of the first-level cache.
constexpr std::size_t register_bytes = tile_length * 8 + 192;

// Registers hold bf16 values as f32. Steps compute in f32; a result of type bf16 is rounded before another step reads it.
struct Step {
  Tile tile = nullptr;
  bool rounds = false;
  std::vector<int> args;  // registers
  int out = 0;            // register
  int result = -1;        // of the group
};
struct Source {  // an operand of the group
  int reg = 0;
  DType dtype = f32;
  std::vector<i64> strides;  // per collapsed dim, outermost first
};
struct Result {
  int reg = 0;
  DType dtype = f32;
  std::vector<i64> strides;
};
struct Fill {
  int reg = 0;
  DType dtype = f32;
  double value = 0;
};
struct Plan {
  std::vector<i64> sizes;  // collapsed iteration space
  std::vector<Step> steps;
  std::vector<Source> sources;
  std::vector<Result> results;
  std::vector<Fill> fills;
  bool accumulate = false;
};

template <class T>
void fill(void* to, T value) {
  std::fill_n(static_cast<T*>(to), tile_length, value);
}

void fill(void* to, DType t, double value) {
  if (t == f32)
    fill(to, float(value));
  else if (t == bf16)
    fill(to, float(BF16(value)));
  else if (t == f64)
    fill(to, value);
  else
    fill(to, std::int32_t(value));
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
    std::memcpy(o, a, std::size_t(n) * sizeof(T));
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
    std::memcpy(o, a, std::size_t(n) * sizeof(T));
}

void round_register(void* r, i64 n) {
  float* x = static_cast<float*>(__builtin_assume_aligned(r, 64));
  for (i64 i = 0; i < n; ++i) x[i] = BF16(x[i]);
}

bool aligned(const std::byte* p) { return reinterpret_cast<std::uintptr_t>(p) % 64 == 0; }

void run_plan(const Plan& plan, const Args& args) {
  alignas(64) std::byte memory[fused_registers * register_bytes];
  std::array<void*, fused_registers> reg;
  const auto home = [&](int r) { return memory + std::size_t(r) * register_bytes; };
  for (const Fill& f : plan.fills) fill(home(f.reg), f.dtype, f.value), reg[std::size_t(f.reg)] = home(f.reg);

  const std::size_t rank = plan.sizes.size();
  const i64 inner = plan.sizes[rank - 1];
  i64 rows = 1;
  for (std::size_t d = 0; d + 1 < rank; ++d) rows *= plan.sizes[d];
  std::array<i64, 16> index{};
  // A result that shares memory with an operand is written only after the whole tile is computed.
  std::array<bool, fused_registers> deferred{};
  for (std::size_t k = 0; k < plan.results.size(); ++k) {
    deferred[k] = plan.accumulate && k == 0 && !args.now.overwrite;
    for (std::size_t i = 0; i < plan.sources.size(); ++i) deferred[k] = deferred[k] || args.in[i] == args.out[k];
    for (std::size_t j = 0; j < k; ++j) deferred[k] = deferred[k] || plan.results[j].reg == plan.results[k].reg;
  }
  const void* operands[4];
  Pauses pauses(args);

  for (i64 row = 0; row < rows; ++row) {
    std::array<const std::byte*, fused_registers> from;
    std::array<std::byte*, fused_registers> to;
    for (std::size_t i = 0; i < plan.sources.size(); ++i) {
      i64 at = 0;
      for (std::size_t d = 0; d + 1 < rank; ++d) at += index[d] * plan.sources[i].strides[d];
      from[i] = args.in[i] + at * i64(size_of(plan.sources[i].dtype));
    }
    for (std::size_t k = 0; k < plan.results.size(); ++k) {
      i64 at = 0;
      for (std::size_t d = 0; d + 1 < rank; ++d) at += index[d] * plan.results[k].strides[d];
      to[k] = args.out[k] + at * i64(size_of(plan.results[k].dtype));
    }
    for (i64 begin = 0; begin < inner; begin += tile_length) {
      const i64 n = std::min(tile_length, inner - begin), padded = (n + 15) / 16 * 16;
      pauses.after(n * i64(plan.steps.size()));
      for (std::size_t i = 0; i < plan.sources.size(); ++i) {
        const Source& s = plan.sources[i];
        const i64 stride = s.strides[rank - 1];
        const std::byte* p = from[i] + begin * stride * i64(size_of(s.dtype));
        std::byte* r = home(s.reg);
        if (stride == 1 && n == padded && aligned(p) && s.dtype != bf16) {
          reg[std::size_t(s.reg)] = const_cast<std::byte*>(p);
          continue;
        }
        reg[std::size_t(s.reg)] = r;
        if (stride == 0) {
          if (begin > 0) continue;  // filled for this row already
          if (s.dtype == f64)
            fill(r, *reinterpret_cast<const double*>(p));
          else if (s.dtype == f32)
            fill(r, *reinterpret_cast<const float*>(p));
          else if (s.dtype == bf16)
            fill(r, float(*reinterpret_cast<const BF16*>(p)));
          else
            fill(r, *reinterpret_cast<const std::int32_t*>(p));
        } else if (s.dtype == f64)
          gather<double>(r, p, stride, n, padded);
        else if (s.dtype == f32)
          gather<float>(r, p, stride, n, padded);
        else if (s.dtype == bf16)
          gather<BF16>(r, p, stride, n, padded);
        else
          gather<std::int32_t>(r, p, stride, n, padded);
      }
      // A result is computed where it belongs. Its register may have held other steps, of a wider type, before.
      std::array<std::byte*, fused_registers> there;
      for (std::size_t k = 0; k < plan.results.size(); ++k) {
        const Result& r = plan.results[k];
        std::byte* p = to[k] + begin * r.strides[rank - 1] * i64(size_of(r.dtype));
        const bool fits = r.strides[rank - 1] == 1 && n == padded && aligned(p) && r.dtype != bf16;
        there[k] = !deferred[k] && fits ? p : nullptr;
      }
      for (const Step& s : plan.steps) {
        for (std::size_t a = 0; a < s.args.size(); ++a) operands[a] = reg[std::size_t(s.args[a])];
        std::byte* const own = s.result < 0 ? nullptr : there[std::size_t(s.result)];
        reg[std::size_t(s.out)] = own ? own : home(s.out);
        s.tile(reg[std::size_t(s.out)], operands, padded);
        if (s.rounds) round_register(reg[std::size_t(s.out)], padded);
      }
      for (std::size_t k = 0; k < plan.results.size(); ++k) {
        const Result& r = plan.results[k];
        const std::byte* have = static_cast<const std::byte*>(reg[std::size_t(r.reg)]);
        std::byte* p = to[k] + begin * r.strides[rank - 1] * i64(size_of(r.dtype));
        if (have == p) continue;
        const bool add = plan.accumulate && k == 0 && !args.now.overwrite;
        if (r.dtype == f64)
          scatter<double>(p, have, r.strides[rank - 1], n, add);
        else if (r.dtype == f32)
          scatter<float>(p, have, r.strides[rank - 1], n, add);
        else if (r.dtype == bf16)
          scatter<BF16>(p, have, r.strides[rank - 1], n, add);
        else
          scatter<std::int32_t>(p, have, r.strides[rank - 1], n, add);
      }
    }
    for (std::size_t d = rank - 1; d-- > 0;) {
      if (++index[d] < plan.sizes[d]) break;
      index[d] = 0;
    }
  }
}

// Neighbouring dims become one where every operand and result steps through them evenly.
void collapse(Plan& plan, const Call& call, const DimSet& space) {
  std::vector<std::vector<i64>*> all;
  for (std::size_t i = 0; i < plan.sources.size(); ++i) all.push_back(&plan.sources[i].strides);
  for (Result& r : plan.results) all.push_back(&r.strides);
  const auto view = [&](std::size_t i) -> const View& {
    return i < plan.sources.size() ? call.in[i] : call.out[i - plan.sources.size()];
  };
  for (DimId d : space) {
    const i64 size = call.out[0].size(d);
    if (size == 1) continue;
    bool merge = !plan.sizes.empty();
    for (std::size_t i = 0; i < all.size() && merge; ++i) merge = all[i]->back() == view(i).stride(d) * size;
    if (merge)
      plan.sizes.back() *= size;
    else
      plan.sizes.push_back(size);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!merge) all[i]->push_back(0);
      all[i]->back() = view(i).stride(d);
    }
  }
  if (plan.sizes.empty()) {
    plan.sizes.push_back(1);
    for (auto* s : all) s->push_back(1);
  }
  STRETTO_ASSERT(plan.sizes.size() <= 16);
}

Runner prepare(const Call& call) {
  Plan plan{.accumulate = call.accumulate};
  int next = 0;
  for (const View& v : call.in) plan.sources.push_back({.reg = next++, .dtype = v.dtype});
  std::vector<DType> types;
  for (const View& v : call.in) types.push_back(v.dtype);
  DimSet space = call.out[0].dims;
  const auto tile_of = [&](const Op& op, std::vector<DType> in, DType out) {
    for (DType& t : in) t = wide(t);
    const Tile t = cpu_tile(op, in, wide(out));
    if (!t) throw Error(op.name, "has no kernel for {}", name_of(out)).hint("cast the operands to f32 or f64");
    return t;
  };
  if (call.node.attrs.is<FusedAttrs>()) {
    const FusedAttrs& a = call.attrs<FusedAttrs>();
    const int n = int(call.in.size());
    space = a.space;
    // Registers of steps are reused after their last reader; results keep theirs.
    std::vector<int> last(a.steps.size(), -1), reg_of(a.steps.size(), -1), free;
    std::size_t at = 0;
    for (std::size_t k = 0; k < a.steps.size(); ++k)
      for (i64 c = 0; c < a.counts[k]; ++c, ++at)
        if (a.args[at] >= n) last[std::size_t(a.args[at] - n)] = int(k);
    std::vector<bool> read(a.steps.size());
    for (std::size_t k = 0; k < read.size(); ++k) read[k] = last[k] >= 0;
    for (i64 r : a.results) last[std::size_t(r)] = int(a.steps.size());
    at = 0;
    for (std::size_t k = 0; k < a.steps.size(); ++k) {
      Step step;
      std::vector<DType> in;
      std::vector<std::size_t> dying;
      for (i64 c = 0; c < a.counts[k]; ++c, ++at) {
        const i64 arg = a.args[at];
        in.push_back(arg < n ? types[std::size_t(arg)] : a.dtypes[std::size_t(arg - n)]);
        step.args.push_back(arg < n ? plan.sources[std::size_t(arg)].reg : reg_of[std::size_t(arg - n)]);
        if (arg >= n && last[std::size_t(arg - n)] == int(k)) dying.push_back(std::size_t(arg - n));
      }
      const bool is_constant = a.steps[k] == "constant";
      if (is_constant || free.empty()) free.push_back(next++);  // a constant is filled once: its register is its own
      const int r = reg_of[k] = free.back();
      free.pop_back();
      if (is_constant) {
        plan.fills.push_back({r, a.dtypes[k], a.values[k]});
      } else {
        step.tile = tile_of(*op_named(a.steps[k]), in, a.dtypes[k]);
        step.out = r;
        step.rounds = a.dtypes[k] == bf16 && read[k];  // what is only stored is rounded there
        const auto result = std::find(a.results.begin(), a.results.end(), i64(k));
        if (result != a.results.end()) step.result = int(result - a.results.begin());
        plan.steps.push_back(std::move(step));
        for (std::size_t d : dying)
          if (a.steps[d] != "constant" && std::find(free.begin(), free.end(), reg_of[d]) == free.end())
            free.push_back(reg_of[d]);
      }
    }
    for (i64 r : a.results) plan.results.push_back({.reg = reg_of[std::size_t(r)], .dtype = a.dtypes[std::size_t(r)]});
  } else {
    Step step{.tile = tile_of(*call.node.op, types, call.out[0].dtype), .out = next++, .result = 0};
    for (int i = 0; i < int(types.size()); ++i) step.args.push_back(i);
    plan.results.push_back({.reg = step.out, .dtype = call.out[0].dtype});
    plan.steps.push_back(std::move(step));
  }
  STRETTO_ASSERT(next <= fused_registers, "fuse/ makes smaller groups");
  collapse(plan, call, space);
  return [plan = std::move(plan)](const Args& args) { run_plan(plan, args); };
}

constexpr Kernel kernels[] = {{.name = "tiles", .prepare = &prepare}};

}  // namespace

std::span<const Kernel> pointwise_kernels() { return kernels; }
std::span<const Kernel> fused_kernels() { return kernels; }

}  // namespace stretto
