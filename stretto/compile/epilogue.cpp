#include "stretto/compile/epilogue.h"

#include <algorithm>
#include <map>

#include "stretto/compile/exact.h"
#include "stretto/ops/add.h"
#include "stretto/ops/all_reduce.h"
#include "stretto/ops/cast.h"
#include "stretto/ops/compare.h"
#include "stretto/ops/constant.h"
#include "stretto/ops/copy.h"
#include "stretto/ops/div.h"
#include "stretto/ops/extremum.h"
#include "stretto/ops/input.h"
#include "stretto/ops/iota.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/ops.h"
#include "stretto/ops/sqrt.h"
#include "stretto/ops/squared_norm.h"
#include "stretto/ops/sum.h"
#include "stretto/ops/where.h"
#include "stretto/shard/epilogue.h"
#include "stretto/stage/split.h"

namespace stretto {
namespace {

// Collects one task: arguments and results with their places, over a builder of its own.
struct TaskMaker {
  Trace trace;
  Task task;
  explicit TaskMaker(Part part, DType dtype, std::uint32_t subject = 0) : trace({.dtype = dtype}) {
    task.part = part;
    task.subject = subject;
  }
  Tensor in(DType dtype, const Dims& dims, Binding where) {
    task.inputs.push_back(where);
    return input(trace.builder, std::to_string(task.inputs.size() - 1), dtype, dims);
  }
  void out(Tensor t, Binding where) {
    trace.builder.graph.outputs.push_back(t.value);
    task.outputs.push_back(where);
  }
  Task finish(BodyPool& pool) {
    task.body = pool.share(std::move(trace.builder.graph));
    return std::move(task);
  }
};

// A rank's part of a parameter as one row of numbers: no task outside the microbatch loop looks at its dims.
Dim flat(const Compiled& c, std::uint32_t param) {
  if (c.sharded) return {fmt::format("flat{}", c.sharded->params[param].elements), c.sharded->params[param].elements};
  i64 n = 1;
  for (const Dim& d : c.params[param].dims) n *= d.size;
  return {"flat", n};
}
// What is kept of it between steps, and what norm and update see.
Dims stored_dims(const Compiled& c, std::uint32_t param) {
  if (!c.sharded || c.sharded->params[param].params.empty()) return flat(c, param);
  return dims_of(*c.sharded, c.sharded->params[param].stored);
}
Dims updated_dims(const Compiled& c, std::uint32_t param) {
  return c.sharded ? dims_of(*c.sharded, c.sharded->params[param].updated) : Dims(flat(c, param));
}
Dims accumulated_dims(const Compiled& c, std::uint32_t param) {
  if (c.sharded && !c.sharded->params[param].gradients.empty())
    for (const ShardedGradient& g : c.sharded->gradients)
      if (g.param == param) return dims_of(*c.sharded, g.accumulated);
  return flat(c, param);
}
bool cut_for_update(const Compiled& c, std::uint32_t param) {
  return c.sharded && !c.sharded->params[param].state.empty();
}

std::uint32_t add_scalar(Step& step, Compiled& c, std::string name) {
  step.scalars.push_back({f64, {}});
  c.scalars.push_back(std::move(name));
  return std::uint32_t(c.scalars.size() - 1);
}

// The optimizer's own body for one parameter: equal for all parameters of one size, decay and rate.
Task update_task(Compiled& c, Step& step, std::uint32_t index, bool clipped, BodyPool& pool) {
  const CompiledParam& p = c.params[index];
  const Dims dim = updated_dims(c, index);
  TaskMaker m(Part::update, p.dtype, index);
  const std::size_t states = c.optimizer.state.size();
  Slice s{.decay = p.options.decay, .lr_scale = p.options.lr_scale};
  s.param = m.in(p.dtype, stored_dims(c, index), {Place::param, index});
  if (cut_for_update(c, index)) s.param = part_to_update(s.param, *c.sharded, index);
  s.grad = m.in(p.dtype, dim, {Place::gradient, p.accumulators[0]});
  for (std::size_t k = 0; k < states; ++k)
    s.state[c.optimizer.state[k]] = m.in(p.dtype, dim, {Place::state, std::uint32_t(index * states + k)});
  if (clipped) s.grad = s.grad * cast(m.in(f64, {}, {Place::scalar, std::uint32_t(c.scalar("clip_factor"))}), p.dtype);
  const Slice done = c.optimizer.update(m.trace, s);
  for (const Tensor& t : m.trace.scalars) {
    // Scalars the optimizer asked for stand as inputs of its own trace: bind them by name.
    const std::string name = m.trace.builder.graph.node(t.value).attrs.as<InputAttrs>().name;
    const int known = c.scalar(name);
    if (known < 0)
      throw Error("optimizer", "'{}' asks for the scalar '{}', which nobody sets", c.optimizer.name, name)
          .hint("'lr' and 'step' are set each step");
  }
  if (!done.param)
    throw Error("optimizer", "'{}' returns no new parameter", c.optimizer.name).hint("set slice.param in update()");
  m.out(cut_for_update(c, index) ? stored_again(done.param, *c.sharded, index) : done.param, {Place::param, index});
  for (std::size_t k = 0; k < states; ++k) {
    const auto it = done.state.find(c.optimizer.state[k]);
    if (it == done.state.end() || !it->second)
      throw Error("optimizer", "'{}' returns no new state '{}'", c.optimizer.name, c.optimizer.state[k])
          .hint("set slice.state[\"{}\"] in update()", c.optimizer.state[k]);
    m.out(it->second, {Place::state, std::uint32_t(index * states + k)});
  }
  // Arguments are numbered in the order of the body's input nodes: rename and bind them in that order.
  Graph& g = m.trace.builder.graph;
  std::vector<Binding> bindings;
  for (Node& n : g.nodes) {
    if (n.op->leaf != Leaf::argument) continue;
    InputAttrs a = n.attrs.as<InputAttrs>();
    bindings.push_back(a.per_step ? Binding{Place::scalar, std::uint32_t(c.scalar(a.name))}
                                  : m.task.inputs[std::size_t(std::stoi(a.name))]);
    a.name = std::to_string(bindings.size() - 1);
    a.per_step = false;
    n.attrs = a;
  }
  m.task.inputs = std::move(bindings);
  (void)step;
  return m.finish(pool);
}

}  // namespace

namespace {
// Exact training: of which outputs only the sum over the step's rows is wanted.
std::vector<bool> added_up(const Compiled& c, const Step& step) {
  std::vector<bool> yes(step.outputs.size(), false);
  if (!c.training.exact || c.training.microbatches == 1) return yes;
  for (const CompiledTerm& t : c.terms) yes[t.sum] = yes[t.count] = true;
  for (const CompiledMetric& m : c.metrics)
    yes[m.output] = is_float(m.dtype) && (m.how == Accumulate::sum || m.how == Accumulate::mean);
  return yes;
}
}  // namespace

// Every rank gets the sums of all: the bits of losses and counts are the same everywhere. Exact training adds up a
// rank's leaves first: the sum stands in place of the first of them, zeros in place of the others.
void add_totals(Step& step, Compiled& c) {
  BodyPool pool;
  const std::size_t of_split = step.tasks.size();
  const std::vector<bool> tree = added_up(c, step);
  for (std::uint32_t k = 0; k < step.outputs.size(); ++k) {
    const StepOutput& o = step.outputs[k];
    const AxisNames axes = c.sharded ? c.sharded->outputs[k] : AxisNames{};
    if (axes.empty() && !tree[k]) continue;
    TaskMaker m(Part::total, o.type.dtype, k);
    for (std::size_t t = 0; t < of_split; ++t)
      if (const auto& made = step.tasks[t].outputs;
          std::find(made.begin(), made.end(), Binding{Place::output, k}) != made.end())
        m.task.piece = step.tasks[t].piece;
    const Dim all{"all", i64(o.bytes / size_of(o.type.dtype)) * c.training.microbatches};
    if (tree[k]) {
      const Tensor leaves = m.in(o.type.dtype, tree_dims(c.training.microbatches), {Place::outputs, k});
      const Tensor total = all_reduce(tree_sum_of(leaves), axes);
      m.out(where(equal(iota(m.trace.builder, all), 0), total, 0), {Place::outputs, k});
    } else {
      m.out(all_reduce(m.in(o.type.dtype, all, {Place::outputs, k}), axes), {Place::outputs, k});
    }
    step.tasks.push_back(m.finish(pool));
  }
}

void add_scales(Step& step, Compiled& c, const std::vector<std::uint32_t>& scale_scalars) {
  BodyPool pool;
  for (std::size_t k = 0; k < c.terms.size(); ++k) {
    TaskMaker m(Part::scale, f64, std::uint32_t(k));
    const Dim microbatch{"microbatch", c.training.microbatches};
    const Tensor total = sum(m.in(f64, microbatch, {Place::outputs, c.terms[k].count}), microbatch);
    const Tensor zero = constant(m.trace.builder, 0, f64), weight = constant(m.trace.builder, c.terms[k].weight, f64);
    m.out(where(greater(total, 0.0), weight / total, zero), {Place::scalar, scale_scalars[k]});
    step.tasks.push_back(m.finish(pool));
  }
}

namespace {
// A zero when the sum of a loss term over a pipe's microbatches is finite, else not a number: added to the squared
// norms it tells every actor.
Task finite_task(const Step& step, const Compiled& c, std::size_t term, int pipe, int pipes, BodyPool& pool) {
  const std::uint32_t output = c.terms[term].sum;
  const Type& type = step.outputs[output].type;
  const std::uint32_t square = std::uint32_t(c.params.size() + term * std::size_t(pipes) + std::size_t(pipe));
  TaskMaker m(Part::norm, type.dtype, square);
  for (const Task& t : step.tasks)
    if (std::find(t.outputs.begin(), t.outputs.end(), Binding{Place::output, output}) != t.outputs.end())
      m.task.piece = t.piece;
  const Dim microbatch{"microbatch", c.training.microbatches};
  Tensor total = sum(m.in(type.dtype, microbatch, {Place::outputs, output}), microbatch);
  if (type.dtype != f64) total = cast(total, f64);
  m.out(total * 0.0, {Place::square, square});
  return m.finish(pool);
}

}  // namespace

namespace {
// A gradient that is complete but for one reduce-scatter: that is a task of its own, which starts while backward still
// runs, and `combine` takes what it makes.
void add_scatter(Step& step, const Compiled& c, std::uint32_t param, TaskMaker& scatter, Tensor total, BodyPool& pool) {
  const std::uint32_t accumulator = c.params[param].accumulators[0], value = std::uint32_t(step.values.size());
  const Type& type = c.sharded->params[param].updated;
  scatter.task.part = Part::S;
  scatter.task.piece = step.accumulators[accumulator].piece;
  scatter.out(total, {Place::value, value});
  step.values.push_back({.type = type,
                         .bytes = step.bytes(type),
                         .producer = std::uint32_t(step.tasks.size()),
                         .consumers = {std::uint32_t(step.tasks.size() + 1)},
                         .name = fmt::format("gradient of {}, scattered", c.params[param].name)});
  step.tasks.push_back(scatter.finish(pool));
  TaskMaker combine(Part::combine, c.params[param].dtype, param);
  combine.out(copy(combine.in(c.params[param].dtype, updated_dims(c, param), {Place::value, value})),
              {Place::gradient, accumulator});
  step.tasks.push_back(combine.finish(pool));
}
}  // namespace

void add_epilogue(Step& step, Compiled& c, int pipes) {
  BodyPool pool;
  for (std::uint32_t i = 0; i < c.params.size(); ++i) {
    const CompiledParam& p = c.params[i];
    if (p.accumulators.empty() || !step.accumulators[p.accumulators[0]].summed.empty()) continue;
    TaskMaker m(Part::combine, p.dtype, i);
    std::vector<Tensor> parts;
    for (std::uint32_t a : p.accumulators) parts.push_back(m.in(p.dtype, accumulated_dims(c, i), {Place::gradient, a}));
    Tensor total;
    if (c.training.exact && c.sharded)  // over ranks first: so each piece's sum is that of a serial run
      for (std::size_t k = 0; k < parts.size(); ++k)
        parts[k] = all_reduce(parts[k], c.sharded->gradients[p.accumulators[k]].pending);
    if (c.sharded && !c.training.exact)
      total = reduced_gradient(parts, *c.sharded, i);
    else
      for (const Tensor& part : parts) total = total ? total + part : part;
    const Graph& g = m.trace.builder.graph;
    if (g.node(total.value).op->leaf == Leaf::argument) continue;  // it is complete as it is
    if (g.nodes.size() == 2 && g.node(total.value).op->collective_kind == CollectiveKind::scatter) {
      add_scatter(step, c, i, m, total, pool);
      continue;
    }
    m.out(total, {Place::gradient, p.accumulators[0]});
    step.tasks.push_back(m.finish(pool));
  }
  for (std::uint32_t i = 0; i < c.params.size(); ++i) {
    const CompiledParam& p = c.params[i];
    if (p.accumulators.empty()) continue;
    TaskMaker m(Part::norm, p.dtype, i);
    const Tensor square = squared_norm(m.in(p.dtype, updated_dims(c, i), {Place::gradient, p.accumulators[0]}));
    m.out(c.sharded ? counted_square(square, *c.sharded, i) : square, {Place::square, i});
    step.tasks.push_back(m.finish(pool));
  }
  for (std::size_t term = 0; term < c.terms.size(); ++term)
    for (int pipe = 0; pipe < pipes; ++pipe) step.tasks.push_back(finite_task(step, c, term, pipe, pipes, pool));
  step.squares = std::uint32_t(c.params.size() + c.terms.size() * std::size_t(pipes));
  const std::uint32_t norm = add_scalar(step, c, "grad_norm"), factor = add_scalar(step, c, "clip_factor");
  {
    TaskMaker m(Part::clip, f64);
    const Dim all{"parameter", i64(step.squares)};
    const AxisNames axes = c.sharded ? norm_axes(*c.sharded) : AxisNames{};
    const Tensor length = sqrt(sum(all_reduce(m.in(f64, all, {Place::squares, 0}), axes), all));
    m.out(length, {Place::scalar, norm});
    const Tensor one = constant(m.trace.builder, 1, f64);
    m.out(c.training.clip > 0 ? minimum(one, c.training.clip / (length + 1e-6)) : one + 0.0, {Place::scalar, factor});
    step.tasks.push_back(m.finish(pool));
  }
  add_scalar(step, c, "lr");
  add_scalar(step, c, "step");
  for (std::uint32_t i = 0; i < c.params.size(); ++i)
    if (!c.params[i].accumulators.empty()) step.tasks.push_back(update_task(c, step, i, c.training.clip > 0, pool));
}

}  // namespace stretto
