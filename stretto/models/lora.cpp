#include "stretto/models/lora.h"

#include <algorithm>
#include <set>

#include "stretto/base/text.h"

namespace stretto {
namespace {

constexpr std::string_view weight_ending = ".weight";

std::string last_part(const std::string& name) { return name.substr(name.rfind('.') + 1); }

// Matrices that models apply with linear(): of the others experts have no adapters here, and the rest never has.
bool is_linear(const ParamSpec& p) {
  static const std::set<std::string> others{"wte", "wpe", "head", "router", "switch"};
  const std::string first = p.name.substr(0, p.name.find('.'));  // "head" of "head.2"
  return p.rows > 0 && p.parts == 0 && !p.batched && p.sizes.size() > 1 && !others.contains(first) &&
         !others.contains(last_part(p.name));
}

// "model.layers.0.self_attn.q_proj" of "model.layers.0.self_attn.q_proj.weight".
std::string module_of(const ParamSpec& p) {
  return p.stored.ends_with(weight_ending) ? p.stored.substr(0, p.stored.size() - weight_ending.size()) : p.stored;
}

// Types whose experts transformers keeps in one tensor since its version 5. PEFT, tried in 0.21, takes these modules
// for parts of the experts wherever they stand, and drops adapters of dense layers and of experts that all tokens have.
constexpr std::string_view types_of_one_tensor[] = {"deepseek_v2", "deepseek_v3", "glm4_moe", "olmoe", "qwen3_moe"};
constexpr std::string_view parts_of_experts[] = {"gate_proj", "up_proj", "down_proj"};

bool taken_for_experts(const ModelConfig& c, const std::string& module) {
  return std::ranges::find(types_of_one_tensor, c.hf_type) != std::end(types_of_one_tensor) &&
         std::ranges::find(parts_of_experts, last_part(module)) != std::end(parts_of_experts);
}

std::string refusal_of_peft(const ModelConfig& c, const ParamSpec& p) {
  if (p.stored.empty()) return "has no form on disk, so that PEFT has no name for its adapter";
  if (p.cut) return fmt::format("is a part of '{}', so that PEFT has no name for its adapter", p.stored);
  if (taken_for_experts(c, module_of(p)))
    return fmt::format("is '{}', and PEFT takes every '{}' of {} for the experts' own, which have no adapters here",
                       module_of(p), last_part(module_of(p)), c.hf_type);
  return {};
}

bool is_about(const std::string& target, const ModelConfig& c, const ParamSpec& p) {
  if (target == all_targets || target == "all-linear") return is_linear(p);
  if (target == exportable_targets) return is_linear(p) && refusal_of_peft(c, p).empty();
  if (is_name_or_glob(target, p.name)) return true;
  const std::string module = module_of(p);
  return !module.empty() && (is_name_or_glob(target, module) || module.ends_with("." + target));
}

std::vector<std::string> known_targets(const std::vector<ParamSpec>& all) {
  std::set<std::string> names;
  for (const ParamSpec& p : all) {
    if (!is_linear(p)) continue;
    names.insert(last_part(p.name));
    if (!p.stored.empty()) names.insert(last_part(module_of(p)));
  }
  return {names.begin(), names.end()};
}

// What some models have in one matrix, others have apart.
struct Fused {
  std::string_view whole;
  std::vector<std::string_view> parts;
};
const Fused fused_modules[] = {{"qkv_proj", {"q_proj", "k_proj", "v_proj"}},
                               {"gate_up_proj", {"gate_proj", "up_proj"}}};

std::string advice_on_target(const std::string& target, const std::vector<std::string>& known) {
  const auto there = [&](std::string_view name) { return std::ranges::find(known, name) != known.end(); };
  for (const Fused& f : fused_modules) {
    if (target == f.whole && there(f.parts.front()))
      return fmt::format("this model has it in parts: {}", fmt::join(f.parts, ", "));
    const auto part = std::ranges::find(f.parts, target);
    if (part == f.parts.end() || !there(f.whole)) continue;
    return fmt::format("its files have it in '{}'; '{}' is this part alone, with an adapter of its own", f.whole,
                       part->substr(0, part->find('_')));
  }
  const auto near = nearest(target, known);
  return fmt::format("{}there are {}, or \"all\"", near ? fmt::format("did you mean '{}'? ", *near) : "",
                     join(known, ", "));
}

template <class T>
Array sum_of(const Array& w, const Array& a, const Array& b, i64 rank, double scale) {
  const std::span<const T> x = a.as<T>(), y = b.as<T>();
  std::vector<T> all(w.as<T>().begin(), w.as<T>().end());
  const i64 in = std::ssize(x) / rank, out = std::ssize(y) / rank;
  std::vector<double> row;
  for (i64 i = 0; i < in; ++i) {
    row.assign(out, 0);
    for (i64 r = 0; r < rank; ++r)
      for (i64 o = 0; o < out; ++o) row[o] += double(x[i * rank + r]) * double(y[r * out + o]);
    for (i64 o = 0; o < out; ++o) all[i * out + o] = T(all[i * out + o] + scale * row[o]);
  }
  return Array::of<T>(all, w.sizes);
}

}  // namespace

bool has_adapter(const Lora& lora, std::string_view param) {
  return std::find(lora.params.begin(), lora.params.end(), param) != lora.params.end();
}

std::vector<std::string> lora_params(const ModelConfig& config, const std::vector<std::string>& targets) {
  const std::vector<ParamSpec> all = family_named(config.family).params(config);
  std::set<std::string> chosen;
  for (const std::string& target : targets) {
    std::string other = last_part(target) == "lm_head" && *config.tied ? "wte" : "";  // that has no adapters
    bool found = false;
    for (const ParamSpec& p : all) {
      if (!is_about(target, config, p)) continue;
      if (is_linear(p))
        found = true, chosen.insert(p.name);
      else if (p.sizes.size() > 1)
        other = p.name;
    }
    if (found) continue;
    const std::vector<std::string> known = known_targets(all);
    if (!other.empty())
      throw Error("lora", "target '{}' is '{}', and embeddings, heads, routers and experts have no adapters", target,
                  other)
          .hint("there are {}, or \"all\"", join(known, ", "));
    if (target == exportable_targets)
      throw Error("lora", "the model has no weight whose adapter PEFT can load").hint("use \"all\"");
    throw Error("lora", "no weight of the model is called '{}'", target).hint("{}", advice_on_target(target, known));
  }
  if (chosen.empty()) throw Error("lora", "there are no targets").hint("name some, e.g. [\"q_proj\", \"v_proj\"]");
  std::vector<std::string> ordered;
  for (const ParamSpec& p : all)
    if (chosen.contains(p.name)) ordered.push_back(p.name);
  return ordered;
}

void take_exportable(const ModelConfig& config, std::vector<std::string>& targets) {
  const auto params = [&](std::string_view target) { return lora_params(config, {std::string(target)}); };
  for (std::string& t : targets)
    if ((t == all_targets || t == "all-linear") && params(all_targets) != params(exportable_targets))
      t = exportable_targets;
}

std::vector<AdapterSpec> adapter_specs(const ModelConfig& config) {
  std::vector<AdapterSpec> specs;
  if (!config.lora) return specs;
  for (const ParamSpec& p : family_named(config.family).params(config)) {
    if (!has_adapter(*config.lora, p.name)) continue;
    AdapterSpec s{.of = p};
    if (!p.cut) s.module = module_of(p);
    s.refusal = refusal_of_peft(config, p);
    const std::string stored = "base_model.model." + s.module;
    const auto split = p.sizes.begin() + p.rows;
    // On disk both are [out, in].
    s.a = {p.name + std::string(lora_a), {p.sizes.begin(), split}, stored + ".lora_A.weight", p.rows, true};
    s.a.sizes.push_back(config.lora->rank);
    s.b = {p.name + std::string(lora_b), {split, p.sizes.end()}, stored + ".lora_B.weight", 1, true};
    s.b.sizes.insert(s.b.sizes.begin(), config.lora->rank);
    specs.push_back(std::move(s));
  }
  return specs;
}

Weights merged(const ModelConfig& config, Weights weights) {
  for (const AdapterSpec& s : adapter_specs(config)) {
    const auto w = weights.find(s.of.name), a = weights.find(s.a.name), b = weights.find(s.b.name);
    if (w == weights.end() || a == weights.end() || b == weights.end())
      throw Error("lora", "of '{}' the weight or its adapter is missing", s.of.name);
    const auto add = w->second.dtype == f64 ? sum_of<double> : sum_of<float>;
    w->second = add(w->second, a->second, b->second, config.lora->rank, config.lora->scale());
    weights.erase(a);
    weights.erase(b);
  }
  return weights;
}

}  // namespace stretto
