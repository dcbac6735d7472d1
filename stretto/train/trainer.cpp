#include "stretto/train/trainer.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "stretto/base/hash.h"
#include "stretto/base/text.h"
#include "stretto/runtime/measure.h"
#include "stretto/train/logical.h"

namespace stretto {
namespace {

// Every rank gets its block of every microbatch: of its rows, and of other dims that the layout splits. Exact training:
// its rows of all microbatches are one block of the batch.
void load_part(const Compiled& c, Worker& w, InputId input, const std::byte* from, u64 to) {
  const Graph& g = c.sharded->graph.graph;
  const Type& type = g.type(c.sharded->graph.inputs[input.value]);
  const View box = on_rank(contiguous_view(g, type), g, c.sharded->mesh, w.coordinates());
  const Dims& dims = c.inputs[input].dims;
  std::size_t inner = dims.size();
  i64 run = 1, rows = c.program->microbatches;
  while (inner > 0 && (inner == dims.size() || box.sizes[inner] == dims[inner].size)) run *= box.sizes[--inner];
  for (std::size_t d = 0; d < inner; ++d) rows *= box.sizes[d];
  const std::size_t size = size_of(type.dtype);
  const bool together = c.program->shared.neighbours;
  for (i64 row = 0; row < rows; ++row) {
    i64 rest = row, at = 0, step = 1;
    for (std::size_t d = dims.size(); d-- > 0; step *= dims[d].size) {
      at += box.offsets[d] * step * (d == 0 && together ? c.program->microbatches : 1);
      if (d < inner) at += rest % box.sizes[d] * step, rest /= box.sizes[d];
    }
    at += rest * (together ? step / dims[0].size * box.sizes[0] : step);  // the microbatch
    w.write(Arena::inputs, to + row * run * size, from + at * size, run * size);
  }
}

// Checks a batch against what the program declares and copies it into the input arenas.
void load_batch(const Compiled& c, Engine& e, const Batch& batch) {
  std::vector<std::string> names;
  for (const TracedInput& in : c.inputs) names.push_back(in.name);
  for (const auto& [name, array] : batch)
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      const auto near = nearest(name, names);
      throw Error("batch", "'{}' is not an input of the model", name)
          .hint("{}its inputs are {}", near ? "did you mean '" + *near + "'? " : "", join(names, ", "));
    }
  for (InputId i : c.inputs.ids()) {
    const TracedInput& in = c.inputs[i];
    const auto it = batch.find(in.name);
    if (it == batch.end())
      throw Error("batch", "input '{}' is missing", in.name)
          .hint("add it to the Batch: {{\"{}\", Array::of(...)}}", in.name);
    std::vector<i64> expect;
    for (const Dim& d : in.dims) expect.push_back(d.name == c.batch ? d.size * c.program->microbatches : d.size);
    if (it->second.dtype != in.dtype || it->second.sizes != expect)
      throw Error("batch", "input '{}' is {} and should be {}", in.name, it->second.str(),
                  (Array{in.dtype, expect, {}}).str())
          .hint("a batch holds the rows of the whole step, all microbatches together");
    if (!in.dims.empty() && in.dims[0].name != c.batch)
      throw Error("batch", "input '{}' does not start with the batch dim '{}'", in.name, c.batch)
          .hint("put the batch dim first: t.input(\"{}\", {{{}, ...}})", in.name, c.batch);
    for (const int rank : e.local()) {
      Worker& w = e.worker(rank);
      const Offset at = w.program().input_at[i];
      if (!at) continue;
      if (in.dims.empty())  // every microbatch reads one of its own
        for (int m = 0; m < c.program->microbatches; ++m)
          w.write(Arena::inputs, *at + m * size_of(in.dtype), it->second.bytes.data(), size_of(in.dtype));
      else if (c.sharded)
        load_part(c, w, i, it->second.bytes.data(), *at);
      else
        w.write(Arena::inputs, *at, it->second.bytes.data(), it->second.bytes.size());
    }
  }
}

double read_scalar(const Worker& w, u64 at, DType t) {
  const auto as = [&]<class T>(T x) -> double { return w.read(Arena::results, at, &x, sizeof x), x; };
  return t == f32 ? as(float{}) : t == f64 ? as(double{}) : as(std::int32_t{});
}

void set_scalar(const Compiled& c, Engine& e, std::string_view name, double value) {
  const std::optional<ScalarId> i = c.scalar(name);
  if (!i) return;
  for (const int rank : e.local()) {
    Worker& w = e.worker(rank);
    if (const Offset at = w.program().scalar_at[*i]) w.write(Arena::results, *at, &value, sizeof value);
  }
}

double get_scalar(const Compiled& c, const Engine& e, std::string_view name) {
  const Worker& w = e.worker(e.local().front());  // every rank has them all
  return read_scalar(w, w.program().scalar_at[c.scalar(name).value()].value(), f64);
}

// Outputs are kept per microbatch and added in ascending order: no schedule changes the sum.
template <class Value>
StepResult summed(const Compiled& c, Value value) {
  StepResult r;
  const int n = c.program->microbatches;
  for (const TracedTerm& t : c.terms) {
    double sum = 0, count = 0;
    for (int m = 0; m < n; ++m) sum += value(t.sum, m, 0), count += value(t.count, m, 0);
    const double mean = count > 0 ? sum / count : 0;
    r.loss += t.weight * mean;
    r.metrics[t.name] = mean;
  }
  for (const TracedMetric& x : c.metrics) {
    double sum = 0, most = -INFINITY;
    const i64 parts = c.program->shared.parts(c.program->mesh);
    if (x.how == Accumulate::concat)
      for (i64 part = 0, size = x.elements / parts; part < parts; ++part)
        for (int m = 0; m < n; ++m)
          for (i64 e = 0; e < size; ++e) r.lists[x.name].push_back(value(x.output, m, part * size + e));
    else
      for (int m = 0; m < n; ++m) sum += value(x.output, m, 0), most = std::max(most, value(x.output, m, 0));
    if (x.how != Accumulate::concat)
      r.metrics[x.name] = x.how == Accumulate::max ? most : x.how == Accumulate::mean ? sum / n : sum;
  }
  return r;
}

StepResult read_results(const Compiled& c, const Engine& e) {
  const auto value = [&](OutputId output, int m, i64 element) {
    const StepOutput& o = c.program->step->outputs[output];
    const Worker& w = e.first(c.program->actor_of_output(output, MicrobatchId(m)));
    const u64 at = w.program().output_at[output].value() + o.bytes * m + size_of(o.type.dtype) * element;
    return read_scalar(w, at, o.type.dtype);
  };
  if (!e.peers()) return summed(c, value);
  // Everybody says what he has; then everybody has all.
  std::vector<u64> words;
  summed(c, [&](OutputId output, int m, i64 element) {
    const bool here = e.here(c.program->rank_of(c.program->actor_of_output(output, MicrobatchId(m)), 0));
    words.push_back(here ? std::bit_cast<u64>(value(output, m, element)) : 0);
    return 0.0;
  });
  e.peers()->merge(words);
  std::size_t next = 0;
  return summed(c, [&](OutputId, int, i64) { return std::bit_cast<double>(words[next++]); });
}

// The mean over all processes.
double bubble_of(const Engine& e) {
  if (!e.peers()) return e.bubble();
  std::vector<u64> all(std::size_t(e.ranks()), 0);
  all[std::size_t(e.peers()->rank())] = std::bit_cast<u64>(e.bubble());
  e.peers()->merge(all);
  double sum = 0;
  for (const u64 word : all) sum += std::bit_cast<double>(word);
  return sum / double(all.size());
}

}  // namespace

std::string StepResult::str() const {
  return fmt::format("step {} loss {:.6f} grad_norm {:.4f} lr {:.3g}", step, loss, grad_norm, lr);
}

Trainer::Trainer(Compiled compiled, RunOptions options)
    : compiled_(std::move(compiled)),
      engine_(
          std::make_unique<Engine>(compiled_.program, WorkerOptions{.seed = compiled_.training.seed, .run = options})),
      options_(std::move(options)) {
  if (!engine_->computes()) return;  // nothing is there to be initialised
  for (const int rank : engine_->local()) {
    Worker& w = engine_->worker(rank);
    for (ParamId i : compiled_.params.ids()) {
      const CompiledParam& p = compiled_.params[i];
      const u64 seed = compiled_.training.seed;
      if (const Offset at = w.program().param_at[i])
        initialise(p, stored_part(compiled_, i, w.coordinates()), seed, writing(w, Arena::params, *at), p.dtype);
      if (const Offset at = master_at(w, i))
        initialise(p, stored_part(compiled_, i, w.coordinates(), true), seed, writing(w, Arena::state, *at),
                   p.logical_dtype());
    }
  }
}

StepResult Trainer::step(const Batch& batch, Timeline* record) {
  load_batch(compiled_, *engine_, batch);
  const double lr = compiled_.optimizer.lr(step_ + 1);
  set_scalar(compiled_, *engine_, "lr", lr);
  set_scalar(compiled_, *engine_, "step", double(step_ + 1));
  engine_->record(record != nullptr);
  engine_->run(step_ + 1);
  if (record) *record = measured_timeline(*engine_);
  ++step_;
  StepResult r = read_results(compiled_, *engine_);
  r.step = step_;
  r.lr = lr;
  r.grad_norm = get_scalar(compiled_, *engine_, "grad_norm");
  r.seconds = engine_->seconds();
  r.bubble = bubble_of(*engine_);
  if (!engine_->computes()) return r;  // there are no numbers
  r.updated = (std::isfinite(r.loss) && std::isfinite(r.grad_norm)) || !compiled_.training.skip_nonfinite;
  return r;
}

StepResult Trainer::evaluate(const Batch& batch, const std::map<std::string, i64>& sizes) {
  if (sizes.empty() && !compiled_.scalar("grad_norm")) {  // the program itself has nothing but forward
    load_batch(compiled_, *engine_, batch);
    engine_->run(step_);
    return read_results(compiled_, *engine_);
  }
  auto it = evaluations_.find(sizes);
  if (it == evaluations_.end()) {
    Evaluation e;
    Training t = compiled_.training;
    if (sizes.contains(compiled_.batch)) t.microbatches = 1;
    Parallel parallel = compiled_.parallel;
    parallel.stages = compiled_.program->pieces_per_stage();  // where training has cut: parameters stay where they are
    e.compiled = compile_forward(compiled_.model, t, parallel, sizes, compiled_.program.get());
    RunOptions run = options_;
    run.profile = false;
    e.engine = std::make_unique<Engine>(e.compiled.program, WorkerOptions{.seed = t.seed, .run = run}, engine_.get());
    it = evaluations_.emplace(sizes, std::move(e)).first;
  }
  load_batch(it->second.compiled, *it->second.engine, batch);
  it->second.engine->run(step_);
  StepResult r = read_results(it->second.compiled, *it->second.engine);
  r.step = step_;
  return r;
}

ParamId Trainer::param_index(std::string_view name) const {
  std::vector<std::string> names;
  for (ParamId i : compiled_.params.ids()) {
    if (compiled_.params[i].name == name) return i;
    names.push_back(compiled_.params[i].name);
  }
  const auto near = nearest(name, names);
  throw Error("parameter", "there is no parameter '{}'", name)
      .hint("{}", near ? fmt::format("did you mean '{}'?", *near)
                       : fmt::format("there are {}, the first is '{}'", names.size(), names.empty() ? "" : names[0]));
}

// Where the master of a bf16 parameter lies.
Offset Trainer::master_at(const Worker& w, ParamId i) const {
  return compiled_.params[i].has_master()
             ? w.program().state_at[StateId{i, std::uint8_t(compiled_.optimizer.state.size())}]
             : std::nullopt;
}

ReadBytes Trainer::memory(const Worker& w, ParamId i, Kind kind, std::size_t which) const {
  const ActorProgram& p = w.program();
  const auto at = [&](Arena arena, Offset offset) { return offset ? reading(w, arena, *offset) : ReadBytes(); };
  switch (kind) {
    case Kind::param:
      return at(Arena::params, p.param_at[i]);
    case Kind::gradient:
      return at(Arena::gradients, p.accumulator_at[compiled_.params[i].accumulators[0]]);
    case Kind::state:
      break;
  }
  const StateId state{i, std::uint8_t(which)};
  ReadBytes stored = at(Arena::state, p.state_at[state]);
  return stored && compiled_.state_dtype(state) == bf16 ? widened(std::move(stored)) : stored;
}

Array Trainer::gathered(ParamId i, Kind kind, std::size_t which, Array reused) const {
  const CompiledParam& p = compiled_.params[i];
  Array all = logical_array(p, std::move(reused));
  const Program& program = *compiled_.program;
  for (int k = 0; k < program.ranks_per_actor(); ++k) {
    const int rank = program.rank_of(program.owners[i], k);
    const StoredPart part = stored_part(compiled_, i, coordinates_of(program.mesh, k), kind != Kind::param);
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
  const bool master = compiled_.params[i].has_master();
  return gathered(i, master ? Kind::state : Kind::param, compiled_.optimizer.state.size(), std::move(memory));
}

Array Trainer::gradient(std::string_view name) const {
  const ParamId i = param_index(name);
  if (compiled_.params[i].accumulators.empty())
    throw Error("gradient", "parameter '{}' is not trained", name).hint("it was declared with trainable = false");
  return gathered(i, Kind::gradient);
}

std::size_t Trainer::state_index(ParamId param, std::string_view which) const {
  const auto& names = compiled_.optimizer.state;
  const auto it = std::find(names.begin(), names.end(), which);
  if (it == names.end() || compiled_.params[param].accumulators.empty())
    throw Error("state", "parameter '{}' has no optimizer state '{}'", compiled_.params[param].name, which)
        .hint("the states of {} are: {}", compiled_.optimizer.name, join(names, ", "));
  return std::size_t(it - names.begin());
}

Array Trainer::state(std::string_view name, std::string_view which, Array memory) const {
  const ParamId i = param_index(name);
  return gathered(i, Kind::state, state_index(i, which), std::move(memory));
}

void Trainer::set_state(std::string_view name, std::string_view which, const Array& a) {
  const ParamId i = param_index(name);
  const std::size_t k = state_index(i, which);
  for (const int rank : engine_->local()) {
    Worker& w = engine_->worker(rank);
    const StateId state{i, std::uint8_t(k)};
    if (const Offset at = w.program().state_at[state])
      write_logical(compiled_.params[i], stored_part(compiled_, i, w.coordinates(), true), a,
                    writing(w, Arena::state, *at), compiled_.state_dtype(state));
  }
}

void Trainer::set_parameter(std::string_view name, const Array& a) {
  const ParamId i = param_index(name);
  for (const int rank : engine_->local()) {  // copies on other actors too
    Worker& w = engine_->worker(rank);
    const CompiledParam& p = compiled_.params[i];
    if (const Offset at = w.program().param_at[i])
      write_logical(p, stored_part(compiled_, i, w.coordinates()), a, writing(w, Arena::params, *at), p.dtype);
    if (const Offset at = master_at(w, i))
      write_logical(p, stored_part(compiled_, i, w.coordinates(), true), a, writing(w, Arena::state, *at),
                    p.logical_dtype());
  }
}

u64 Trainer::parameters_hash() const {
  std::vector<std::string> names;
  for (const CompiledParam& p : compiled_.params) names.push_back(p.name);
  std::sort(names.begin(), names.end());
  u64 h = 0;
  for (const std::string& n : names) {
    const Array a = parameter(n);
    h = hash_bytes(a.bytes.data(), a.bytes.size(), h);
  }
  return h;
}

}  // namespace stretto
