#include "stretto/simulate/predict.h"

#include "stretto/simulate/step_time.h"

#include "stretto/cost/collective.h"
#include "stretto/ir/collective.h"

namespace stretto {
namespace {

double seconds(const Machine& machine, const Task& task, const Mesh& mesh, const std::optional<Link>& link) {
  double sum = 0;
  for (const Node& n : task.body->nodes) {
    const Cost c = n.op->cost({*task.body, n});
    sum += seconds(machine, c.flops, c.read + c.written);
    if (link && n.op->collective) sum += collective_seconds(shape_of(*task.body, n, mesh), *link);
  }
  return sum;
}

}  // namespace

std::vector<StageCost> stage_costs(const Program& p, const Machine& machine, const std::optional<Link>& link) {
  StageCost nothing;
  nothing.F = nothing.I = nothing.W = 0;
  std::vector<StageCost> costs(std::size_t(p.schedule.stages), nothing);
  for (const Task& t : p.step->tasks) {
    if (t.part < Part::F || t.part > Part::W) continue;
    StageCost& c = costs[std::size_t(p.stage_of[t.piece])];
    if (t.part == Part::R)
      c.R = c.R.value_or(0) + seconds(machine, t, p.mesh, link);
    else
      (t.part == Part::F ? c.F : t.part == Part::I ? c.I : c.W) += seconds(machine, t, p.mesh, link);
  }
  for (const CrossValue& v : p.step->values) {
    const Task& from = p.step->tasks[v.producer];
    if (from.part != Part::F) continue;
    const int stage = p.stage_of[from.piece];
    bool sent = false;
    for (const std::uint32_t consumer : v.consumers)
      sent = sent || (p.step->tasks[consumer].part == Part::F && p.stage_of[p.step->tasks[consumer].piece] > stage);
    if (sent) costs[std::size_t(stage)].message_bytes += double(v.bytes);
  }
  return costs;
}

double step_flops(const Program& p) {
  double sum = 0;
  for (const Task& t : p.step->tasks)
    if (t.part == Part::F || t.part == Part::I || t.part == Part::W)
      for (const Node& n : t.body->nodes) sum += n.op->cost({*t.body, n}).flops;
  return sum * p.schedule.microbatches * p.ranks_per_actor();
}

Prediction predict(const Program& p, const PredictOptions& o) {
  SimulateOptions s;
  s.stages = stage_costs(p, o.machine, o.link);
  if (o.link) s.link = [link = *o.link](int, int) { return link; };
  s.messages = o.messages;
  s.as_run = true;
  s.timeline = false;
  Prediction result = simulate(p.schedule, s);
  // The step itself instruction by instruction: with prologue, epilogue, and what goes on beside tasks.
  PlayedStep played = play_step(p, {.machine = o.machine, .between = o.link.value_or(Link{})}, o.messages);
  result.timeline = std::move(played.timeline);
  result.makespan = result.period_barrier = played.time.seconds;
  result.span = result.timeline.span();
  result.bubble = result.timeline.bubble();
  for (int a = 0; a < result.timeline.actors; ++a) result.actor_bubble[std::size_t(a)] = result.timeline.bubble(a);
  return result;
}

}  // namespace stretto
