#include "stretto/kernels/cpu/pointwise/pointwise.h"

#include <algorithm>

#include "stretto/kernels/cpu/pointwise/adamw.h"
#include "stretto/ops/fused.h"

namespace stretto {
namespace {

Tile tile_of(const Op& op, std::vector<DType> in, DType out) {
  for (DType& t : in) t = wide(t);
  const Tile t = cpu_tile(op, in, wide(out));
  if (!t) throw Error(op.name, "has no kernel for {}", name_of(out)).hint("cast the operands to f32 or f64");
  return t;
}

// A fused group: who reads what until when, and registers for it.
class TileGroup {
 public:
  TileGroup(const Call& call, TilePlan& plan)
      : group_(call.attrs<FusedAttrs>()),
        plan_(plan),
        operands_(std::ssize(call.in)),
        registers_(call.in.size()),
        last_(group_.steps.size()),
        reg_of_(group_.steps.size()) {
    for_args([&](std::size_t step, i64 arg) {
      if (arg >= operands_) last_[arg - operands_] = step;
    });
  }

  // How many registers there are.
  std::size_t add_steps() {
    std::vector<std::vector<i64>> args(group_.steps.size());
    for_args([&](std::size_t step, i64 arg) { args[step].push_back(arg); });
    for (std::size_t k = 0; k < group_.steps.size(); ++k) {
      if (group_.steps[k] == "constant")
        plan_.fills.push_back({add_register(k), group_.dtypes[k], group_.values[k]});  // once: the register is its own
      else
        add_call(k, args[k]);
    }
    for (i64 r : group_.results) plan_.results.push_back({.reg = reg_of_[r], .dtype = group_.dtypes[r]});
    return registers_;
  }

 private:
  template <class Visit>
  void for_args(Visit visit) const {
    for (std::size_t k = 0, at = 0; k < group_.steps.size(); ++k)
      for (i64 c = 0; c < group_.counts[k]; ++c) visit(k, group_.args[at++]);
  }
  std::optional<std::size_t> result_of(std::size_t step) const {
    const auto it = std::find(group_.results.begin(), group_.results.end(), i64(step));
    return it == group_.results.end() ? std::nullopt : std::optional<std::size_t>(it - group_.results.begin());
  }

  int add_register(std::size_t step) { return reg_of_[step] = int(registers_++); }
  int take_register(std::size_t step) {
    if (free_.empty()) return add_register(step);
    reg_of_[step] = free_.back();
    free_.pop_back();
    return reg_of_[step];
  }
  // Registers are used again after their last reader; constants and results keep theirs.
  void release(i64 arg, std::size_t reader) {
    if (arg < operands_) return;
    const std::size_t step = arg - operands_;
    if (last_[step] != reader || result_of(step) || group_.steps[step] == "constant") return;
    if (std::find(free_.begin(), free_.end(), reg_of_[step]) == free_.end()) free_.push_back(reg_of_[step]);
  }

  void add_call(std::size_t k, const std::vector<i64>& args) {
    TileCall call;
    std::vector<DType> in;
    for (i64 arg : args) {
      const bool given = arg < operands_;
      in.push_back(given ? plan_.sources[arg].dtype : group_.dtypes[arg - operands_]);
      call.args.push_back(given ? plan_.sources[arg].reg : reg_of_[arg - operands_]);
    }
    call.tile = tile_of(*op_named(group_.steps[k]), in, group_.dtypes[k]);
    call.out = take_register(k);
    call.rounds = group_.dtypes[k] == bf16 && last_[k].has_value();  // what is only stored is rounded there
    call.result = result_of(k);
    plan_.calls.push_back(std::move(call));
    for (i64 arg : args) release(arg, k);
  }

  const FusedAttrs& group_;
  TilePlan& plan_;
  i64 operands_;
  std::size_t registers_;
  std::vector<std::optional<std::size_t>> last_;  // per step: its last reader
  std::vector<int> reg_of_, free_;                // per step; those that nobody needs any more
};

// Neighbouring dims become one where every operand and result steps through them evenly.
void collapse(TilePlan& plan, const Call& call, const DimSet& space) {
  std::vector<std::vector<i64>*> all;
  for (TileOperand& s : plan.sources) all.push_back(&s.strides);
  for (TileOperand& r : plan.results) all.push_back(&r.strides);
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
  STRETTO_ASSERT(plan.sizes.size() <= most_tile_dims);
}

// An op alone is a group of one.
std::size_t add_one(const Call& call, TilePlan& plan) {
  TileCall one{.out = int(call.in.size()), .result = 0};
  std::vector<DType> types;
  for (const TileOperand& s : plan.sources) one.args.push_back(s.reg), types.push_back(s.dtype);
  one.tile = tile_of(*call.node.op, types, call.out[0].dtype);
  plan.results.push_back({.reg = one.out, .dtype = call.out[0].dtype});
  plan.calls.push_back(std::move(one));
  return call.in.size() + 1;
}

TilePlan plan_of(const Call& call) {
  TilePlan plan{.accumulate = call.accumulate};
  for (int reg = 0; const View& v : call.in) plan.sources.push_back({.reg = reg++, .dtype = v.dtype});
  const bool fused = call.node.attrs.is<FusedAttrs>();
  const std::size_t registers = fused ? TileGroup(call, plan).add_steps() : add_one(call, plan);
  STRETTO_ASSERT(registers <= fused_registers, "fuse/ makes smaller groups");
  collapse(plan, call, fused ? call.attrs<FusedAttrs>().space : call.out[0].dims);
  return plan;
}

Runner prepare(const Call& call) {
  return [plan = plan_of(call)](const Args& args) { run_tiles(plan, args); };
}

std::optional<AdamwUpdate> update_of(const Call& call) { return adamw_update(call.attrs<FusedAttrs>(), plan_of(call)); }
Runner prepare_update(const Call& call) {
  return [u = update_of(call).value()](const Args& args) { run_adamw(u, args); };
}

constexpr Kernel kernels[] = {{.name = "tiles", .prepare = &prepare}};
constexpr Kernel group_kernels[] = {
    {.name = "adamw", .accepts = [](const Call& c) { return update_of(c).has_value(); }, .prepare = &prepare_update},
    {.name = "tiles", .prepare = &prepare}};

}  // namespace

std::span<const Kernel> pointwise_kernels() { return kernels; }
std::span<const Kernel> fused_kernels() { return group_kernels; }

}  // namespace stretto
