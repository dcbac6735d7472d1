// The page beside a planned run.
#include <fmt/format.h>

#include "plan_run.h"
#include "stretto/base/text.h"
#include "stretto/plan/explain.h"
#include "stretto/simulate/step_time.h"
#include "stretto/run/measured_runs.h"

namespace stretto::app {
namespace {

constexpr std::size_t bars_shown = 10;
constexpr double swing = 1.2;

PlanBar memory_bar(const Planned& x) {
  const MemoryParts& m = x.memory;
  return {x.keys.str(),
          {{"parameters", m.params},
           {"gradients", m.gradients},
           {"optimizer state", m.state},
           {"activations", m.activations},
           {"temporaries", m.beside},
           {"messages", m.messages},
           {"gaps", m.gaps}}};
}

PlanBar time_bar(const Planned& x) {
  PlanBar bar{x.keys.str(), {}};
  for (const auto& [name, seconds] : x.time.parts()) bar.parts.emplace_back(name, seconds);
  return bar;
}

Timeline timeline_of(const PlanProblem& p, const Planned& x, const Program& program) {
  Timeline t = play_step(program, p.cluster.cluster).timeline;
  t.title = fmt::format("{}: {}", x.keys.str(), human_seconds(x.seconds));
  return t;
}

}  // namespace

std::vector<PlanMeasured> measured_on(const PlanArguments& a) {
  std::vector<PlanMeasured> all;
  if (a.measured.empty()) return all;
  for (const MeasuredFile& r : read_measured(a.measured))
    all.push_back({r.run, r.seconds, predicted_on(read_run(r.run), a.cluster).seconds});
  return all;
}

std::string page_of(const PlanProblem& p, const Plan& plan, const Program& program,
                    const std::vector<PlanMeasured>& measured, const std::vector<std::string>& lines) {
  PlanPage page{.title = fmt::format("A plan for {} ranks of {}", p.ranks, p.cluster.name),
                .lines = lines,
                .capacity = plan.capacity,
                .seconds = plan.best.front().seconds,
                .measured = measured};
  for (const Planned& x : plan.scored)
    page.points.push_back(
        {.seconds = x.seconds,
         .bytes = x.bytes,
         .group = x.keys.pipe,
         .kind = x.keys.pipe > 1 ? std::string(x.keys.schedule) : "no pipeline",
         .label = fmt::format("{}: {}, {}", x.keys.str(), human_seconds(x.seconds), decimal_bytes(x.bytes)),
         .compiled = x.exact == Exactness::program});
  for (std::size_t i = 0; i < plan.best.size() && i < bars_shown; ++i) {
    page.times.push_back(time_bar(plan.best[i]));
    page.memory.push_back(memory_bar(plan.best[i]));
  }
  page.timelines.push_back(timeline_of(p, plan.best.front(), program));
  if (plan.best.size() > 1) page.timelines.push_back(timeline_of(p, plan.best[1], *program_of(p, plan.best[1])));
  const std::vector<WhatIf> faster = what_if(p, program, swing), slower = what_if(p, program, 1 / swing);
  for (std::size_t i = 0; i < faster.size(); ++i)
    page.swings.push_back({faster[i].what, slower[i].seconds, faster[i].seconds});
  return plan_html(page);
}

}  // namespace stretto::app
