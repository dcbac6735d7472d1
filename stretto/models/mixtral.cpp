// Mixtral: Llama with experts. Per token a router chooses top_k of them; their results are added, weighted by the
// router's probabilities among the chosen.
//
// Rows stay where their tokens are, and a product per row is with the matrix of its expert (ops/choose.h): so a layout may
// put experts wherever it likes. With a capacity, tokens travel to slots of their experts, and those who come late are
// dropped.
#include <cmath>
#include <optional>

#include "stretto/models/layers.h"
#include "stretto/models/llama.h"
#include "stretto/ops/add.h"
#include "stretto/ops/cast.h"
#include "stretto/ops/choose.h"
#include "stretto/ops/constant.h"
#include "stretto/ops/contract.h"
#include "stretto/ops/div.h"
#include "stretto/ops/exp.h"
#include "stretto/ops/log.h"
#include "stretto/ops/max.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/pick.h"
#include "stretto/ops/rename.h"
#include "stretto/ops/slots.h"
#include "stretto/ops/softmax.h"
#include "stretto/ops/square.h"
#include "stretto/ops/stop_gradient.h"
#include "stretto/ops/sub.h"
#include "stretto/ops/sum.h"
#include "stretto/ops/top_k.h"

namespace stretto {
namespace {

void fill(ModelConfig& c) {
  llama_fill(c);
  if (c.experts == 0) c.experts = 8;
}

void check(const ModelConfig& c, std::vector<Fault>& faults) {
  llama_check(c, faults);
  const auto wrong = [&](std::string_view key, std::string hint, std::string what) {
    faults.push_back({fmt::format("model.{}", key), std::move(what), std::move(hint)});
  };
  if (c.experts < 1 || c.experts > 1 << 16)
    wrong("experts", "use a number from 1 to 65536, e.g. 8", fmt::format("experts is {}", c.experts));
  if (c.top_k < 1 || c.top_k > std::max<i64>(c.experts, 1))
    wrong("top_k", fmt::format("use a number from 1 to {}", std::max<i64>(c.experts, 1)),
          fmt::format("top_k is {} of {} experts", c.top_k, c.experts));
  const auto weight = [&](std::string_view key, double v) {
    if (!(v >= 0) || !std::isfinite(v)) wrong(key, "use 0 or more", fmt::format("{} is {}", key, v));
  };
  weight("capacity", c.capacity);
  weight("balance", c.balance);
  weight("router_z", c.router_z);
  if (c.mlp_bias) wrong("mlp_bias", "leave it out", "experts have no biases");
}

// What the router's penalties are made of, added up over the layers.
struct Routing {
  Tensor balance;        // {batch}, or without dims when it is pooled at the end
  Tensor chosen, gates;  // pooled: sums over all tokens, {experts}
  Tensor z;              // {batch}: over the tokens the squared logarithm of the router's sum of exponentials, added up
};

void add_to(Tensor& total, Tensor x) { total = total ? total + x : x; }

void penalties(Trace& t, const ModelConfig& c, Routing& r, Tensor logits, Tensor gates, Tensor which,
               const Dims& tokens, const Dim& experts) {
  const Dim& seq = tokens.back();
  const auto chosen = [&](const Dims& per) {
    return unpick(constant(t.builder, 1, logits.dtype()), which, experts, per);
  };
  if (c.balance > 0 && c.balance_pooled) {
    add_to(r.chosen, chosen({experts}));
    add_to(r.gates, sum(gates, tokens));
  } else if (c.balance > 0) {
    const double n = seq.valid();
    const Tensor times = chosen({tokens.front(), experts});
    add_to(r.balance, sum(times * (sum(gates, seq) * (double(c.experts) / (n * n))), experts));
  }
  if (c.router_z > 0) {
    const Tensor top = stop_gradient(max(logits, experts));
    add_to(r.z, sum(square(log(sum(exp(logits - top), experts)) + top), seq));
  }
}

void finish(Trace& t, const ModelConfig& c, const Routing& r, const Dim& batch, const Dim& seq) {
  const double layers = double(c.layers), length = double(seq.valid());
  if (r.chosen) {
    const double n = layers * length * double(batch.valid());
    const Tensor x = sum(r.chosen * (r.gates * (double(c.experts) / (n * n))), r.gates.dims());
    t.penalties = t.penalties + named("balance", c.balance * mean_of(x));
  } else if (r.balance) {
    t.penalties = t.penalties + named("balance", c.balance * mean_of(r.balance * (1 / layers)));
  }
  if (r.z) t.penalties = t.penalties + named("router_z", c.router_z * mean_of(r.z * (1 / (layers * length))));
}

// What a token's experts are, and what their results count.
struct Router {
  Dim experts, choice;    // whole experts: every token sees the gates of all
  Tensor which, weights;  // {batch seq choice}
};

Router route(Trace& t, const ModelConfig& c, const LlamaShape& s, Tensor h, const Init& init, Routing& routing) {
  const Dim experts = Dim{"experts", c.experts}.whole("experts_w"), choice{"choice", c.top_k};
  const Dim batch = h.dim(t.batch_name);
  // In f32 when all else is bf16: who is chosen, and how often, is a matter of small differences and long counts.
  const Tensor w = t.param("router", {s.model, experts}, {.init = init, .own_type = true});
  const Tensor logits = contract_wide(h, w, s.model);
  const Tensor gates = softmax(logits, experts), which = top_k(gates, experts, choice);
  penalties(t, c, routing, logits, gates, which, {batch, s.seq}, experts);
  const Tensor among = pick(gates, which, experts, {batch, s.seq, choice});
  return {experts, choice, which, cast(among / sum(among, choice), t.dtype())};
}

// With drops: slots of an expert that a sequence has. Only training drops, so that what a trained model says depends
// neither on the length of a sequence nor on how many ids are fed at once.
std::optional<i64> slots_per_expert(const Trace& t, const ModelConfig& c, i64 seq) {
  if (c.capacity == 0 || !t.training()) return {};
  // A token takes at most one slot of an expert.
  return std::clamp<i64>(i64(std::ceil(c.capacity * double(c.top_k * seq) / double(c.experts))), 1, seq);
}

struct ExpertWeights {
  Dim experts, ff;
  Tensor gate, up, down;
};

ExpertWeights expert_weights(Trace& t, const ModelConfig& c, const Dim& model, const Init& inner) {
  const Dim experts{"experts", c.experts}, ff{"ff_x", c.ff};
  const Init residual = normal(c.init_std / std::sqrt(2.0 * c.layers));
  const Tensor gate = t.param("gate", {experts, model, ff}, {.init = inner});
  const Tensor up = t.param("up", {experts, model, ff}, {.init = inner});
  return {experts, ff, gate, up, t.param("down", {experts, ff, model}, {.init = residual})};
}

// Every row that a token chose, in the order of tokens: nobody is dropped, and nothing is computed that nobody chose.
Tensor chosen_experts(Trace& t, const ModelConfig& c, const LlamaShape& s, Tensor h, const Router& r,
                      const ExpertWeights& w) {
  const Dim batch = h.dim(t.batch_name), batch_x = batch.like("batch_x", {.minus = w.experts});
  const Tensor x = rename(h, batch, batch_x), which = rename(r.which, batch, batch_x);
  const Dims hidden{batch_x, s.seq, r.choice, w.ff};
  const Tensor gate = choose(x, w.gate, which, w.experts, hidden), up = choose(x, w.up, which, w.experts, hidden);
  const Tensor u = activate(gate, *c.activation) * up * rename(r.weights, batch, batch_x);
  const Tensor y = choose(u, w.down, which, w.experts, {batch_x, s.seq, s.model});
  return rename(y, {{batch_x, batch}, {s.seq, s.seq_r}});
}

// Every expert has a static number of slots per sequence, which travel to it and back.
Tensor slotted_experts(Trace& t, const ModelConfig& c, const LlamaShape& s, Tensor h, const Router& r,
                       const ExpertWeights& w, i64 slots) {
  const Dim batch = h.dim(t.batch_name), seq_w = s.seq.whole("seq_w"), slot{"capacity", slots};
  const Dim batch_x = batch.like("batch_x", {.minus = w.experts}),
            experts_u = w.experts.like("experts_u", {.minus = batch});
  const Tensor place =
      rename(expert_slots(rename(r.which, s.seq, seq_w), seq_w, r.choice, r.experts, slot), seq_w, s.seq);
  const std::vector<Rename> there{{experts_u, w.experts}, {batch, batch_x}},
      back{{w.experts, experts_u}, {batch_x, batch}};
  const Dims over{experts_u, slot};
  const Tensor x = rename(unpick(h, place, over, {batch, experts_u, slot, s.model}), there);
  const Tensor counts = rename(unpick(r.weights, place, over, {batch, experts_u, slot}), there);
  const Tensor gate = contract(x, w.gate, s.model, along(w.experts)), up = contract(x, w.up, s.model, along(w.experts));
  const Tensor u = activate(gate, *c.activation) * up * counts;
  const Tensor y = rename(contract(u, w.down, w.ff, along(w.experts)), back);
  return rename(pick(y, place, over, {batch, s.seq, s.model}), s.seq, s.seq_r);
}

Tensor experts_layer(Trace& t, const ModelConfig& c, const LlamaShape& s, Tensor h, Routing& routing) {
  const Init inner = normal(c.init_std);
  const Router r = route(t, c, s, h, inner, routing);
  const ExpertWeights w = expert_weights(t, c, s.model, inner);
  const std::optional<i64> slots = slots_per_expert(t, c, s.seq.size);
  return slots ? slotted_experts(t, c, s, h, r, w, *slots) : chosen_experts(t, c, s, h, r, w);
}

Tensor logits(Trace& t, const ModelConfig& c, Tensor ids) {
  Routing routing;
  const Tensor out =
      llama_logits(t, c, ids, [&](Trace& trace, const ModelConfig& config, const LlamaShape& s, Tensor h) {
        return experts_layer(trace, config, s, h, routing);
      });
  finish(t, c, routing, ids.dim(t.batch_name), ids.dim("seq"));
  return out;
}

std::vector<ParamSpec> params(const ModelConfig& c) {
  return llama_params(
      c, [](const ModelConfig& m, const std::string& h, const std::string& l, std::vector<ParamSpec>& p) {
        const std::string moe = l + "block_sparse_moe.";
        p.push_back({h + "router", {m.width, m.experts}, moe + "gate.weight", 1, true});
        const auto each = [&](const char* ours, const char* theirs, i64 in, i64 out) {
          p.push_back({h + ours, {m.experts, in, out}, moe + "experts.{}." + theirs + ".weight", 1, true, m.experts});
        };
        each("gate", "w1", m.width, m.ff);
        each("up", "w3", m.width, m.ff);
        each("down", "w2", m.ff, m.width);
      });
}

}  // namespace

constinit const Family mixtral_family{.name = "mixtral",
                                      .summary = "llama with experts, of which a router chooses per token",
                                      .fill = fill,
                                      .check = check,
                                      .params = params,
                                      .logits = logits,
                                      .stored_prefix = "model."};

}  // namespace stretto
