#include "stretto/kernels/cpu/pointwise/adamw.h"

#include <algorithm>
#include <cmath>

#include "stretto/base/bf16.h"
#include "stretto/kernels/cpu/pauses.h"

namespace stretto {
namespace {

// Values of a group are its operands, then the results of its steps.
class GroupReader {
 public:
  GroupReader(const FusedAttrs& group, const TilePlan& plan)
      : group_(group), plan_(plan), operands_(std::ssize(plan.sources)) {
    i64 at = 0;
    for (const i64 n : group.counts) first_.push_back(at), at += n;
  }

  // Is the value made by that op? Then of these.
  bool made(i64 value, std::string_view op, std::initializer_list<i64*> of) const {
    const i64 step = value - operands_;
    if (step < 0 || group_.steps[std::size_t(step)] != op || group_.counts[std::size_t(step)] != std::ssize(of))
      return false;
    for (i64 at = first_[std::size_t(step)]; i64 * arg : of) *arg = group_.args[std::size_t(at++)];
    return true;
  }
  bool row(i64 value, int& operand) const {
    operand = int(value);
    return is_source(value, f32, 1);
  }
  bool number(i64 value, AdamwNumber& to) const {
    if (value >= operands_ && group_.steps[std::size_t(value - operands_)] == "constant")
      return to.value = group_.values[std::size_t(value - operands_)], true;
    to.operand = int(value);
    return is_source(value, f32, 0);
  }
  bool is_source(i64 value, DType t, i64 stride) const {
    if (value >= operands_) return false;
    const TileOperand& o = plan_.sources[std::size_t(value)];
    return o.dtype == t && o.strides == std::vector{stride};
  }
  i64 result(std::size_t k) const { return operands_ + group_.results[k]; }

 private:
  const FusedAttrs& group_;
  const TilePlan& plan_;
  i64 operands_;
  std::vector<i64> first_;  // per step, in args
};

// What the group makes before it asks whether the step was finite.
struct Made {
  i64 param = 0, m = 0, v = 0, grad = 0;
};

// beta * before + rest * now
bool reads_average(const GroupReader& g, i64 value, AdamwNumber& beta, AdamwNumber& rest, int& before, i64& now) {
  i64 old_part, new_part, old, a, b;
  return g.made(value, "add", {&old_part, &new_part}) && g.made(old_part, "mul", {&old, &a}) &&
         g.made(new_part, "mul", {&now, &b}) && g.row(old, before) && g.number(a, beta) && g.number(b, rest);
}

// param * kept - size * (m / (sqrt(v) * root + eps))
bool reads_param(const GroupReader& g, AdamwUpdate& u, Made& to) {
  i64 kept, change, size, ratio, under, eps, scaled, root, length, param, factor;
  if (!g.made(to.param, "sub", {&kept, &change})) return false;
  if (g.made(kept, "mul", {&param, &factor})) {
    if (!g.number(factor, u.kept)) return false;
    kept = param;
  }
  return g.row(kept, u.param) && g.made(change, "mul", {&size, &ratio}) && g.made(ratio, "div", {&to.m, &under}) &&
         g.made(under, "add", {&scaled, &eps}) && g.made(scaled, "mul", {&length, &root}) &&
         g.made(length, "sqrt", {&to.v}) && g.number(size, u.size) && g.number(eps, u.eps) && g.number(root, u.root);
}

bool reads_gradient(const GroupReader& g, AdamwUpdate& u, i64 grad) {
  i64 whole, factor;
  if (!g.made(grad, "mul", {&whole, &factor})) return g.row(grad, u.grad);
  u.clip = int(factor);
  return g.is_source(factor, f32, 0) && g.row(whole, u.grad);
}

bool reads_update(const GroupReader& g, AdamwUpdate& u, Made& to) {
  i64 square, grad;
  return reads_param(g, u, to) && reads_average(g, to.m, u.beta1, u.beta1_rest, u.m, to.grad) &&
         reads_average(g, to.v, u.beta2, u.beta2_rest, u.v, square) && g.made(square, "square", {&grad}) &&
         grad == to.grad && reads_gradient(g, u, to.grad);
}

// Results are where(finite, what is made, what was there).
bool reads_results(const GroupReader& g, AdamwUpdate& u, const Made& to, i64 param, std::size_t count) {
  bool seen[3] = {};
  for (std::size_t k = 0; k < count; ++k) {
    const i64 value = g.result(k);
    i64 of, finite, made, before;
    if (g.made(value, "cast", {&of}) && of == param) {
      u.rounded = int(k);
      continue;
    }
    if (!g.made(value, "where", {&finite, &made, &before}) || finite != u.finite) return false;
    if (value == param)
      u.new_param = int(k), seen[0] = true;
    else if (made == to.m && before == u.m)
      u.new_m = int(k), seen[1] = true;
    else if (made == to.v && before == u.v)
      u.new_v = int(k), seen[2] = true;
    else
      return false;
  }
  return seen[0] && seen[1] && seen[2];
}

float value_of(const AdamwNumber& n, const Args& args) {
  return n.operand ? *args.input<float>(*n.operand) : float(n.value);
}

// What tiles would compute, in the same order: nothing may be contracted.
struct Numbers {
  float clip, kept, beta1, beta1_rest, beta2, beta2_rest, root, eps, size;
};
struct Rows {
  const float *param, *grad, *m, *v;
  float *new_param, *new_m, *new_v;
};

template <bool clips>
void update_rows(const Rows& r, const Numbers& x, i64 n) {
#pragma GCC ivdep  // a result may be its operand itself, never shifted against it
  for (i64 i = 0; i < n; ++i) {
    const float g = clips ? r.grad[i] * x.clip : r.grad[i];
    const float m = r.m[i] * x.beta1 + g * x.beta1_rest;
    const float v = r.v[i] * x.beta2 + g * g * x.beta2_rest;
    r.new_param[i] = r.param[i] * x.kept - x.size * (m / (std::sqrt(v) * x.root + x.eps));
    r.new_m[i] = m;
    r.new_v[i] = v;
  }
}

void keep_rows(const Rows& r, i64 n) {
  if (r.new_param != r.param) std::copy_n(r.param, n, r.new_param);
  if (r.new_m != r.m) std::copy_n(r.m, n, r.new_m);
  if (r.new_v != r.v) std::copy_n(r.v, n, r.new_v);
}

}  // namespace

std::optional<AdamwUpdate> adamw_update(const FusedAttrs& group, const TilePlan& plan) {
  const auto plain = [&](const TileOperand& r) { return r.strides == std::vector<i64>{1}; };
  if (plan.accumulate || !std::ranges::all_of(plan.results, plain)) return {};
  const GroupReader g(group, plan);
  for (std::size_t k = 0; k < group.results.size(); ++k) {
    AdamwUpdate u{.elements = plan.sizes[0]};
    Made to;
    i64 finite, before;
    const i64 param = g.result(k);
    if (!g.made(param, "where", {&finite, &to.param, &before}) || !g.is_source(finite, i32, 0)) continue;
    u.finite = int(finite);
    if (reads_update(g, u, to) && before == u.param && reads_results(g, u, to, param, group.results.size())) return u;
  }
  return {};
}

void run_adamw(const AdamwUpdate& u, const Args& args) {
  constexpr i64 together = 4096;  // between two pauses
  const Numbers x{.clip = u.clip ? *args.input<float>(*u.clip) : 1,
                  .kept = value_of(u.kept, args),
                  .beta1 = value_of(u.beta1, args),
                  .beta1_rest = value_of(u.beta1_rest, args),
                  .beta2 = value_of(u.beta2, args),
                  .beta2_rest = value_of(u.beta2_rest, args),
                  .root = value_of(u.root, args),
                  .eps = value_of(u.eps, args),
                  .size = value_of(u.size, args)};
  const bool finite = *args.input<std::int32_t>(u.finite) != 0;
  Pauses pauses(args);
  for (i64 at = 0; at < u.elements; at += together) {
    const i64 n = std::min(together, u.elements - at);
    const Rows r{args.input<float>(u.param) + at,      args.input<float>(u.grad) + at,
                 args.input<float>(u.m) + at,          args.input<float>(u.v) + at,
                 args.output<float>(u.new_param) + at, args.output<float>(u.new_m) + at,
                 args.output<float>(u.new_v) + at};
    if (!finite)
      keep_rows(r, n);
    else if (u.clip)
      update_rows<true>(r, x, n);
    else
      update_rows<false>(r, x, n);
    if (u.rounded) narrow(r.new_param, n, args.output<BF16>(*u.rounded) + at);
    pauses.after(n);
  }
}

}  // namespace stretto
