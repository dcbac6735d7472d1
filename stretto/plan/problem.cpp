#include "stretto/plan/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <mutex>
#include <set>

#include "stretto/base/text.h"
#include "stretto/cost/factors.h"
#include "stretto/models/family.h"

namespace stretto {

std::string RunKeys::str() const {
  std::string text;
  const auto axis = [&](std::string_view name, int size) {
    if (size > 1) text += fmt::format("{}{} {}", text.empty() ? "" : " ", name, size);
  };
  axis("pipe", pipe);
  axis("data", data);
  axis("tensor", tensor);
  axis("context", context);
  axis("expert", expert);
  if (text.empty()) text = "one rank";
  if (zero > 0) text += fmt::format(" zero {}", zero);
  if (pipe > 1) text += fmt::format(", {}", schedule);
  if (pipe > 1 && chunks > 1) text += fmt::format(" of {} chunks", chunks);
  text += fmt::format(", {} microbatch{}", microbatches, microbatches == 1 ? "" : "es");
  if (recompute != Recompute::none) text += fmt::format(", recompute {}", name_of(recompute));
  if (!recompute_each.empty())
    text += fmt::format(" in {} of {} stages", std::ranges::count(recompute_each, recompute), recompute_each.size());
  if (tensor > 1 && !sequence) text += ", no sequence";
  return text;
}

void RunKeys::set_recompute(std::vector<Recompute> given) {
  recompute = Recompute::none;
  for (const Recompute r : by_what_is_kept)
    if (std::ranges::count(given, r) > 0) recompute = r;
  recompute_each.clear();
  if (std::ranges::adjacent_find(given, std::not_equal_to()) != given.end()) recompute_each = std::move(given);
}

std::vector<Recompute> RunKeys::recompute_list() const {
  if (!recompute_each.empty()) return recompute_each;
  return recompute == Recompute::none ? std::vector<Recompute>() : std::vector{recompute};
}

std::string RunKeys::recompute_str() const {
  if (recompute_each.empty()) return std::string(name_of(recompute));
  std::vector<std::string> runs;
  for (auto from = recompute_each.begin(); from != recompute_each.end();) {
    const auto to = std::find_if(from, recompute_each.end(), [&](Recompute r) { return r != *from; });
    runs.push_back(fmt::format("{}{}", name_of(*from), to - from > 1 ? fmt::format("*{}", to - from) : ""));
    from = to;
  }
  return join(runs, ",");
}

std::string_view interned(std::string_view text) {
  static std::mutex mutex;
  static std::set<std::string, std::less<>> all;  // nodes stay where they are
  const std::lock_guard lock(mutex);
  const auto it = all.find(text);
  return it != all.end() ? *it : *all.emplace(text).first;
}

std::string PlanProblem::model_str() const { return graph ? "graph " + graph->name : model.str(); }
double PlanProblem::parameters() const { return graph ? graph->parameters : double(parameter_count(model)); }

Reshard reshard_of(const PlanProblem& problem, const RunKeys& k) {
  const bool cut = k.zero == 3 && k.data > 1;
  return factors_of(problem.cluster.cluster).keeps_gathered && k.pipe > 1 && cut ? Reshard::step : problem.parallel.reshard;
}

Parallel parallel_of(const PlanProblem& problem, const RunKeys& k) {
  Parallel p = problem.parallel;
  std::erase_if(p.mesh, [](const Axis& a) { return a.name == "pipe"; });
  if (k.pipe > 1) p.mesh.insert(p.mesh.begin(), {"pipe", k.pipe});
  p.cluster = problem.cluster.cluster;
  p.names.data = k.data;
  p.names.tensor = k.tensor;
  p.names.context = k.context;
  p.names.expert = k.expert;
  p.names.sequence = k.sequence;
  p.names.zero = k.zero;
  p.names.exchange = p.names.exchange && k.context > 1;
  p.schedule = std::string(k.schedule);
  p.chunks = k.chunks;
  if (!k.stages.empty()) p.stages = k.stages;
  p.reshard = reshard_of(problem, k);
  p.recompute = k.recompute_list();
  return p;
}

Training training_of(const PlanProblem& problem, const RunKeys& k) {
  Training t = problem.training;
  t.microbatches = k.microbatches;
  return t;
}

RunKeys keys_of_graph(RunKeys k) {
  const RunKeys any;
  k.schedule = any.schedule, k.chunks = any.chunks, k.stages = any.stages;
  k.recompute = any.recompute, k.recompute_each = any.recompute_each;
  return k;
}

namespace {
Model model_of_problem(const PlanProblem& p) { return p.graph ? p.graph->model : make_model(p.model, p.batch); }
}  // namespace

GraphOfRank graph_of_keys(const PlanProblem& p, const RunKeys& k) {
  return graph_of_rank(model_of_problem(p), p.optimizer, training_of(p, k), parallel_of(p, k));
}

Compiled compile_keys(const PlanProblem& p, const RunKeys& k, GraphOfRank graph) {
  Parallel parallel = parallel_of(p, k);
  parallel.purpose = Purpose::sizes;
  return compile(std::move(graph), model_of_problem(p), p.optimizer, training_of(p, k), parallel);
}

}  // namespace stretto
