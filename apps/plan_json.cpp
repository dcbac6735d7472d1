// `stretto plan --json`: the answer as one object, for scripts that want more than a table's rows.
#include <fmt/format.h>

#include "plan_run.h"
#include "stretto/formats/fields.h"
#include "stretto/plan/explain.h"

namespace stretto::app {
namespace {

Field of_keys(const RunKeys& k) {
  Field f{Field::Table{}};
  f.set("pipe", k.pipe);
  f.set("data", k.data);
  f.set("tensor", k.tensor);
  f.set("context", k.context);
  f.set("expert", k.expert);
  f.set("sequence", k.sequence);
  f.set("zero", k.zero);
  f.set("schedule", std::string(k.schedule));
  f.set("chunks", k.chunks);
  f.set("microbatches", k.microbatches);
  f.set("recompute", recompute_field(k));
  f.set("stages", Field::Array(k.stages.begin(), k.stages.end()));
  return f;
}

Field of_memory(const MemoryParts& m) {
  Field f{Field::Table{}};
  f.set("parameters", m.params);
  f.set("gradients", m.gradients);
  f.set("state", m.state);
  f.set("activations", m.activations);
  f.set("temporaries", m.beside);
  f.set("messages", m.messages);
  f.set("gaps", m.gaps);
  return f;
}

Field of_planned(const PlanProblem& p, double flops, const Planned& x) {
  Field f{Field::Table{}};
  f.set("seconds", x.seconds);
  f.set("tokens_per_second", double(p.tokens()) / x.seconds);
  f.set("mfu", mfu(p, flops, x.seconds));
  f.set("bytes", x.bytes);
  f.set("bubble", x.bubble);
  f.set("exact", std::string(name_of(x.exact)));
  f.set("limit", limit_of(x));
  for (const auto& [name, seconds] : x.time.parts()) f.set(fmt::format("time.{}", name), seconds);
  f.set("memory", of_memory(x.memory));
  f.set("keys", of_keys(x.keys));
  return f;
}

}  // namespace

std::string json_of(const Planning& planned) {
  const PlanProblem& p = planned.problem;
  const Plan& plan = planned.plan;
  Field f{Field::Table{}};
  f.set("cluster", p.cluster.name);
  f.set("ranks", p.ranks);
  f.set("capacity", plan.capacity);
  f.set("extrapolated", p.cluster.calibrated ? Field(extrapolated(p.cluster, sizes_of(p.model, p.ranks))) : Field());
  f.set("search.seconds", planned.seconds);
  const Counts& c = plan.counts;
  for (const auto& [name, count] : {std::pair{"tried", c.tried},
                                    {"states_too_large", c.states},
                                    {"too_large", c.memory},
                                    {"above_bound", c.bound},
                                    {"refused", c.refused},
                                    {"fit", c.fit},
                                    {"played", c.played},
                                    {"compiled", c.compiled}})
    f.set(fmt::format("search.{}", name), count);
  Field::Array best, others;
  for (const Planned& x : plan.best) best.push_back(of_planned(p, plan.flops, x));
  for (const Alternative& a : plan.others) {
    Field other = of_planned(p, plan.flops, a.best);
    other.set("key", a.key);
    other.set("value", a.value);
    others.push_back(std::move(other));
  }
  f.set("best", std::move(best));
  f.set("as_good", i64(plan.as_good.size()));
  f.set("why_not", std::move(others));
  return write_json(f, 2);
}

}  // namespace stretto::app
