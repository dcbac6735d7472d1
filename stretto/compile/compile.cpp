#include "stretto/compile/compile.h"

#include <algorithm>
#include <map>
#include <utility>

#include "stretto/compile/expert_rows.h"
#include "stretto/compile/inner/cut.h"
#include "stretto/compile/inner/differentiated.h"
#include "stretto/compile/inner/epilogue.h"
#include "stretto/compile/inner/exact.h"
#include "stretto/compile/inner/precision.h"
#include "stretto/compile/inner/refusals.h"
#include "stretto/compile/placed.h"
#include "stretto/compile/scheduled.h"
#include "stretto/ops/input.h"
#include "stretto/program/lower.h"
#include "stretto/simulate/step_time.h"
#include "stretto/step/storage.h"

namespace stretto {
namespace {

// What compile() and compile_forward() are asked for.
struct Asked {
  const Model& model;
  const Optimizer* optimizer = nullptr;  // none: forward only
  const Training& training;
  const Parallel& parallel;
  std::map<std::string, i64> sizes = {};
  const Program* trained = nullptr;
  // With the masters of bf16 parameters.
  int states() const { return optimizer ? std::ssize(optimizer->state) + (training.dtype == bf16) : 0; }
};

TraceOptions trace_options(const Asked& a) {
  return {.dtype = a.training.dtype,
          .microbatches = a.training.microbatches,
          .sizes = a.sizes,
          .training = a.optimizer != nullptr,
          .in_f32 = a.training.in_f32,
          .frozen = a.training.frozen,
          .frozen_dtype = a.training.frozen_dtype,
          .segments = a.optimizer ? a.training.segments : SegmentSizes{},
          .expert_rows = expert_rows(a.parallel, a.training),
          .expert_ranks = expert_ranks(a.parallel),
          .exchanges_rows = exchanges_by_cost(a.parallel)};
}

Schedule schedule_for(const Asked& a, int runs) {
  if (a.trained) return forward_part(a.trained->schedule, runs);
  Schedule s = schedule_of(a.parallel, a.training.microbatches, a.training.segments.number());
  return a.optimizer ? s : forward_part(std::move(s));
}

Step with_storage(Step step, const Storage& s) {
  return s.params.empty() && s.gradients.empty() ? std::move(step) : set_apart(std::move(step));
}

LowerOptions lower_options(const Asked& a, const Surroundings& around, const Parallel& p, SharedRows shared) {
  LowerOptions o{.states = a.states(),
                 .rows = around.traced.rows_per_step / around.microbatches,
                 .shared = std::move(shared),
                 .mesh = around.sharded ? around.sharded->mesh : Mesh{},
                 .link = p.within.value_or(p.link),
                 .remote = p.remote,
                 .threads = p.threads,
                 .reshard = p.reshard,
                 .undo = a.optimizer && a.training.clip_late,
                 .purpose = p.purpose,
                 .params_of = a.trained};
  if (around.sharded)
    for (const ShardedParam& x : around.sharded->params) {
      AxisNames& axes = o.param_axes[o.param_axes.push_back(x.split)];
      axes.insert(axes.end(), x.params.begin(), x.params.end());
    }
  const Cluster cluster = cluster_of(p);
  if (p.overlap != Overlap::none)
    o.overlap = {.cluster = cluster,
                 .predicted = [cluster](const Program& program) { return step_seconds(program, cluster); },
                 .apart = p.purpose == Purpose::facts};
  return o;
}

bool same_ids(const Graph& g, NodeId a, NodeId b) {
  const Node &x = g.node(a), &y = g.node(b);
  const IdOperand of_x = x.op->ids({g, x}), of_y = y.op->ids({g, y});
  return x.op == y.op && x.scope == y.scope && of_x.limit == of_y.limit && of_x.none == of_y.none;
}

// Inputs that forward reads as ids, just as they were given, or a segment of them. (Backward reads the same ones
// again.)
std::vector<InputOfIds> inputs_of_ids(const Graph& g, const IdVector<InputId, TracedInput>& inputs, bool cut) {
  std::map<std::string, InputId> named;
  for (InputId i : inputs.ids()) named.emplace(inputs[i].name, i);
  std::vector<InputOfIds> all;
  for (std::size_t n = 0; n < g.nodes.size(); ++n) {
    const Node& node = g.nodes[n];
    if (node.backward || !node.op->ids) continue;
    Value from = node.operands[node.op->ids({g, node}).operand];
    while (cut && g.node(from).op->view) from = g.node(from).operands[0];
    if (!g.node(from).attrs.is<InputAttrs>()) continue;
    const auto input = named.find(g.node(from).attrs.as<InputAttrs>().name);
    if (input == named.end()) continue;
    const auto alike = [&](const InputOfIds& x) {
      return x.input == input->second && same_ids(g, x.reader, NodeId(n));
    };
    if (std::none_of(all.begin(), all.end(), alike)) all.push_back({input->second, NodeId(n)});
  }
  return all;
}

Compiled assemble(Traced traced, Graph graph, std::shared_ptr<const Sharded> sharded,
                  IdVector<ScalarId, std::string> scalars, Program program) {
  Compiled c{.graph = std::move(graph),
             .sharded = std::move(sharded),
             .inputs = std::move(traced.inputs),
             .scalars = std::move(scalars),
             .terms = std::move(traced.terms),
             .metrics = std::move(traced.metrics),
             .exchanges = std::move(traced.exchanges),
             .batch = std::move(traced.batch),
             .rows_per_step = traced.rows_per_step,
             .experts = traced.experts};
  c.ids = inputs_of_ids(c.graph, c.inputs, program.step->segments > 1);
  auto accumulators = accumulators_of(*program.step);
  for (ParamId i : traced.params.ids()) {
    TracedParam& p = traced.params[i];
    c.params.push_back({std::move(p.name), std::move(p.dims), p.dtype, p.options, std::move(accumulators[i])});
  }
  for (const Task& t : program.step->tasks)
    for (const Binding& b : t.outputs)
      if (const StateId* state = as<StateId>(b)) c.params[state->param].states.push_back(state->which);
  c.program = std::make_shared<const Program>(std::move(program));
  return c;
}

// The picture of docs/architecture.md. Each arrow's result is checked by its verifier before the next one sees it.
GraphOfRank graph_of_rank(const Asked& a) {
  const TraceOptions tracing = exact_rows(a.model, trace_options(a), a.parallel, a.training);
  GraphOfRank g{.runs = static_cast<int>(tracing.microbatches), .traced = trace_step(a.model, tracing)};
  check_tasks(pieces_of(g.traced.step.graph), g.runs, a.optimizer != nullptr);
  g.graph = in_precision(a.optimizer ? differentiated(g.traced) : g.traced.step);
  const Parallel parallel = complete(a.parallel, g.traced);
  check_rows(g.traced, parallel, g.runs);
  check_together(g.traced, a.optimizer, a.training, parallel);
  g.placed = place(g.graph, parallel);
  return g;
}

Compiled compile(const Asked& a, GraphOfRank g) {
  auto& [runs, traced, graph, placed] = g;
  if (a.optimizer && a.parallel.measured) check_measured(placed.step.graph, *a.parallel.measured);
  Schedule schedule = schedule_for(a, runs);
  Parallel parallel = complete(a.parallel, traced);
  if (!a.optimizer) parallel.measured.reset();  // they are of a step that trains
  Cut cut = cut_step(placed.step, schedule, parallel, a.states());
  Step step = with_storage(std::move(cut.step), parallel.storage);
  step = with_accumulators(std::move(step), schedule.pipes(), placed.sharded.get());
  const Surroundings around{traced, placed.sharded.get(), runs, schedule.pipes()};
  WholeStep whole = add_prologue(std::move(step), around);
  if (a.optimizer)
    whole = add_epilogue(
        std::move(whole), around, *a.optimizer,
        {.clip = a.training.clip, .skip_nonfinite = a.training.skip_nonfinite, .late = a.training.clip_late});
  ScheduledStep last =
      exact({std::move(schedule), std::move(whole.step), {.axes = axes_of_rows(parallel, traced.batch)}}, around,
            parallel, a.training);
  const LowerOptions options = lower_options(a, around, parallel, std::move(last.shared));
  Program program = lower(std::move(last.step), last.schedule, std::move(cut.stage_of), options);
  Compiled c = assemble(std::move(traced), std::move(graph.graph), std::move(placed.sharded), std::move(whole.scalars),
                        std::move(program));
  c.training = a.training, c.parallel = parallel, c.model = a.model;
  if (a.optimizer) c.optimizer = *a.optimizer;
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

DType Compiled::state_dtype(StateId s) const {
  return s.which < program->step->bf16_states ? bf16 : params[s.param].logical_dtype();
}

std::optional<ScalarId> Compiled::scalar(std::string_view name) const { return find_scalar(scalars, name); }

Compiled compile(const Model& model, const Optimizer& optimizer, const Training& training, const Parallel& parallel) {
  return compile(graph_of_rank(model, optimizer, training, parallel), model, optimizer, training, parallel);
}

GraphOfRank graph_of_rank(const Model& model, const Optimizer& optimizer, const Training& training,
                          const Parallel& parallel) {
  return graph_of_rank({.model = model, .optimizer = &optimizer, .training = training, .parallel = parallel});
}

Compiled compile(GraphOfRank graph, const Model& model, const Optimizer& optimizer, const Training& training,
                 const Parallel& parallel) {
  return compile({.model = model, .optimizer = &optimizer, .training = training, .parallel = parallel},
                 std::move(graph));
}

u64 graph_hash(const Compiled& c) {
  return graph_of_rank(c.model, c.optimizer, c.training, c.parallel).placed.step.graph.hash();
}

Compiled compile_forward(const Model& model, const Training& training, const Parallel& parallel,
                         const std::map<std::string, i64>& sizes, const Program* trained) {
  const Asked a{.model = model, .training = training, .parallel = parallel, .sizes = sizes, .trained = trained};
  return compile(a, graph_of_rank(a));
}

}  // namespace stretto
