#include "stretto/simulate/predict.h"

#include <numeric>

#include "stretto/cost/collective.h"
#include "stretto/fuse/cost.h"
#include "stretto/ir/collective.h"
#include "stretto/simulate/step_time.h"

namespace stretto {
namespace {

double seconds(const Program& p, TaskId task, const Machine& machine, const std::optional<Link>& link) {
  const Graph& body = *p.step->tasks[task].body;
  double sum = seconds_of(*p.calls[task], machine);
  for (const Node& n : body.nodes)
    if (link && n.op->collective) sum += collective_seconds(shape_of(body, n, p.mesh), *link);
  return sum;
}

}  // namespace

StageCosts stage_costs(const Program& p, const Machine& machine, const std::optional<Link>& link) {
  StageCost nothing;
  nothing.F = nothing.I = nothing.W = 0;
  StageCosts costs(p.schedule.stages, nothing);
  const int segments = p.step->segments;
  IdVector<StageId, std::vector<double>> of_segments(costs.size(), std::vector<double>(std::size_t(segments), 0));
  for (TaskId task : p.step->tasks.ids()) {
    const Task& t = p.step->tasks[task];
    if (!of_an_action(t.part)) continue;
    StageCost& c = costs[p.stage_of[*t.piece]];
    const double takes = seconds(p, task, machine, link);
    of_segments[p.stage_of[*t.piece]][std::size_t(p.step->segment_of(*t.piece))] += takes;
    if (t.part == Part::R)
      c.R = c.R.value_or(0) + takes;
    else
      (t.part == Part::F ? c.F : t.part == Part::I ? c.I : c.W) += takes;
  }
  for (const CrossValue& v : p.step->values) {
    const Task& from = p.step->tasks[v.producer];
    if (from.part != Part::F) continue;
    const StageId stage = p.stage_of[*from.piece];
    bool sent = false;
    for (const TaskId consumer : v.consumers) {
      const Task& to = p.step->tasks[consumer];
      sent = sent || (to.part == Part::F && p.stage_of[*to.piece] > stage);
    }
    if (sent) costs[stage].message_bytes += v.bytes;
  }
  for (const StageId stage : costs.ids()) {
    std::vector<double>& each = of_segments[stage];
    const double sum = std::accumulate(each.begin(), each.end(), 0.0);
    if (segments == 1 || !(sum > 0)) continue;
    for (double& x : each) x /= sum;
    costs[stage].shares = std::move(each);
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
  s.timeline = false;
  Prediction result = simulate(p.schedule, s);
  // The step itself instruction by instruction: with prologue, epilogue, and what goes on beside tasks.
  const Cluster cluster{.machine = o.machine, .between = o.link.value_or(Link{})};
  PlayedStep played = play_step(p, cluster, o.messages);
  result.timeline = std::move(played.timeline);
  result.makespan = result.period_barrier = played.time.seconds;
  result.period = step_period(p, cluster);
  result.span = result.timeline.span();
  result.bubble = result.timeline.bubble();
  for (int a = 0; a < result.timeline.actors; ++a) result.actor_bubble[a] = result.timeline.bubble(a);
  return result;
}

}  // namespace stretto
