// Mixtral and its relatives: Llama with experts (models/experts.h).
#include <cmath>

#include "stretto/models/experts.h"
#include "stretto/models/inner/hf_names.h"

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
  if (!c.gated) wrong("gated", "leave it out", "experts have gates");
  if (c.mlp_bias) wrong("mlp_bias", "leave it out", "experts have no such biases");
  if (c.capacity > 0 && (c.expert_bias || c.expert_clamp > 0))
    wrong("capacity", "use 0: nobody is dropped", "experts with biases or bounds have no slots");
  if (c.route_on_input && (c.capacity > 0 || c.expert_bias))
    wrong("route_on_input", "use capacity = 0 and no expert_bias",
          fmt::format("weights on what experts read, with capacity {} and expert_bias {}", c.capacity, c.expert_bias));
  weight("expert_clamp", c.expert_clamp);
  if (c.sparse.find_first_not_of("ed") != std::string::npos ||
      (!c.sparse.empty() && c.sparse.find('e') == c.sparse.npos))
    wrong("sparse", "use e for layers with experts and d for dense ones, e.g. \"deee\"",
          fmt::format("sparse is \"{}\"", c.sparse));
  const bool grouped = c.groups != 1 || c.top_groups != 1;
  if (grouped && (c.groups < 1 || c.top_groups < 1 || c.top_groups > c.groups || c.experts % c.groups != 0 ||
                  c.top_k > c.top_groups * (c.experts / c.groups) || (c.groups > 1 && c.experts / c.groups < 2)))
    wrong("groups", "groups divide the experts into at least two each, and top_groups of them hold top_k",
          fmt::format("groups is {} and top_groups {}, of {} experts with top_k {}", c.groups, c.top_groups, c.experts,
                      c.top_k));
  if (c.score == Score::sigmoid && c.balance > 0)
    wrong("balance", "use 0, and select_bias", "scores that are no probabilities have no such penalty");
}

Tensor hidden(Trace& t, const ModelConfig& c, Tensor ids) {
  Routing routing;
  const Tensor out =
      llama_hidden(t, c, ids, [&](Trace& trace, const ModelConfig& config, const LlamaShape& s, Tensor h, i64 layer) {
        return config.has_experts(layer) ? experts_layer(trace, config, s, h, routing)
                                         : gated_layer(trace, config, s, h, s.ff);
      });
  finish_routing(t, c, routing, ids.dim(t.batch_name), ids.dim("seq"));
  return out;
}

std::vector<ParamSpec> params(const ModelConfig& c) { return llama_params(c, expert_params); }

}  // namespace

constinit const Family mixtral_family{.name = "mixtral",
                                      .summary = "llama with experts, of which a router chooses per token",
                                      .fill = fill,
                                      .check = check,
                                      .params = params,
                                      .hidden = hidden,
                                      .stored_prefix = "model."};

}  // namespace stretto
