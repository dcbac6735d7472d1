#include "stretto/compile/inner/epilogue.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "stretto/compile/inner/whole.h"
#include "stretto/ops/add.h"
#include "stretto/ops/all_reduce.h"
#include "stretto/ops/cast.h"
#include "stretto/ops/compare.h"
#include "stretto/ops/constant.h"
#include "stretto/ops/copy.h"
#include "stretto/ops/div.h"
#include "stretto/ops/extremum.h"
#include "stretto/ops/input.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/sqrt.h"
#include "stretto/ops/squared_norm.h"
#include "stretto/ops/stochastic_round.h"
#include "stretto/ops/sum.h"
#include "stretto/ops/where.h"
#include "stretto/shard/epilogue.h"
#include "stretto/step/task_builder.h"

namespace stretto {
namespace {

// What a rank has of a parameter outside the microbatch loop: rows of numbers, whatever its dims are.
class ParamDims {
 public:
  explicit ParamDims(const Surroundings& around) : traced_(around.traced), sharded_(around.sharded) {}

  // What is kept of it between steps; what norm and update see; what is accumulated.
  Dims stored(ParamId param) const {
    return !sharded_ || sharded_->params[param].params.empty() ? flat(param)
                                                               : dims_of(*sharded_, sharded_->params[param].stored);
  }
  Dims updated(ParamId param) const {
    return sharded_ ? dims_of(*sharded_, sharded_->params[param].updated) : flat(param);
  }
  Dims accumulated(ParamId param) const {
    if (sharded_ && !sharded_->params[param].gradients.empty())
      for (const ShardedGradient& g : sharded_->gradients)
        if (g.param == param) return dims_of(*sharded_, g.accumulated);
    return flat(param);
  }
  // A state, in bf16: what is rounded up and what down does not depend on the layout.
  Tensor rounded(Tensor state, ParamId param, i64 which) const {
    const Dims& dims = traced_.params[param].dims;
    if (sharded_)
      return stochastic_round(state, {.which = which}, dims_of(*sharded_, sharded_->params[param].type),
                              sharded_->mesh);
    const bool padded = std::any_of(dims.begin(), dims.end(), [](const Dim& d) { return d.valid() != d.size; });
    return padded ? stochastic_round(state, {.which = which}, dims, {}) : stochastic_round(state, {.which = which});
  }
  // In its own dims.
  Dims own(ParamId param) const {
    return sharded_ ? dims_of(*sharded_, sharded_->params[param].type) : traced_.params[param].dims;
  }
  bool cut_for_update(ParamId param) const { return sharded_ && !sharded_->params[param].state.empty(); }

  // Is what updates one what updates the other? Then bodies are made once: models have few kinds of parameters.
  bool updated_alike(ParamId a, ParamId b) const {
    const TracedParam &x = traced_.params[a], &y = traced_.params[b];
    const auto key = [](const TracedParam& p) {
      return std::tie(p.dims, p.dtype, p.options.decay, p.options.lr_scale, p.options.rate);
    };
    if (key(x) != key(y)) return false;
    const auto shards = [&](ParamId i) {
      const ShardedParam& p = sharded_->params[i];
      return std::tie(p.type, p.state, p.params, p.stored, p.updated);
    };
    return !sharded_ || shards(a) == shards(b);
  }

 private:
  Dims flat(ParamId param) const {
    if (sharded_) return Dim{fmt::format("flat{}", sharded_->params[param].elements), sharded_->params[param].elements};
    i64 n = 1;
    for (const Dim& d : traced_.params[param].dims) n *= d.size;
    return Dim{"flat", n};
  }

  const Traced& traced_;
  const Sharded* sharded_;
};

// One part of the step after the other, each appending its tasks.
class Epilogue {
 public:
  Epilogue(WholeStep& whole, const Surroundings& around)
      : whole_(whole), step_(whole.step), around_(around), dims_(around), accumulators_(accumulators_of(whole.step)) {}

  void combine() {
    for_trained([&](ParamId param) {
      if (!step_.accumulators[accumulators_[param][0]].summed.empty()) return;
      TaskBuilder t({.part = Part::combine, .about = param});
      std::vector<Tensor> parts;
      for (AccumulatorId a : accumulators_[param])
        parts.push_back(t.argument(dtype(param), dims_.accumulated(param), a));
      const Tensor total = sharded() ? reduced_gradient(parts, *sharded(), param) : added(parts);
      if (t.binding_of(total.value)) return;  // it is complete as it is
      if (t.graph().nodes.size() == 2 && t.graph().node(total.value).op->collective_kind == CollectiveKind::scatter)
        return scatter(param, std::move(t), total);
      t.result(total, accumulators_[param][0]);
      add(std::move(t));
    });
  }

  void norms() {
    for_trained([&](ParamId param) {
      TaskBuilder t({.part = Part::norm, .about = param});
      Tensor square = squared_norm(t.argument(dtype(param), dims_.updated(param), accumulators_[param][0]));
      if (update_of(param)) square = square * 0.0;  // it has no gradient, but what is not finite must show
      t.result(sharded() ? counted_square(square, *sharded(), param) : square, step_.square_of(param));
      add(std::move(t));
    });
    step_.squares = traced().params.size();
    for (TermId term : traced().terms.ids())
      for (PipeId pipe : ids_until<PipeId>(around_.pipes)) finite({term, pipe}, SquareId(step_.squares++));
  }

  void clip(const EpilogueOptions& options) {
    const ScalarId norm = add_scalar("grad_norm"), factor = add_scalar("clip_factor");
    TaskBuilder t({.part = Part::clip});
    const i64 squares = step_.squares;
    const Dim all{"parameter", squares};
    const AxisNames axes = sharded() ? norm_axes(*sharded()) : AxisNames{};
    const Tensor length = sqrt(sum(all_reduce(t.argument(f64, all, AllSquares{}), axes), all));
    t.result(length, norm);
    const Tensor one = constant(t.body(), 1, f64);
    if (!options.late) t.result(options.clip > 0 ? minimum(one, options.clip / (length + 1e-6)) : one + 0.0, factor);
    if (options.skip_nonfinite && !options.late)
      t.result(less_equal(length, std::numeric_limits<double>::max()), add_scalar("finite", i32));
    add(std::move(t));
  }

  void update(const Optimizer& optimizer, const EpilogueOptions& options) {
    if (optimizer.state_dtype == bf16) step_.bf16_states = std::ssize(optimizer.state);
    add_scalar("lr");
    add_scalar("step");
    for (const TracedParam& p : traced().params)
      if (!whole_.scalar(p.options.rate)) add_scalar(p.options.rate);
    std::vector<std::pair<ParamId, TaskId>> made;  // one of each kind
    for_trained([&](ParamId param) {
      const auto like = [&](const auto& known) {
        return dims_.updated_alike(known.first, param) && matrix(optimizer, known.first) == matrix(optimizer, param);
      };
      if (const StateUpdate& of_state = update_of(param))
        update(as_optimizer(of_state), param, {.skip_nonfinite = options.skip_nonfinite, .late = options.late});
      else if (const auto it = std::find_if(made.begin(), made.end(), like); it != made.end())
        step_.tasks.push_back(update_again(step_.tasks[it->second], param));
      else
        made.push_back({param, step_.tasks.next_id()}), update(optimizer, param, options);
    });
  }

 private:
  template <class Visit>
  void for_trained(Visit visit) const {
    for (ParamId param : traced().params.ids())
      if (!accumulators_[param].empty()) visit(param);
  }
  const StateUpdate& update_of(ParamId param) const { return traced().params[param].options.update; }
  Optimizer as_optimizer(const StateUpdate& of_state) const {
    return {.name = "state", .update = [&of_state, share = 1.0 / around_.microbatches](Trace& t, Slice s) {
              const std::size_t before = t.builder.graph.nodes.size();
              s.param = of_state(s.param, s.grad * share);
              check_elementwise(t.builder.graph, before);
              return s;
            }};
  }
  // It gets what a rank has of the state, as rows of numbers: anything else would depend on the layout.
  static void check_elementwise(const Graph& g, std::size_t from) {
    for (std::size_t i = from; i < g.nodes.size(); ++i)
      if (const Op& op = *g.nodes[i].op; !op.pointwise && op.leaf == Leaf::none)
        throw Error("observe", "update() of a state uses {}", op.name)
            .hint("it goes element by element; take sums and the like of what is seen");
  }
  std::optional<MatrixDims> matrix(const Optimizer& o, ParamId param) const {
    return matrix_of(o, traced().params[param]);
  }
  const Traced& traced() const { return around_.traced; }
  const Sharded* sharded() const { return around_.sharded; }
  // Gradients, states and what the optimizer computes.
  DType dtype(ParamId param) const { return wide(traced().params[param].dtype); }
  void add(TaskBuilder t) { step_.tasks.push_back(std::move(t).finish(pool_)); }
  ScalarId add_scalar(std::string name, DType type = f64) {
    whole_.scalars.push_back(std::move(name));
    return step_.scalars.push_back({type, {}});
  }
  static Tensor added(const std::vector<Tensor>& parts) {
    Tensor total;
    for (const Tensor& part : parts) total = total ? total + part : part;
    return total;
  }

  // A gradient that is complete but for one reduce-scatter: that is a task of its own, which starts while backward
  // still runs, and `combine` takes what it makes.
  void scatter(ParamId param, TaskBuilder t, Tensor total) {
    const AccumulatorId accumulator = accumulators_[param][0];
    const Type& type = sharded()->params[param].updated;
    const TaskId maker = step_.tasks.next_id();
    const ValueId value =
        step_.values.push_back({.type = type,
                                .bytes = step_.bytes(type),
                                .producer = maker,
                                .consumers = {TaskId(maker.value + 1)},
                                .name = fmt::format("gradient of {}, scattered", traced().params[param].name)});
    t.head().part = Part::S;
    t.head().piece = step_.accumulators[accumulator].piece;
    t.result(total, value);
    add(std::move(t));
    TaskBuilder taken({.part = Part::combine, .about = param});
    taken.result(taken.argument(dtype(param), dims_.updated(param), value), accumulator);
    add(std::move(taken));
  }

  // A zero when the sum of a loss term over a pipe's microbatches is finite, else not a number: added to the squared
  // norms it tells every actor.
  void finite(LossOfPipe loss, SquareId square) {
    const OutputId output = traced().terms[loss.term].sum;
    const DType dtype = step_.outputs[output].type.dtype;
    TaskBuilder t({.part = Part::finite, .piece = piece_of_output(step_, output), .about = loss});
    const Dim microbatch{"microbatch", around_.microbatches};
    Tensor total = sum(t.argument(dtype, microbatch, AllMicrobatches{output}), microbatch);
    if (dtype != f64) total = cast(total, f64);
    t.result(total * 0.0, square);
    add(std::move(t));
  }

  // The optimizer's own body for one parameter: equal for all parameters of one size, decay and rate.
  void update(const Optimizer& optimizer, ParamId param, const EpilogueOptions& options) {
    const TracedParam& p = traced().params[param];
    const DType type = dtype(param);
    Trace trace({.dtype = type});
    TaskBuilder t({.part = Part::update, .about = param}, trace.builder);
    const auto state = [&](std::uint8_t which) { return StateId{param, which}; };
    Slice s{.decay = p.options.decay, .lr_scale = p.options.lr_scale, .rate = p.options.rate};
    const bool master = type != p.dtype;
    offer_whole(s, optimizer, traced().params[param], sharded(), param);
    const bool in_dims = s.matrix && !dims_.cut_for_update(param);  // a slice is all that a rank has of it
    const Dims dims = in_dims ? dims_.own(param) : dims_.updated(param);
    s.param = master ? t.argument(type, dims, state(optimizer.state.size()))
                     : t.argument(type, in_dims ? dims : dims_.stored(param), param);
    if (dims_.cut_for_update(param) && !master) s.param = part_to_update(s.param, *sharded(), param);
    s.grad = t.argument(type, dims, accumulators_[param][0]);
    const DType kept = optimizer.state_dtype == bf16 ? bf16 : type;
    for (std::size_t k = 0; k < optimizer.state.size(); ++k)
      s.state[optimizer.state[k]] = cast(t.argument(kept, dims, state(k)), type);
    if (options.clip > 0) s.grad = s.grad * cast(t.argument(f64, {}, *whole_.scalar("clip_factor")), type);
    Slice done = updated(optimizer, trace, s);
    bind_scalars(optimizer, trace, t);
    if (options.skip_nonfinite && !options.late) keep_unless(t.argument(i32, {}, *whole_.scalar("finite")), s, done);
    const Tensor rounded = cast(done.param, p.dtype);
    t.result(dims_.cut_for_update(param) ? stored_again(rounded, *sharded(), param) : rounded, param);
    if (master) t.result(done.param, state(optimizer.state.size()));
    if (kept != type) t.head().keys.push_back(key_of_states(param));
    for (std::size_t k = 0; k < optimizer.state.size(); ++k) {
      const Tensor made = done.state.at(optimizer.state[k]);
      // A matrix has only the states that are written: the others are of those that are updated as numbers.
      if (s.matrix && made.value == s.state.at(optimizer.state[k]).value) continue;
      t.result(kept == type ? made : dims_.rounded(made, param, i64(k)), state(k));
    }
    if (s.matrix) t.prune();
    add(std::move(t));
  }
  u64 key_of_states(ParamId param) const {
    return hash_of(std::string_view("states of " + traced().params[param].name));
  }
  Task update_again(Task t, ParamId param) const {
    const auto bind = [&](Binding& b) {
      if (as<ParamId>(b)) b = param;
      if (as<AccumulatorId>(b)) b = accumulators_[param][0];
      if (const StateId* state = as<StateId>(b)) b = StateId{param, state->which};
    };
    for (Binding& b : t.inputs) bind(b);
    for (Binding& b : t.outputs) bind(b);
    t.about = param;
    for (u64& key : t.keys) key = key_of_states(param);
    return t;
  }
  static Slice updated(const Optimizer& optimizer, Trace& trace, const Slice& s) {
    Slice done = optimizer.update(trace, s);
    if (!done.param)
      throw Error("optimizer", "'{}' returns no new parameter", optimizer.name).hint("set slice.param in update()");
    for (const std::string& state : optimizer.state)
      if (const auto it = done.state.find(state); it == done.state.end() || !it->second)
        throw Error("optimizer", "'{}' returns no new state '{}'", optimizer.name, state)
            .hint("set slice.state[\"{}\"] in update()", state);
    return done;
  }
  // What was there stays where the condition does not hold: one more step of the kernel that computes the update.
  static void keep_unless(Tensor condition, const Slice& before, Slice& after) {
    const auto keep = [&](const Tensor& old, Tensor& made) {
      if (made.value != old.value) made = where(condition, made, old);
    };
    keep(before.param, after.param);
    for (auto& [name, made] : after.state)
      if (const auto old = before.state.find(name); old != before.state.end()) keep(old->second, made);
  }
  // Scalars that the optimizer asked for stand as inputs of its own trace.
  void bind_scalars(const Optimizer& optimizer, const Trace& trace, TaskBuilder& t) const {
    for (const Tensor& scalar : trace.scalars) {
      const std::string name = t.graph().node(scalar.value).attrs.as<InputAttrs>().name;
      const auto known = whole_.scalar(name);
      if (!known)
        throw Error("optimizer", "'{}' asks for the scalar '{}', which nobody sets", optimizer.name, name)
            .hint("'lr' and 'step' are set each step");
      t.bind(scalar.value, *known);
    }
  }

  WholeStep& whole_;
  Step& step_;
  const Surroundings& around_;
  ParamDims dims_;
  IdVector<ParamId, std::vector<AccumulatorId>> accumulators_;
  BodyPool pool_;
};

}  // namespace

std::optional<ScalarId> find_scalar(const IdVector<ScalarId, std::string>& names, std::string_view name) {
  for (ScalarId i : names.ids())
    if (names[i] == name) return i;
  return std::nullopt;
}

IdVector<ParamId, std::vector<AccumulatorId>> accumulators_of(const Step& s) {
  IdVector<ParamId, std::vector<AccumulatorId>> all(s.params.size());
  for (AccumulatorId a : s.accumulators.ids())
    if (s.accumulators[a].level == Level(0)) all[s.accumulators[a].param].push_back(a);
  return all;
}

PieceId piece_of_output(const Step& s, OutputId output) {
  for (const Task& t : s.tasks)
    if (std::find(t.outputs.begin(), t.outputs.end(), Binding(output)) != t.outputs.end())
      return t.piece.value_or(PieceId(0));
  STRETTO_ASSERT(false, "an output that no task makes");
}

WholeStep add_prologue(Step step, const Surroundings& around) {
  BodyPool pool;
  const Traced& traced = around.traced;
  for (OutputId k : step.outputs.ids()) {
    const StepOutput& o = step.outputs[k];
    const AxisNames axes = around.sharded ? around.sharded->outputs[k] : AxisNames{};
    if (axes.empty()) continue;
    TaskBuilder t({.part = Part::total, .piece = piece_of_output(step, k), .about = k});
    const Dim all{"all", step.elements(o.type) * around.microbatches};
    t.result(all_reduce(t.argument(o.type.dtype, all, AllMicrobatches{k}), axes), AllMicrobatches{k});
    step.tasks.push_back(std::move(t).finish(pool));
  }
  for (TermId k : traced.terms.ids()) {
    const TracedTerm& term = traced.terms[k];
    TaskBuilder t({.part = Part::scale, .about = k});
    const Dim microbatch{"microbatch", around.microbatches};
    const Tensor total = sum(t.argument(f64, microbatch, AllMicrobatches{term.count}), microbatch);
    const Tensor zero = constant(t.body(), 0, f64), weight = constant(t.body(), term.weight, f64);
    t.result(where(greater(total, 0.0), weight / total, zero), term.scale);
    step.tasks.push_back(std::move(t).finish(pool));
  }
  return {.step = std::move(step), .scalars = traced.scalars};
}

WholeStep add_epilogue(WholeStep whole, const Surroundings& around, const Optimizer& optimizer,
                       const EpilogueOptions& options) {
  Epilogue e(whole, around);
  e.combine();
  e.norms();
  e.clip(options);
  e.update(optimizer, options);
  refuse(verify(whole.step));
  return whole;
}

}  // namespace stretto
