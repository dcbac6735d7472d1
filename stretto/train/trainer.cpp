#include "stretto/train/trainer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "stretto/base/hash.h"
#include "stretto/base/text.h"
#include "stretto/runtime/devices.h"
#include "stretto/runtime/measure.h"
#include "stretto/train/fits.h"
#include "stretto/train/inner/feed.h"
#include "stretto/train/inner/kept_arenas.h"

namespace stretto {

namespace {

void check_sizes(const Compiled& c, const std::map<std::string, i64>& sizes) {
  std::vector<std::string> names;
  for (const TracedInput& in : c.inputs)
    for (const Dim& d : in.dims)
      if (std::find(names.begin(), names.end(), d.name) == names.end()) names.push_back(d.name);
  for (const auto& [name, size] : sizes)
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw Error("evaluate", "a size is given, and no input has a dim '{}'", name)
          .hint("dims of inputs are {}", join(names, ", "));
}

// A step that may lose rows is the only one under way.
std::unique_ptr<Engine> engine_for(const Compiled& c, const RunOptions& run) {
  return std::make_unique<Engine>(c.program,
                                  WorkerOptions{.seed = c.training.seed, .run = run, .ahead = c.exchanges.empty()});
}

}  // namespace

Trainer::Trainer(Compiled compiled, RunOptions options)
    : compiled_(std::make_shared<const Compiled>(std::move(compiled))),
      engine_(engine_for(*compiled_, options)),
      options_(std::move(options)) {
  for (const int i : {0, 1}) under_way_[i].numbers = std::make_unique<StepNumbers>(*engine_, *compiled_, options_.say);
  if (!engine_->computes()) return;  // nothing is there to be initialised
  for (const int rank : engine_->local()) {
    Worker& w = engine_->worker(rank);
    for (ParamId i : compiled_->params.ids()) {
      const CompiledParam& p = compiled_->params[i];
      const u64 seed = compiled_->training.seed;
      if (const std::optional<Slot> at = own_place(w, i))
        initialise(p, stored_part(*compiled_, i, w.coordinates()), seed, writing(w, at->arena, at->offset), p.dtype);
      if (const Offset at = master_at(w, i))
        initialise(p, stored_part(*compiled_, i, w.coordinates(), true), seed, writing(w, Arena::state, *at),
                   p.logical_dtype());
    }
  }
}

void Trainer::start(std::shared_ptr<const Batch> batch, After after) {
  check_batch(*compiled_, *batch);
  if (!room())
    throw Error("train", "{} steps are under way, and no more can be", steps_under_way()).hint("call wait() first");
  if (after == After::finite && !compiled_->training.skip_nonfinite)
    throw Error("train", "a step that depends on whether the one before is finite needs that one to be skipped if not")
        .hint("compile with .skip_nonfinite = true");
  settle();
  UnderWay& now = under_way_[submitted_ % 2];
  now.step = submitted_ + 1;
  now.lr = compiled_->optimizer.lr(now.step);
  for (const CompiledParam& p : compiled_->params)
    if (p.options.rate != "lr") now.rates[p.options.rate] = now.lr;
  for (const auto& [name, lr] : rates_) now.rates[name] = lr;
  if (const auto lr = now.rates.find("lr"); lr != now.rates.end()) now.lr = lr->second;
  now.batch = std::move(batch);
  now.after = after;
  now.factor = 1;
  engine_->submit(now.step, hooks(now));
  ++submitted_;
}

// What every rank does when it begins and when it ends a step.
StepHooks Trainer::hooks(UnderWay& now) const {
  const bool late = compiled_->training.clip_late && engine_->computes();
  const UnderWay* before = nullptr;  // is looked at by every rank
  if (now.after == After::finite && now.step > step_ + 1 && !late) before = &under_way_[now.step % 2];
  const auto begin = [c = compiled_, &now, before, late](Worker& w) {
    if (before && !before->numbers->finite_norm(*c, w)) return false;
    if (late) w.keep(now.step % 2);
    load_batch(*c, w, *now.batch);
    set_scalar(*c, w, "lr", now.lr);
    for (const auto& [name, lr] : now.rates) set_scalar(*c, w, name, lr);
    set_scalar(*c, w, "step", double(now.step));
    if (late) set_scalar(*c, w, "clip_factor", now.factor.value());
    return true;
  };
  return {.begin = begin, .end = [c = compiled_, &now](Worker& w, double worked) { now.numbers->take(*c, w, worked); }};
}

void Trainer::submit(Batch batch, After after) { start(std::make_shared<const Batch>(std::move(batch)), after); }

StepResult Trainer::wait() {
  if (steps_under_way() == 0) throw Error("train", "no step is under way").hint("call submit(batch) first");
  UnderWay& now = under_way_[step_ % 2];
  try {
    StepResult r = result_of(now, engine_->wait());
    while (const std::optional<Again> why = again(now, r)) r = run_again(now, std::move(r), *why);
    ++step_;
    return r;
  } catch (...) {
    submitted_ = step_;  // what was under way has ended with it
    throw;
  }
}

StepResult Trainer::result_of(const UnderWay& now, const StepTaken& taken) const {
  StepResult r = now.numbers->result(*compiled_, taken);
  r.step = now.step;
  r.lr = now.lr;
  if (!engine_->computes()) {  // there are no numbers
    r.loss = r.grad_norm = std::numeric_limits<double>::quiet_NaN();
    r.metrics.clear(), r.lists.clear();
    r.updated = true;
    return r;
  }
  r.updated = r.finite() || !compiled_->training.skip_nonfinite;
  return r;
}

std::optional<Trainer::Again> Trainer::again(const UnderWay& now, const StepResult& r) const {
  if (!engine_->computes()) return std::nullopt;            // there are no numbers
  if (r.lost && !r.finite()) return Again{.lost = r.lost};  // else nothing depends on them
  if (!compiled_->training.clip_late) return std::nullopt;
  std::optional<double> factor;
  const double clip = compiled_->training.clip;
  if (r.finite()) factor = clip > 0 ? std::min(1.0, clip / (r.grad_norm + 1e-6)) : 1;
  return factor == now.factor ? std::nullopt : std::optional(Again{.factor = factor});
}

// Whatever came after the step began with wrong parameters.
StepResult Trainer::run_again(UnderWay& now, StepResult r, const Again& why) {
  const bool another = submitted_ > now.step;
  if (another) engine_->wait();
  if (compiled_->training.clip_late)
    for (const int rank : engine_->local()) engine_->worker(rank).put_back(now.step % 2);
  if (why.lost) make_room(now.step, *why.lost);
  now.factor = why.factor;
  if (now.factor) r = result_of(now, engine_->run(now.step, hooks(now)));
  if (!another) return r;
  UnderWay& later = under_way_[now.step % 2];
  if (!now.factor && later.after == After::finite)
    submitted_ = now.step;
  else
    engine_->submit(later.step, hooks(later));
  return r;
}

// Everything but the room is as it was, so that parameters and state lie where they lay.
void Trainer::make_room(i64 step, const LostRows& lost) {
  const double before = compiled_->parallel.expert_room;
  Parallel parallel = compiled_->parallel;
  parallel.expert_room = 2 * before;
  parallel.stages = compiled_->program->pieces_per_stage();
  parallel.measured.reset();  // they were of the graph with less room
  const std::string why =
      fmt::format("step {}: {} rows of layer {} found no room with expert_room = {}, and {} is needed", step, lost.rows,
                  lost.layer, before, parallel.expert_room);
  try {
    auto larger = std::make_shared<const Compiled>(
        compile(compiled_->model, compiled_->optimizer, compiled_->training, parallel));
    if (computes(options_.device)) check_fits_here(*larger->program, engine_->peers().get());
    const KeptArenas kept(*engine_);
    evaluations_.clear();
    for (const int i : {0, 1}) under_way_[i].numbers.reset();
    engine_.reset();
    compiled_ = std::move(larger);
    engine_ = engine_for(*compiled_, options_);
    before_writing();
    kept.put_into(*engine_);
    settle();
    for (const int i : {0, 1})
      under_way_[i].numbers = std::make_unique<StepNumbers>(*engine_, *compiled_, options_.say);
    engine_->record(recording_);
  } catch (Error& e) {
    e.within(why);
    throw;
  }
}

StepResult Trainer::step(const Batch& batch, Timeline* record) {
  check_idle("step");
  engine_->record(recording_ = record != nullptr);
  start({std::shared_ptr<const Batch>(), &batch}, After::any);  // the caller keeps it
  const StepResult r = wait();
  if (record) *record = measured_timeline(*engine_);
  return r;
}

void Trainer::set_step(i64 done) {
  while (steps_under_way() > 0) wait();
  before_writing();
  step_ = submitted_ = done;
}

void Trainer::check_idle(std::string_view what) const {
  if (steps_under_way() > 0)
    throw Error("train", "{}: step {} is under way", what, step_ + 1).hint("call wait() until nothing is");
}

StepResult Trainer::evaluate(const Batch& batch, const std::map<std::string, i64>& sizes) {
  check_idle("evaluate");
  if (sizes.empty() && !compiled_->scalar("grad_norm"))  // the program itself has nothing but forward
    return forward(*compiled_, *engine_, *under_way_[0].numbers, batch);
  auto it = evaluations_.find(sizes);
  if (it == evaluations_.end()) {
    Evaluation e;
    Training t = compiled_->training;
    if (sizes.contains(compiled_->batch)) t.microbatches = 1;
    Parallel parallel = compiled_->parallel;
    parallel.stages = compiled_->program->pieces_per_stage();  // where training has cut: parameters stay where they are
    check_sizes(*compiled_, sizes);
    e.compiled = compile_forward(compiled_->model, t, parallel, sizes, compiled_->program.get());
    check_batch(e.compiled, batch);  // before there is memory for it
    RunOptions run = options_;
    run.profile = false;
    e.engine = std::make_unique<Engine>(e.compiled.program, WorkerOptions{.seed = t.seed, .run = run}, engine_.get());
    e.numbers = std::make_unique<StepNumbers>(*e.engine, e.compiled);
    it = evaluations_.emplace(sizes, std::move(e)).first;
  }
  return forward(it->second.compiled, *it->second.engine, *it->second.numbers, batch);
}

StepResult Trainer::forward(const Compiled& c, Engine& e, StepNumbers& numbers, const Batch& batch) const {
  check_batch(c, batch);
  settle();
  const auto begin = [&](Worker& w) {
    load_batch(c, w, batch);
    return true;
  };
  const StepTaken taken =
      e.run(step_, {.begin = begin, .end = [&](Worker& w, double worked) { numbers.take(c, w, worked); }});
  StepResult r = numbers.result(c, taken);
  r.step = step_;
  return r;
}

ParamId Trainer::param_index(std::string_view name) const {
  std::vector<std::string> names;
  for (ParamId i : compiled_->params.ids()) {
    if (compiled_->params[i].name == name) return i;
    names.push_back(compiled_->params[i].name);
  }
  const auto near = nearest(name, names);
  throw Error("parameter", "there is no parameter '{}'", name)
      .hint("{}", near ? fmt::format("did you mean '{}'?", *near)
                       : fmt::format("there are {}, the first is '{}'", names.size(), names.empty() ? "" : names[0]));
}

// Where the master of a bf16 parameter lies.
Offset Trainer::master_at(const Worker& w, ParamId i) const {
  return compiled_->params[i].has_master()
             ? w.program().state_at[StateId{i, std::uint8_t(compiled_->optimizer.state.size())}]
             : std::nullopt;
}

std::optional<Slot> Trainer::own_place(const Worker& w, ParamId i) const {
  const std::optional<Slot> at = w.program().place_of(i);
  return at && at->arena == Arena::frozen && !engine_->keeps_frozen(w.rank()) ? std::nullopt : at;
}

// Processes that share what is frozen: nobody writes it before all have read, and nobody reads it before all have
// written.
void Trainer::before_writing() {
  if (std::exchange(writing_, true)) return;
  meet();
}
void Trainer::settle() const {
  if (std::exchange(writing_, false)) meet();
}
void Trainer::meet() const {
  u64 nothing[] = {0};
  if (engine_->peers() && engine_->computes()) engine_->peers()->merge(nothing);
}

ReadBytes Trainer::memory(const Worker& w, ParamId i, Kind kind, std::size_t which) const {
  const ActorProgram& p = w.program();
  const auto at = [&](Arena arena, Offset offset) { return offset ? reading(w, arena, *offset) : ReadBytes(); };
  switch (kind) {
    case Kind::param:
      return parameter_in(*compiled_, w, i);
    case Kind::gradient:
      return at(Arena::gradients, p.accumulator_at[compiled_->params[i].accumulators[0]]);
    case Kind::state:
      break;
  }
  const StateId state{i, std::uint8_t(which)};
  ReadBytes stored = at(Arena::state, p.state_at[state]);
  return stored && compiled_->state_dtype(state) == bf16 ? widened(std::move(stored)) : stored;
}

Array Trainer::gathered(ParamId i, Kind kind, std::size_t which, Array reused) const {
  check_idle(compiled_->params[i].name);
  settle();
  const CompiledParam& p = compiled_->params[i];
  Array all = logical_array(p, std::move(reused));
  const Program& program = *compiled_->program;
  for (int k = 0; k < program.ranks_per_actor(); ++k) {
    const int rank = program.rank_of(program.owners[i], k);
    const StoredPart part = stored_part(*compiled_, i, coordinates_of(program.mesh, k), kind != Kind::param);
    if (part.copy) continue;
    ReadBytes stored = engine_->here(rank) ? memory(engine_->worker(rank), i, kind, which) : ReadBytes();
    std::vector<std::byte> bytes;
    if (engine_->peers()) {
      bytes.resize(part.count * size_of(p.logical_dtype()));
      if (stored) stored(0, bytes.data(), bytes.size());
      engine_->peers()->broadcast(bytes, rank);
      stored = [&](std::size_t at, void* to, std::size_t n) { std::memcpy(to, bytes.data() + at, n); };
    }
    read_logical(p, part, stored, all);
  }
  return all;
}

Array Trainer::parameter(std::string_view name, Array memory) const {
  const ParamId i = param_index(name);
  const bool master = compiled_->params[i].has_master();
  return gathered(i, master ? Kind::state : Kind::param, compiled_->optimizer.state.size(), std::move(memory));
}

Array Trainer::gradient(std::string_view name) const {
  const ParamId i = param_index(name);
  if (compiled_->params[i].accumulators.empty())
    throw Error("gradient", "parameter '{}' is not trained", name)
        .hint("it is frozen: by finetune, or by trainable = false");
  return gathered(i, Kind::gradient);
}

std::size_t Trainer::state_index(ParamId param, std::string_view which) const {
  const auto& names = compiled_->optimizer.state;
  const auto it = std::find(names.begin(), names.end(), which);
  if (it == names.end() || !compiled_->params[param].trained() ||
      !compiled_->params[param].has_state(std::size_t(it - names.begin())))
    throw Error("state", "parameter '{}' has no optimizer state '{}'", compiled_->params[param].name, which)
        .hint("the states of {} are: {}", compiled_->optimizer.name, join(names, ", "));
  return std::size_t(it - names.begin());
}

Array Trainer::state(std::string_view name, std::string_view which, Array memory) const {
  const ParamId i = param_index(name);
  return gathered(i, Kind::state, state_index(i, which), std::move(memory));
}

void Trainer::set_state(std::string_view name, std::string_view which, const Array& a) {
  const ParamId i = param_index(name);
  const std::size_t k = state_index(i, which);
  check_idle(name);
  for (const int rank : engine_->local()) {
    Worker& w = engine_->worker(rank);
    const StateId state{i, std::uint8_t(k)};
    if (const Offset at = w.program().state_at[state])
      write_logical(compiled_->params[i], stored_part(*compiled_, i, w.coordinates(), true), a,
                    writing(w, Arena::state, *at), compiled_->state_dtype(state));
  }
}

void Trainer::set_parameter(std::string_view name, const Array& a) {
  const ParamId i = param_index(name);
  check_idle(name);
  before_writing();
  for (const int rank : engine_->local()) {  // copies on other actors too
    Worker& w = engine_->worker(rank);
    const CompiledParam& p = compiled_->params[i];
    if (const std::optional<Slot> at = own_place(w, i))
      write_logical(p, stored_part(*compiled_, i, w.coordinates()), a, writing(w, at->arena, at->offset), p.dtype);
    if (const Offset at = master_at(w, i))
      write_logical(p, stored_part(*compiled_, i, w.coordinates(), true), a, writing(w, Arena::state, *at),
                    p.logical_dtype());
  }
}

u64 Trainer::parameters_hash() const {
  std::vector<std::string> names;
  for (const CompiledParam& p : compiled_->params) names.push_back(p.name);
  std::sort(names.begin(), names.end());
  u64 h = 0;
  for (const std::string& n : names) {
    const Array a = parameter(n);
    h = hash_bytes(a.bytes.data(), a.bytes.size(), h);
  }
  return h;
}

}  // namespace stretto
