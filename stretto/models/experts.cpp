#include "stretto/models/experts.h"

#include <cmath>
#include <optional>

#include "stretto/models/inner/layers.h"
#include "stretto/ops/add.h"
#include "stretto/ops/broadcast.h"
#include "stretto/ops/cast.h"
#include "stretto/ops/choose.h"
#include "stretto/ops/compare.h"
#include "stretto/ops/concat.h"
#include "stretto/ops/constant.h"
#include "stretto/ops/contract.h"
#include "stretto/ops/dispatch.h"
#include "stretto/ops/div.h"
#include "stretto/ops/exp.h"
#include "stretto/ops/extremum.h"
#include "stretto/ops/index.h"
#include "stretto/ops/log.h"
#include "stretto/ops/max.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/pick.h"
#include "stretto/ops/rename.h"
#include "stretto/ops/sigmoid.h"
#include "stretto/ops/sign.h"
#include "stretto/ops/slice.h"
#include "stretto/ops/slots.h"
#include "stretto/ops/softmax.h"
#include "stretto/ops/square.h"
#include "stretto/ops/stack.h"
#include "stretto/ops/stop_gradient.h"
#include "stretto/ops/sub.h"
#include "stretto/ops/sum.h"
#include "stretto/ops/top_k.h"

namespace stretto {
namespace {

void add_to(Tensor& total, Tensor x) { total = total ? total + x : x; }

// How often every expert is chosen.
Tensor times_chosen(Trace& t, Tensor which, const Dim& experts, const Dims& per) {
  return unpick(constant(t.builder, 1, wide(t.dtype())), which, experts, per);
}

void penalties(Trace& t, const ModelConfig& c, Routing& r, Tensor logits, Tensor gates, Tensor which,
               const Dims& tokens, const Dim& experts) {
  const Dim& seq = tokens.back();
  const auto chosen = [&](const Dims& per) { return times_chosen(t, which, experts, per); };
  if (c.balance > 0 && c.balance_pooled) {
    add_to(r.chosen, chosen({experts}));
    add_to(r.gates, sum(gates, tokens));
  } else if (c.balance > 0) {
    const double n = seq.valid();
    const Tensor times = chosen({tokens.front(), experts});
    add_to(r.balance, sum(times * (sum(gates, seq) * (c.experts / (n * n))), experts));
  }
  if (c.router_z > 0) {
    const Tensor top = stop_gradient(max(logits, experts));
    add_to(r.z, sum(square(log(sum(exp(logits - top), experts)) + top), seq));
  }
}

// What a token's experts are, and what their results count.
struct Router {
  Dim experts, choice;    // whole experts: every token sees the gates of all
  Tensor which, weights;  // {batch seq choice}
};

// Scores of experts of the best groups, zeros elsewhere. A group is as good as its two best experts together, or as its
// best one where experts compete with each other (softmax).
Tensor best_groups(Trace& t, const ModelConfig& c, Tensor scores, const Dims& tokens, const Dim& experts) {
  const Dim member{"member", c.experts / c.groups}, group{"expert_group", c.groups}, best{"best", 2};
  const Dim chosen{"top_groups", c.top_groups};
  std::vector<Tensor> parts, values;
  Dims with_best = tokens, with_group = tokens;
  with_best.push_back(best);
  with_group.push_back(group);
  for (i64 g = 0; g < c.groups; ++g) {
    parts.push_back(slice(scores, experts, member, g * member.size));
    values.push_back(c.score == Score::softmax
                         ? max(parts.back(), member)
                         : sum(pick(parts.back(), top_k(parts.back(), member, best), member, with_best), best));
  }
  const Tensor best_of = top_k(stack(values, group), group, chosen);
  const Tensor taken = unpick(constant(t.builder, 1, scores.dtype()), best_of, group, with_group);
  for (i64 g = 0; g < c.groups; ++g) parts[g] = parts[g] * index(taken, group, g);
  return concat(parts, member, experts);
}

// Experts that were chosen less often than others are chosen more easily in the next step, and the other way round.
// Loads are whole numbers, so their sums are the same under every layout.
void even_out(Trace& t, const ModelConfig& c, Tensor select, Tensor load, const Dims& tokens) {
  double even = double(c.top_k) / c.experts;
  for (const Dim& d : tokens) even *= d.valid();
  t.observe(select, load,
            [even, rate = c.balance_rate](Tensor bias, Tensor seen) { return bias + sign(even - seen) * rate; });
}

Router route(Trace& t, const ModelConfig& c, const LlamaShape& s, Tensor h, const Init& init, Routing& routing) {
  const Dim experts = Dim{"experts", c.experts}.whole("experts_w"), choice{"choice", c.top_k};
  const Dims tokens{h.dim(t.batch_name), s.seq};
  // In f32 when all else is bf16: who is chosen, and how often, is a matter of small differences and long counts.
  const Tensor w = t.param("router", {s.model, experts}, {.init = init, .own_type = true});
  Tensor logits = contract_wide(h, w, s.model);
  if (c.router_bias) logits = logits + cast(t.bias("router.bias", experts), logits.dtype());
  const Tensor gates = c.score == Score::softmax ? softmax(logits, experts) : sigmoid(logits);
  Tensor by = stop_gradient(gates), select;
  if (c.select_bias) select = t.state("select", experts), by = by + cast(select, by.dtype());
  if (c.groups > 1) by = best_groups(t, c, by, tokens, experts);
  const Tensor which = top_k(by, experts, choice);
  if (t.training()) {
    const Tensor load = times_chosen(t, which, experts, experts);
    t.metric(t.scoped(load_metric), load, Accumulate::sum);
    if (select && c.balance_rate > 0) even_out(t, c, select, load, tokens);
  }
  penalties(t, c, routing, logits, gates, which, tokens, experts);
  Dims of_choice = tokens;
  of_choice.push_back(choice);
  Tensor weights = pick(gates, which, experts, of_choice);
  if (c.normalize) weights = weights / sum(weights, choice);
  if (c.route_scale != 1) weights = weights * c.route_scale;
  return {experts, choice, which, cast(weights, t.dtype())};
}

// With drops: slots of an expert that a sequence has. Only training drops, so that what a trained model says depends
// neither on the length of a sequence nor on how many ids are fed at once.
std::optional<i64> slots_per_expert(const Trace& t, const ModelConfig& c, i64 seq) {
  if (c.capacity == 0 || !t.training()) return {};
  // A token takes at most one slot of an expert.
  return std::clamp<i64>(i64(std::ceil(c.capacity * (c.top_k * seq) / c.experts)), 1, seq);
}

struct ExpertWeights {
  Dim experts, ff;
  Tensor gate, up, down;
  Tensor gate_bias = {}, up_bias = {}, down_bias = {};
};

ExpertWeights expert_weights(Trace& t, const ModelConfig& c, const Dim& model, const Init& inner) {
  const Dim experts{"experts", c.experts}, ff{"ff_x", c.expert_width()};
  const Init residual = normal(c.init_std / std::sqrt(2.0 * c.layers));
  ExpertWeights w{experts, ff};
  w.gate = t.param("gate", {experts, model, ff}, {.init = inner});
  w.up = t.param("up", {experts, model, ff}, {.init = inner});
  w.down = t.param("down", {experts, ff, model}, {.init = residual});
  if (!c.expert_bias) return w;
  w.gate_bias = t.bias("gate.bias", {experts, ff});
  w.up_bias = t.bias("up.bias", {experts, ff});
  w.down_bias = t.bias("down.bias", {experts, model});
  return w;
}

// What goes into the second product. Clamped, as GPT-OSS has it: gate sigmoid(1.702 gate) (up + 1), both bounded.
Tensor hidden_rows(const ModelConfig& c, Tensor gate, Tensor up) {
  if (c.expert_clamp == 0) return activate(gate, *c.activation) * up;
  gate = minimum(gate, c.expert_clamp);
  up = minimum(maximum(up, -c.expert_clamp), c.expert_clamp);
  const Tensor turned_on = gate * sigmoid(gate * 1.702);
  return turned_on * up + turned_on;
}

// Every row that a token chose, in the order of tokens: nobody is dropped, and nothing is computed that nobody chose.
Tensor chosen_experts(Trace& t, const ModelConfig& c, const LlamaShape& s, Tensor h, const Router& r,
                      const ExpertWeights& w) {
  const Dim batch = h.dim(t.batch_name), batch_x = batch.like("batch_x", {.minus = w.experts});
  const Tensor which = rename(r.which, batch, batch_x), weights = rename(r.weights, batch, batch_x);
  Tensor x = rename(h, batch, batch_x);
  if (c.route_on_input) x = broadcast(x, {batch_x, s.seq, r.choice, s.model}) * weights;
  const Dims hidden{batch_x, s.seq, r.choice, w.ff}, out{batch_x, s.seq, s.model};
  const auto rows = [&](Tensor matrices, Tensor biases) {
    const Tensor y = choose(x, matrices, which, w.experts, hidden);
    return biases ? y + pick(biases, which, w.experts, hidden) : y;
  };
  const Tensor gate = rows(w.gate, w.gate_bias), up = rows(w.up, w.up_bias);
  Tensor u = hidden_rows(c, gate, up);
  if (!c.route_on_input) u = u * weights;
  Tensor y = choose(u, w.down, which, w.experts, out);
  if (w.down_bias) {
    const Tensor each = unpick(weights, which, w.experts, {batch_x, s.seq, w.experts});
    y = y + contract(each, w.down_bias, w.experts);
  }
  return rename(y, {{batch_x, batch}, {s.seq, s.seq_r}});
}

// The same on rows that travel to the ranks of their experts and back.
Tensor exchanged_experts(Trace& t, const ModelConfig& c, const LlamaShape& s, Tensor h, const Router& r,
                         const ExpertWeights& w) {
  const Dim batch = h.dim(t.batch_name);
  const Dim rows =
      batch.like("rows_x", {.plus = s.seq, .size = batch.size * s.seq.size * r.choice.size}).grouped(w.experts);
  const GroupedRows g = group_rows(r.which, batch, w.experts, rows);
  // Scores that are not numbers choose the first experts for all: more room would be no help.
  const Tensor valid = sum(cast(stop_gradient(r.weights), g.lost.dtype()), {s.seq, r.choice}) * 0;
  t.exchange(sum(g.lost + valid, g.lost.dims()));
  const Tensor weights = dispatch(r.weights, g, rows);
  Tensor x = dispatch(h, g, {rows, s.model});
  if (c.route_on_input) x = x * weights;
  const auto product = [&](Tensor from, Tensor matrices, Tensor biases, const Dim& out) {
    const Tensor y = choose(from, matrices, g.expert, w.experts, {rows, out});
    return biases ? y + pick(biases, g.expert, w.experts, {rows, out}) : y;
  };
  const Tensor gate = product(x, w.gate, w.gate_bias, w.ff), up = product(x, w.up, w.up_bias, w.ff);
  Tensor u = hidden_rows(c, gate, up);
  if (!c.route_on_input) u = u * weights;
  Tensor y = choose(u, w.down, g.expert, w.experts, {rows, s.model});
  if (w.down_bias) y = y + pick(w.down_bias, g.expert, w.experts, {rows, s.model}) * weights;
  return rename(combine(y, g, {batch, s.seq, s.model}), s.seq, s.seq_r);
}

// Every expert has a static number of slots per sequence, which travel to it and back.
Tensor slotted_experts(Trace& t, const ModelConfig& c, const LlamaShape& s, Tensor h, const Router& r,
                       const ExpertWeights& w, i64 slots) {
  const Dim batch = h.dim(t.batch_name), seq_w = s.seq.whole("seq_w"), slot{"capacity", slots};
  const Dim batch_x = batch.like("batch_x", {.minus = w.experts}),
            experts_u = w.experts.like("experts_u", {.minus = batch});
  const Tensor place =
      rename(expert_slots(rename(r.which, s.seq, seq_w), seq_w, r.choice, r.experts, slot), seq_w, s.seq);
  const Tensor taken = cast(greater_equal(place, 0.0), wide(t.dtype()));
  t.metric(t.scoped(taken_metric), sum(taken, taken.dims()), Accumulate::sum);
  const std::vector<Rename> there{{experts_u, w.experts}, {batch, batch_x}},
      back{{w.experts, experts_u}, {batch_x, batch}};
  const Dims over{experts_u, slot};
  const Tensor x = rename(unpick(h, place, over, {batch, experts_u, slot, s.model}), there);
  const Tensor counts = rename(unpick(r.weights, place, over, {batch, experts_u, slot}), there);
  const Tensor gate = contract(x, w.gate, s.model, along(w.experts)), up = contract(x, w.up, s.model, along(w.experts));
  const Tensor u = hidden_rows(c, gate, up) * counts;
  const Tensor y = rename(contract(u, w.down, w.ff, along(w.experts)), back);
  return rename(pick(y, place, over, {batch, s.seq, s.model}), s.seq, s.seq_r);
}

// An expert that every token has, perhaps times a gate of its own.
Tensor shared_expert(Trace& t, const ModelConfig& c, const LlamaShape& s, Tensor h) {
  const Scope in(t, "shared");
  const Tensor y = gated_layer(t, c, s, h, {"ff_s", c.shared_ff});
  if (!c.shared_gate) return y;
  const Tensor gate = sigmoid(contract(h, t.param("switch", s.model, {.init = normal(c.init_std)}), s.model));
  return y * rename(gate, s.seq, s.seq_r);
}

}  // namespace

Tensor experts_layer(Trace& t, const ModelConfig& c, const LlamaShape& s, Tensor h, Routing& routing) {
  const Init inner = normal(c.init_std);
  ++routing.layers;
  const Router r = route(t, c, s, h, inner, routing);
  const ExpertWeights w = expert_weights(t, c, s.model, inner);
  const std::optional<i64> slots = slots_per_expert(t, c, s.seq.size);
  if (slots && t.options().expert_rows == ExpertRows::exchange)
    throw Error("experts", "capacity = {} gives experts slots, and expert_rows = \"exchange\" sends rows as they come",
                c.capacity)
        .hint("leave one of the two out")
        .about({"parallel.expert_rows", "model.capacity"});
  const ExpertTraffic traffic{t.builder.graph.elements(h.type()) / c.width, c.width, c.top_k, h.dtype()};
  const Tensor y = slots                       ? slotted_experts(t, c, s, h, r, w, *slots)
                   : t.exchanges_rows(traffic) ? exchanged_experts(t, c, s, h, r, w)
                                               : chosen_experts(t, c, s, h, r, w);
  return c.shared_ff ? y + shared_expert(t, c, s, h) : y;
}

void finish_routing(Trace& t, const ModelConfig& c, const Routing& r, const Dim& batch, const Dim& seq) {
  const double layers = r.layers, length = seq.valid();
  if (r.chosen) {
    const double n = layers * length * batch.valid();
    const Tensor x = sum(r.chosen * (r.gates * (c.experts / (n * n))), r.gates.dims());
    t.penalties = t.penalties + named("balance", c.balance * mean_of(x));
  } else if (r.balance) {
    t.penalties = t.penalties + named("balance", c.balance * mean_of(r.balance * (1 / layers)));
  }
  if (r.z) t.penalties = t.penalties + named("router_z", c.router_z * mean_of(r.z * (1 / (layers * length))));
}

}  // namespace stretto
