#include "stretto/compile/compile.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "stretto/autodiff/autodiff.h"
#include "stretto/balance/balance.h"
#include "stretto/base/text.h"
#include "stretto/compile/at_readers.h"
#include "stretto/compile/epilogue.h"
#include "stretto/compile/exact.h"
#include "stretto/cost/machine.h"
#include "stretto/ops/cast.h"
#include "stretto/ops/input.h"
#include "stretto/shard/epilogue.h"
#include "stretto/stage/cost.h"
#include "stretto/stage/split.h"
#include "stretto/stage/storage.h"

namespace stretto {
namespace {

// The traced model as plain data, and what the run has to know about it.
struct Front {
  StepGraph step;
  std::vector<std::uint32_t> scales;  // per loss term: index into scalars
};

std::string input_name(const Graph& g, Value v) { return g.node(v).attrs.as<InputAttrs>().name; }

void place_at_readers(Trace& t, Loss& loss) {
  AtReaders moved(t.builder.graph);
  if (!moved.needed()) return;
  const auto move = [&](Tensor& x) { x.value = moved(x.value); };
  for (ParamInfo& p : t.params) move(p.tensor);
  for (Tensor& x : t.inputs) move(x);
  for (Tensor& x : t.scalars) move(x);
  for (LossTerm& term : loss.terms) move(term.sum), move(term.count), move(term.scale);
  for (Metric& m : t.metrics) move(m.value);
  t.builder.graph = std::move(moved).graph();
}

Front trace_model(const Model& model, Compiled& c, const TraceOptions& options, bool gradients) {
  Trace t(options);
  Loss loss = model(t);
  if (loss.terms.empty())
    throw Error("model", "the loss has no terms").hint("return cross_entropy(...) or mean_of(...)");
  if (t.batch_name.empty())
    throw Error("model", "no batch dim was declared").hint("make it with t.batch(\"batch\", rows per step)");
  c.batch = t.batch_name;
  c.rows_per_step = t.rows_per_step;
  place_at_readers(t, loss);
  Front f;
  for (const ParamInfo& p : t.params) {
    f.step.params.push_back(p.tensor.value);
    c.params.push_back({.name = p.name, .dims = p.tensor.dims(), .dtype = p.tensor.dtype(), .options = p.options});
  }
  for (const Tensor& in : t.inputs) {
    f.step.inputs.push_back(in.value);
    c.inputs.push_back({input_name(t.builder.graph, in.value), in.dims(), in.dtype()});
  }
  for (const Tensor& s : t.scalars) {
    f.step.scalars.push_back(s.value);
    c.scalars.push_back(input_name(t.builder.graph, s.value));
  }
  std::vector<Root> roots;
  for (const LossTerm& term : loss.terms) {
    if (!term.sum.dims().empty())
      throw Error("model", "the sum of loss term '{}' still has dims: {}", term.name, term.sum.str())
          .hint("sum over them: mean_of(x) or sum(x, x.dims())");
    f.scales.push_back(std::uint32_t(f.step.scalars.size()));
    f.step.scalars.push_back(term.scale.value);
    c.scalars.push_back(input_name(t.builder.graph, term.scale.value));
    const auto output = [&](std::string_view what, Tensor v, bool count) {
      f.step.outputs.push_back({fmt::format("{}.{}", term.name, what), v.value, count});
      return std::uint32_t(f.step.outputs.size() - 1);
    };
    CompiledTerm ct{.name = term.name, .weight = term.weight};
    ct.sum = output("sum", term.sum, false);
    ct.count = output("count", term.count, true);
    c.terms.push_back(ct);
    roots.push_back({term.sum, term.sum.dtype() == f64 ? term.scale : cast(term.scale, term.sum.dtype())});
  }
  for (const Metric& m : t.metrics) {
    c.metrics.push_back({m.name, std::uint32_t(f.step.outputs.size()), m.how, m.value.dtype(),
                         t.builder.graph.elements(m.value.type())});
    f.step.outputs.push_back({m.name, m.value.value, false});
  }
  if (gradients) {
    std::vector<Tensor> trained;
    std::vector<std::uint32_t> which;
    for (std::uint32_t i = 0; i < t.params.size(); ++i)
      if (t.params[i].options.trainable) trained.push_back(t.params[i].tensor), which.push_back(i);
    for (const Gradient& g : differentiate(t.builder, roots, trained)) {
      const auto at =
          std::find_if(trained.begin(), trained.end(), [&](const Tensor& p) { return p.value == g.of.value; });
      f.step.gradients.push_back({which[std::size_t(at - trained.begin())], g.piece, g.grad.value});
    }
    for (std::uint32_t i : which) {
      const bool used =
          std::any_of(f.step.gradients.begin(), f.step.gradients.end(), [&](const auto& g) { return g.param == i; });
      if (!used)
        throw Error("model", "parameter '{}' does not reach the loss", c.params[i].name)
            .hint("remove it, use it, or make it not trainable");
    }
  }
  f.step.graph = std::move(t.builder.graph);
  c.graph = f.step.graph;
  return f;
}

// Every pipe has gradients of its own, which are added up: one without microbatches would have none.
void check_pipes(const Schedule& s) {
  std::vector<char> works(std::size_t(s.pipes()), 0);
  for (const Row& row : s.rows)
    for (const Action& a : row) works[a.pipe] = 1;
  const auto idle = std::find(works.begin(), works.end(), 0);
  if (idle == works.end()) return;
  throw Error("schedule", "'{}' has {} pipes, and pipe {} gets none of the {} microbatches", s.name, s.pipes(),
              idle - works.begin(), s.microbatches)
      .hint("use at least {} microbatches, or a schedule of one pipe, e.g. 1f1b", s.pipes());
}

// The schedule that is asked for, refused with all its faults, or with what training cannot do yet. Exact training
// plays it with several leaves in place of every microbatch.
Schedule schedule_of(const Compiled& c, int leaves) {
  for (const Axis& a : c.parallel.mesh)
    if (a.size < 1) throw Error("mesh", "axis '{}' has size {}", a.name, a.size).hint("sizes are at least 1");
  const Request request{.actors = c.parallel.mesh.extent("pipe"),
                        .microbatches = c.training.microbatches / leaves,
                        .chunks = c.parallel.chunks};
  CheckedSchedule checked = check_schedule(c.parallel.schedule, request);
  refuse(checked.validation.all_faults());
  if (checked.schedule.pieces > 1 || checked.schedule.name.starts_with("seq-"))
    throw Error("schedule", "'{}' cuts sequences into pieces, which can be simulated but not trained",
                checked.schedule.name)
        .hint("use a schedule of whole microbatches, e.g. 1f1b");
  check_pipes(checked.schedule);
  if (!c.training.exact) return checked.schedule;
  const auto& notes = checked.validation.notes;
  if (checked.schedule.pipes() > 1 ||
      std::any_of(notes.begin(), notes.end(), [](const Finding& f) { return f.kind == Finding::Kind::accumulation; }))
    throw Error("schedule", "'{}' does not add gradients in ascending microbatch order, as exact training does",
                checked.schedule.name)
        .hint("use a schedule of one pipe that does, e.g. 1f1b, zb-h1, zb-v or dualpipe-v; or leave out train.exact");
  checked.schedule.marks.clear();  // positions in rows are others then
  return on_leaves(std::move(checked.schedule), leaves);
}

// What the short names say, and what is said beside them, as one mesh, one layout and one storage.
void complete_layout(Compiled& c) {
  Parallel& p = c.parallel;
  NamedLayout named = layout_of(std::exchange(p.names, {}), c.graph.dims, c.batch);
  for (const Axis& a : named.mesh) {
    if (std::any_of(p.mesh.begin(), p.mesh.end(), [&](const Axis& x) { return x.name == a.name; }))
      throw Error("mesh", "axis '{}' is given twice: in the mesh and by its short name", a.name).hint("leave one out");
    p.mesh.push_back(a);
  }
  const auto given = [&](const LayoutEntry& e) {
    return std::any_of(p.layout.begin(), p.layout.end(), [&](const LayoutEntry& x) { return x.dim == e.dim; });
  };
  std::erase_if(named.layout, given);
  p.layout.insert(p.layout.begin(), named.layout.begin(), named.layout.end());
  for (const auto& [to, from] : {std::pair{&p.storage.state, &named.storage.state},
                                 {&p.storage.gradients, &named.storage.gradients},
                                 {&p.storage.params, &named.storage.params}})
    for (const std::string& axis : *from)
      if (std::find(to->begin(), to->end(), axis) == to->end()) to->push_back(axis);
}

// The axes that rows lie on.
AxisNames rows_over(const Compiled& c) {
  AxisNames axes;
  for (const LayoutEntry& e : c.parallel.layout)
    if (e.dim == c.batch)
      for (const std::string& a : e.axes)
        if (c.parallel.mesh.extent(a) > 1) axes.push_back(a);
  return axes;
}
int ranks_over(const Compiled& c, const AxisNames& axes) {
  int ranks = 1;
  for (const std::string& a : axes) ranks *= c.parallel.mesh.extent(a);
  return ranks;
}

// Every rank gets equally many rows of every microbatch.
void check_rows(const Compiled& c) {
  const AxisNames axes = rows_over(c);
  const int ranks = ranks_over(c, axes);
  const i64 rows = c.rows_per_step / c.training.microbatches, unit = i64(ranks) * c.training.microbatches;
  if (rows % ranks == 0) return;
  const i64 less = c.rows_per_step / unit * unit;
  throw Error("batch",
              "{} rows per step in {} microbatches are {} rows at a time, which {} ranks along {} cannot share",
              c.rows_per_step, c.training.microbatches, rows, ranks, join(axes, ", "))
      .hint("{}", less > 0 ? fmt::format("the nearest batch sizes are {} and {}", less, less + unit)
                           : fmt::format("the nearest batch size is {}", less + unit));
}

// Positions in rows are others then.
void forward_only(Schedule& s) {
  for (Row& row : s.rows) std::erase_if(row, [](const Action& a) { return a.phase != Phase::F; });
  s.marks.clear();
}

// The forward part of a schedule that has been checked already. For another number of microbatches: one after the other
// through the first pipe.
Schedule forward_of(Schedule s, int microbatches) {
  forward_only(s);
  if (s.microbatches == microbatches) return s;
  for (Row& row : s.rows) row.clear();
  for (int m = 0; m < microbatches; ++m)
    for (int stage = 0; stage < s.stages; ++stage) s.rows[std::size_t(s.actor_of[0][std::size_t(stage)])].F(stage, m);
  s.microbatches = microbatches;
  return s;
}

// The graph of one rank. Without axes beside the pipeline's it is the graph itself.
void shard_step(Front& f, Compiled& c) {
  complete_layout(c);
  int ranks = 1;
  for (const Axis& a : c.parallel.mesh)
    if (a.name != "pipe") ranks *= std::max(1, a.size);
  const Parallel& p = c.parallel;
  if (p.reshard == Reshard::step && p.storage.params.empty())
    throw Error("parallel", "reshard = \"step\" keeps parameters gathered for a step, and none are cut over ranks")
        .hint("cut them (zero = 3, or depth), or leave reshard out");
  if (ranks == 1 && p.layout.empty() && p.storage.state.empty()) return;
  check_rows(c);
  auto sharded =
      std::make_shared<Sharded>(shard(f.step, p.mesh, p.layout, {.storage = p.storage, .regather = p.regather}));
  if (ranks == 1) return;  // what the layout names exists, and nothing is split
  f.step = sharded->graph;
  c.sharded = std::move(sharded);
}

// Per stage.
std::vector<Recompute> recompute_of(const Parallel& p, int stages) {
  const std::vector<Recompute>& given = p.recompute;
  if (given.size() < 2) return {std::size_t(stages), given.empty() ? Recompute::none : given[0]};
  if (int(given.size()) != stages)
    throw Error("recompute", "{} choices are given and there are {} stages", given.size(), stages)
        .hint("give one for all stages, or one per stage");
  return given;
}

// What a piece costs per microbatch: its tasks, and its share of the update.
std::vector<double> seconds_of(const Step& step, const Compiled& c) {
  const Machine machine;
  std::vector<double> seconds_per_piece;
  for (const Cost& cost : piece_costs(step))
    seconds_per_piece.push_back(seconds(machine, cost.flops, cost.read + cost.written));
  std::vector<char> seen(step.params.size(), 0);
  for (const Accumulator& a : step.accumulators) {
    if (std::exchange(seen[a.param], 1)) continue;
    const double arrays =
        3.0 + 2.0 * double(c.optimizer.state.size());  // parameter and states read and written, gradient
    seconds_per_piece[a.piece] +=
        seconds(machine, 0, arrays * double(step.bytes(step.params[a.param]))) / c.training.microbatches;
  }
  return seconds_per_piece;
}

std::vector<int> balanced(const StepGraph& graph, const Step& step, const Compiled& c, const Schedule& schedule,
                          const std::vector<Recompute>& modes) {
  const Parallel& p = c.parallel;
  BalanceProblem problem{.actor_of = schedule.actor_of};
  for (const Crossing& x : crossings(step))
    problem.message.push_back(p.link.seconds(x.forward) + (x.backward > 0 ? p.link.seconds(x.backward) : 0));
  if (!p.profile.empty()) {
    if (int(p.profile.size()) != step.pieces)
      throw Error("profile", "it has {} pieces and the model {}", p.profile.size(), step.pieces)
          .hint("measure this model, with these boundaries");
    for (double t : p.profile)
      if (!(t >= 0) || !std::isfinite(t))
        throw Error("profile", "a piece takes {} seconds", t).hint("times are finite and not negative");
    problem.seconds = {p.profile};
    return balance(problem).stage_of;
  }
  std::vector<Recompute> kinds;
  for (Recompute m : modes) {
    const auto it = std::find(kinds.begin(), kinds.end(), m);
    problem.kind.push_back(int(it - kinds.begin()));
    if (it != kinds.end()) continue;
    kinds.push_back(m);
    const SplitOptions o{.recompute = std::vector(std::size_t(step.pieces), m)};
    problem.seconds.push_back(seconds_of(m == Recompute::none ? step : split(graph, o), c));
  }
  return balance(problem).stage_of;
}

// Cuts come first: what a stage keeps depends on where it begins.
struct CutStep {
  Step step;
  std::vector<int> stage_of;
};
CutStep cut_step(const StepGraph& graph, const Compiled& c, const Schedule& schedule) {
  const std::vector<Recompute> modes = recompute_of(c.parallel, schedule.stages);
  CutStep r{.step = split(graph), .stage_of = {}};
  r.stage_of =
      c.parallel.stages.empty() ? balanced(graph, r.step, c, schedule, modes) : cut(c.parallel.stages, r.step.pieces);
  if (r.stage_of.back() + 1 != schedule.stages)
    throw Error("stages", "{} stages are given and the schedule has {}", r.stage_of.back() + 1, schedule.stages)
        .hint("give {} numbers of pieces", schedule.stages);
  if (std::all_of(modes.begin(), modes.end(), [](Recompute m) { return m == Recompute::none; })) return r;
  SplitOptions o{.stage_of = r.stage_of};
  for (int stage : r.stage_of) o.recompute.push_back(modes[std::size_t(stage)]);
  r.step = split(graph, o);
  return r;
}

// Exact training: `microbatches` becomes the number of a rank's leaves. Returns how many of them make a microbatch. The
// layout, which needs the model's dims, says how many ranks there are.
int cut_into_leaves(const Model& model, Compiled& c, TraceOptions options) {
  if (!c.training.exact) return 1;
  Compiled once{.training = c.training, .parallel = c.parallel};
  options.microbatches = 1;
  const Front f = trace_model(model, once, options, false);
  complete_layout(once);
  check_exact(once, f.step);
  const Leaves l = leaves_of(once.rows_per_step, ranks_over(once, rows_over(once)), c.training);
  c.training.microbatches = l.per_rank;
  return l.per_microbatch;
}

Compiled finish(Compiled c, Front f, bool training, int leaves, const Program* trained = nullptr) {
  Schedule schedule = trained ? forward_of(trained->schedule, c.training.microbatches) : schedule_of(c, leaves);
  shard_step(f, c);
  if (c.training.exact) check_exact_sums(c, rows_over(c));
  auto [step, stage_of] = cut_step(f.step, c, schedule);
  if (!c.parallel.storage.params.empty() || !c.parallel.storage.gradients.empty()) set_apart(step);
  if (c.sharded)
    for (const ShardedParam& p : c.sharded->params) step.updated.push_back(p.updated);
  // Every pipe has accumulators of its own.
  const std::size_t own = step.accumulators.size();
  for (int pipe = 1; pipe < schedule.pipes(); ++pipe)
    for (std::size_t a = 0; a < own; ++a) {
      step.accumulators.push_back(step.accumulators[a]);
      step.accumulators.back().pipe = std::uint8_t(pipe);
    }
  for (std::uint32_t a = 0; a < step.accumulators.size(); ++a)
    c.params[step.accumulators[a].param].accumulators.push_back(a);
  if (c.sharded)
    for (Accumulator& a : step.accumulators)
      if (c.params[a.param].accumulators.size() == 1) a.summed = summed_as_it_is(*c.sharded, a.param);
  if (c.training.exact && training) add_levels(step, c.training.microbatches);
  add_totals(step, c);
  add_scales(step, c, f.scales);
  if (training) add_epilogue(step, c, schedule.pipes());
  LowerOptions o{.states = training ? int(c.optimizer.state.size()) : 0,
                 .rows = c.rows_per_step / c.training.microbatches,
                 .mesh = c.sharded ? c.sharded->mesh : Mesh{},
                 .remote = c.parallel.remote,
                 .reshard = c.parallel.reshard,
                 .poll = c.parallel.poll,
                 .params_of = trained};
  if (c.training.exact) o.rows_over = rows_over(c);
  if (training && c.training.skip_nonfinite) o.gate = c.scalar("grad_norm");
  if (!training) forward_only(schedule);
  c.program = std::make_shared<const Program>(
      lower(std::make_shared<const Step>(std::move(step)), schedule, std::move(stage_of), o));
  return c;
}

}  // namespace

i64 Compiled::parameters() const {
  i64 n = 0;
  for (const CompiledParam& p : params) {
    i64 e = 1;
    for (const Dim& d : p.dims) e *= d.valid();
    n += e;
  }
  return n;
}

int Compiled::scalar(std::string_view name) const {
  const auto it = std::find(scalars.begin(), scalars.end(), name);
  return it == scalars.end() ? -1 : int(it - scalars.begin());
}

Compiled compile(const Model& model, const Optimizer& optimizer, const Training& training, const Parallel& parallel) {
  Compiled c{.training = training, .parallel = parallel, .model = model, .optimizer = optimizer};
  TraceOptions options{.dtype = training.dtype};
  const int leaves = cut_into_leaves(model, c, options);
  options.microbatches = c.training.microbatches;
  Front f = trace_model(model, c, options, true);
  return finish(std::move(c), std::move(f), true, leaves);
}

Compiled compile_forward(const Model& model, const Training& training, const Parallel& parallel,
                         const std::map<std::string, i64>& sizes, const Program* trained) {
  Compiled c{.training = training, .parallel = parallel, .model = model};
  TraceOptions options{.dtype = training.dtype, .sizes = sizes, .training = false};
  const int leaves = cut_into_leaves(model, c, options);
  options.microbatches = c.training.microbatches;
  Front f = trace_model(model, c, options, false);
  return finish(std::move(c), std::move(f), false, leaves, trained);
}

}  // namespace stretto
