// Mixtral: Llama with experts. Per token a router chooses top_k of them; their results are added, weighted by the
// router's probabilities among the chosen.
//
// Every expert has a static number of slots per sequence. Tokens go to slots and back by products with the 0/1 tensor
// of who has which: so a layout may put experts wherever it likes.
#include <cmath>

#include "stretto/models/layers.h"
#include "stretto/models/llama.h"
#include "stretto/ops/add.h"
#include "stretto/ops/contract.h"
#include "stretto/ops/div.h"
#include "stretto/ops/exp.h"
#include "stretto/ops/log.h"
#include "stretto/ops/max.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/rename.h"
#include "stretto/ops/slots.h"
#include "stretto/ops/softmax.h"
#include "stretto/ops/square.h"
#include "stretto/ops/stop_gradient.h"
#include "stretto/ops/sub.h"
#include "stretto/ops/sum.h"
#include "stretto/ops/triple.h"

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

void penalties(const ModelConfig& c, Routing& r, Tensor logits, Tensor gates, Tensor chosen, const Dims& tokens,
               const Dim& experts) {
  const Dim& seq = tokens.back();
  if (c.balance > 0 && c.balance_pooled) {
    add_to(r.chosen, sum(chosen, tokens));
    add_to(r.gates, sum(gates, tokens));
  } else if (c.balance > 0) {
    const double n = seq.valid();
    add_to(r.balance, sum(sum(chosen, seq) * (sum(gates, seq) * (double(c.experts) / (n * n))), experts));
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

i64 slots_per_expert(const Trace& t, const ModelConfig& c, i64 seq) {
  // A token takes at most one slot of an expert: with as many as tokens nobody is dropped. Only training drops, so that
  // what a trained model says depends neither on the length of a sequence nor on how many ids are fed at once.
  if (c.capacity == 0 || !t.training()) return seq;
  return std::clamp<i64>(i64(std::ceil(c.capacity * double(c.top_k * seq) / double(c.experts))), 1, seq);
}

Tensor experts_layer(Trace& t, const ModelConfig& c, const LlamaShape& s, Tensor h, Routing& routing) {
  const Dim &seq = s.seq, &model = s.model, batch = h.dim(t.batch_name), ff{"ff_x", c.ff};
  const Dim experts{"experts", c.experts}, experts_w = experts.whole("experts_w"), seq_w = seq.whole("seq_w");
  const Dim experts_u = experts.like("experts_u", {.minus = batch}),
            batch_x = batch.like("batch_x", {.minus = experts});
  const Dim capacity{"capacity", slots_per_expert(t, c, seq.size)};
  const Init inner = normal(c.init_std), residual = normal(c.init_std / std::sqrt(2.0 * c.layers));

  const Tensor logits = contract(h, t.param("router", {model, experts_w}, {.init = inner}), model);
  const Tensor gates = softmax(logits, experts_w);
  const Slots slots = expert_slots(rename(gates, seq, seq_w), seq_w, experts_w, capacity, c.top_k);
  const Tensor chosen = rename(slots.chosen, seq_w, seq);
  const Tensor taken = rename(slots.taken, {{seq_w, seq}, {experts_w, experts_u}});
  penalties(c, routing, logits, gates, chosen, {batch, seq}, experts_w);
  const Tensor among = gates * chosen;
  const Tensor weights = rename(among / sum(among, experts_w), experts_w, experts_u);

  Tensor x = contract(taken, h, seq, along(batch));  // {batch experts_u capacity model}
  x = rename(x, {{experts_u, experts}, {batch, batch_x}});
  const Tensor gate = contract(x, t.param("gate", {experts, model, ff}, {.init = inner}), model, along(experts));
  const Tensor up = contract(x, t.param("up", {experts, model, ff}, {.init = inner}), model, along(experts));
  Tensor y = contract(activate(gate, *c.activation) * up, t.param("down", {experts, ff, model}, {.init = residual}), ff,
                      along(experts));
  y = rename(y, {{experts, experts_u}, {batch_x, batch}});
  return rename(triple(taken, weights, y, {batch, seq, model}), seq, s.seq_r);
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
