#include "stretto/plan/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "stretto/base/text.h"
#include "stretto/simulate/step_time.h"

namespace stretto {
namespace {

std::string percent(double share) { return fmt::format("{:.1f}%", 100 * share); }
std::string more(double share) { return fmt::format("{:+.0f}%", 100 * share); }

std::string short_seconds(double s) {
  return s >= 100 ? fmt::format("{:.1f}", s) : s >= 1 ? fmt::format("{:.3f}", s) : fmt::format("{:.4g} ms", 1e3 * s);
}

// Of interleaved stages a list may be long.
std::string short_recompute(const RunKeys& k) {
  if (k.recompute_each.empty()) return std::string(name_of(k.recompute));
  return fmt::format("{} in {}/{}", name_of(k.recompute), std::ranges::count(k.recompute_each, k.recompute),
                     k.recompute_each.size());
}

// The largest parts first, as shares.
std::string shares(std::vector<std::pair<std::string, double>> parts, double of, std::size_t most, double least) {
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> words;
  for (const auto& [name, value] : parts)
    if (words.size() < most && value >= least * of) words.push_back(fmt::format("{} {:.0f}%", name, 100 * value / of));
  return join(words, ", ");
}

std::vector<std::pair<std::string, double>> memory_parts(const MemoryParts& m) {
  return {{"optimizer state", m.state},   {"parameters", m.params},  {"gradients", m.gradients},
          {"activations", m.activations}, {"temporaries", m.beside}, {"messages", m.messages}};
}

// Where a step may be longer than another.
std::vector<std::pair<std::string_view, double>> causes(const Planned& x) {
  const Spent& s = x.time;
  const bool mixed = x.keys.zero > 1 && x.exact != Exactness::program;  // played together
  return {{"kernels take", s.products + s.attention + s.elements},
          {"collectives take", s.collectives},
          {"messages take", s.messages},
          {"sums of gradients take", s.sums},
          {"gathers and scatters take", s.gathers},
          {"the update takes", s.update},
          {mixed ? "waits for actors and gathers take" : "the bubble is", s.bubble}};
}

// Why the best with some value is slower than the best.
std::string reason(const Planned& x, const Planned& best, double capacity) {
  if (x.bytes > 0.5 * capacity && x.keys.recompute != best.keys.recompute && x.keys.recompute != Recompute::none &&
      best.keys.recompute == Recompute::none)
    return "needs recompute to fit";
  const auto mine = causes(x), others = causes(best);
  std::size_t most = 0;
  for (std::size_t i = 1; i < mine.size(); ++i)
    if (mine[i].second - others[i].second > mine[most].second - others[most].second) most = i;
  const auto& [what, seconds] = mine[most];
  const double there = others[most].second;
  return fmt::format("{} {} instead of {}", what, human_seconds(seconds), there > 0 ? human_seconds(there) : "none");
}

// The best with each of a few values that the best plan does not have; often one configuration has several of them.
std::vector<std::pair<std::vector<std::string>, const Planned*>> nearest_others(const Plan& plan) {
  std::vector<std::pair<std::vector<std::string>, const Planned*>> all;
  for (const char* key : {"tensor", "pipe", "context", "expert", "zero", "recompute", "schedule"}) {
    std::vector<const Alternative*> same;
    for (const Alternative& a : plan.others)
      if (a.key == key) same.push_back(&a);
    std::ranges::stable_sort(same, {}, [](const Alternative* a) { return a->best.seconds; });
    for (std::size_t i = 0; i < same.size() && i < 2; ++i) {
      const Planned& x = same[i]->best;
      auto known = std::ranges::find_if(all, [&](const auto& other) { return other.second->keys == x.keys; });
      if (known == all.end()) known = all.insert(known, {{}, &x});
      known->first.push_back(fmt::format("{}={}", key, same[i]->value));
    }
  }
  return all;
}

}  // namespace

std::string change(double ratio) {
  constexpr double nothing = 0.005;  // rounds to no percent at all
  return std::abs(ratio - 1) < nothing ? "same" : more(ratio - 1);
}

std::string limit_of(const Planned& x) {
  const auto parts = x.time.parts();
  return shares({parts.begin(), parts.end()}, x.seconds, 3, 0.03);
}

std::string table_of(const PlanProblem& p, const Plan& plan) {
  std::vector<std::vector<std::string>> rows{{"#", "step s", "MFU", "memory", "bubble", "pipe", "data", "tensor", "ctx",
                                              "expert", "zero", "schedule", "chunks", "b x m", "recompute",
                                              "limited by"}};
  for (const Planned& x : plan.best) {
    const RunKeys& k = x.keys;
    rows.push_back({fmt::format("{}", rows.size()), short_seconds(x.seconds), percent(mfu(p, plan.flops, x.seconds)),
                    decimal_bytes(x.bytes), percent(x.bubble), fmt::format("{}", k.pipe), fmt::format("{}", k.data),
                    fmt::format("{}", k.tensor), fmt::format("{}", k.context), fmt::format("{}", k.expert),
                    fmt::format("{}", k.zero), k.pipe > 1 ? std::string(k.schedule) : "-", fmt::format("{}", k.chunks),
                    fmt::format("{} x {}", k.rows(p.batch), k.microbatches), short_recompute(k),
                    limit_of(x) + (x.exact == Exactness::program ? "" : fmt::format(" ({})", name_of(x.exact)))});
  }
  return table(rows);
}

std::vector<std::string> why_not(const Plan& plan) {
  const Planned& best = plan.best.front();
  std::vector<std::string> words;
  for (const auto& [values, x] : nearest_others(plan)) {
    const double slower = x->seconds / best.seconds - 1;
    words.push_back(fmt::format("{}: {}", join(values, " "),
                                slower < 0.005 ? fmt::format("as fast, {}", decimal_bytes(x->bytes))
                                               : fmt::format("{}, {}", more(slower), reason(*x, best, plan.capacity))));
  }
  return words;
}

std::string as_good(const Plan& plan, double margin) {
  if (plan.as_good.size() < 2) return "";
  const auto least = std::min_element(plan.as_good.begin(), plan.as_good.end(),
                                      [](const Planned& a, const Planned& b) { return a.bytes < b.bytes; });
  return fmt::format("as good within {:.0f}%: {} in all; of them the least memory: {} ({})", 100 * margin,
                     plan.as_good.size(), decimal_bytes(least->bytes), least->keys.str());
}

std::string memory_line(const PlanProblem& p, const Plan& plan) {
  const Planned& x = plan.best.front();
  const MemoryParts& m = x.memory;
  std::vector<std::string> words;
  for (const auto& [name, bytes] : memory_parts(m)) words.push_back(fmt::format("{} {}", name, decimal_bytes(bytes)));
  words.push_back(fmt::format("gaps {}", decimal_bytes(m.gaps)));
  std::string line = join(words, ", ");
  if (!std::isfinite(plan.capacity)) return line;
  const double free = plan.capacity - x.bytes, grows = m.activations + m.beside + m.messages;
  line += fmt::format(" of {}; {} free", decimal_bytes(plan.capacity), decimal_bytes(free));
  if (grows > 0 && !p.graph) {
    const i64 step = 256, context = static_cast<i64>(p.positions() * (1 + free / grows)) / step * step;
    if (context > p.positions()) line += fmt::format(": a context of {} would still fit", context);
  }
  return line;
}

std::string plain_header() {
  return "rank\tseconds\ttokens_per_second\tmfu\tbytes\tbubble\tpipe\tdata\ttensor\tcontext\texpert\tsequence\tzero\t"
         "schedule\tchunks\tmicrobatches\trecompute\texact\tlimit";
}

std::string plain_row(const PlanProblem& p, double flops, std::size_t rank, const Planned& x) {
  const RunKeys& k = x.keys;
  return fmt::format(
      "{}\t{:.10g}\t{:.10g}\t{:.6g}\t{:.10g}\t{:.6g}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}", rank,
      x.seconds, p.tokens() / x.seconds, mfu(p, flops, x.seconds), x.bytes, x.bubble, k.pipe, k.data,
      k.tensor, k.context, k.expert, k.sequence ? 1 : 0, k.zero, k.schedule, k.chunks, k.microbatches,
      k.recompute_str(), name_of(x.exact), limit_of(x));
}

std::vector<WhatIf> what_if(const PlanProblem& p, const Program& program, double factor) {
  std::vector<WhatIf> all;
  const auto with = [&](std::string what, auto change) {
    Cluster cluster = p.cluster.cluster;
    change(cluster);
    all.push_back({std::move(what), step_time(program, cluster).seconds});
  };
  if (p.cluster.cluster.ranks_per_node < p.ranks)
    with("network between nodes", [&](Cluster& x) { x.between.bandwidth *= factor; });
  if (p.cluster.cluster.ranks_per_node > 1)
    with("links inside of a node", [&](Cluster& x) { x.inside.bandwidth *= factor; });
  with("arithmetic", [&](Cluster& x) { x.machine.flops *= factor, x.machine.flops_bf16 *= factor; });
  with("memory bandwidth", [&](Cluster& x) { x.machine.memory_bandwidth *= factor; });
  return all;
}

Error nothing_fits(const PlanProblem& p, const Plan& plan, const std::vector<std::string>& remedies) {
  const std::string where =
      fmt::format("nothing fits {} on {} rank{}", decimal_bytes(plan.capacity), p.ranks, p.ranks == 1 ? "" : "s");
  const std::string hint =
      remedies.empty() ? "more ranks, a smaller context or batch, or a smaller model" : join(remedies, ", or ");
  if (!plan.nearest) {
    const Counts& c = plan.counts;
    return Error("plan",
                 "{}: of {} configurations {} have states alone that are larger, {} are too large with what they "
                 "keep, and {} cannot be compiled",
                 where, c.tried, c.states, c.memory, c.refused)
        .hint("{}", hint);
  }
  const Planned& x = *plan.nearest;
  const double states = x.memory.states();
  return Error("plan", "{}: the closest needs {} ({}): {}; its states alone {}", where, decimal_bytes(x.bytes),
               x.keys.str(), shares(memory_parts(x.memory), x.bytes, 3, 0.005),
               states > plan.capacity ? fmt::format("are {}", decimal_bytes(states))
                                      : fmt::format("would fit with {}", decimal_bytes(states)))
      .hint("{}", hint);
}

}  // namespace stretto
