// Trainers that Python holds, by numbers.
#include <cstring>

#include "held.h"
#include "stretto/base/text.h"
#include "stretto/run/current.h"
#include "stretto/run/prepare.h"
#include "stretto/runtime/devices.h"
#include "stretto/train/snapshot.h"
#include "stretto/view/svg.h"

namespace stretto::python {
namespace {

Batch batch_of(const Arguments& a) {
  Batch batch;
  for (const auto& [name, array] : a.tables("batch")) batch.emplace(name, array_of(array));
  return batch;
}

Field step_field(const StepResult& r) {
  Field::Table metrics, lists;
  for (const auto& [name, value] : r.metrics) metrics.push_back({name, value});
  for (const auto& [name, values] : r.lists) lists.push_back({name, numbers(values)});
  return Field::Table{{"step", r.step},     {"loss", r.loss},       {"grad_norm", r.grad_norm},
                      {"lr", r.lr},         {"updated", r.updated}, {"seconds", r.seconds},
                      {"bubble", r.bubble}, {"metrics", metrics},   {"lists", lists}};
}

Field described(const std::string& name, const Dims& dims, DType dtype, i64 times = 1, std::string_view batch = {}) {
  Field::Array names, sizes;
  for (const Dim& d : dims) {
    names.emplace_back(d.name);
    sizes.emplace_back(d.name == batch ? d.valid() * times : d.valid());
  }
  return Field::Table{{"name", name}, {"dims", names}, {"sizes", sizes}, {"dtype", std::string(name_of(dtype))}};
}

}  // namespace

Field trainer_open(const Arguments& a) {
  const RunConfig run = run_of(a);
  Compiled compiled = compile_run(run);
  if (computes(run.parallel.device)) check_fits(planned_bytes(*compiled.program), machine_bytes());
  check_process();
  const auto made = std::make_shared<HeldTrainer>(run, Trainer(std::move(compiled), options_of(run.parallel)));
  load_weights(run, made->trainer);
  const Compiled& c = made->trainer.compiled();
  Field::Array inputs, params;
  const i64 rows = c.rows_per_step;
  for (const TracedInput& in : c.inputs) {
    i64 times = 1;
    for (const Dim& d : in.dims)
      if (d.name == c.batch) times = rows / d.valid();
    inputs.push_back(described(in.name, in.dims, in.dtype, times, c.batch));
  }
  for (const CompiledParam& p : c.params) params.push_back(described(p.name, p.dims, p.logical_dtype()));
  const int ranks = c.program->ranks();
  const std::string about = fmt::format("{}; {} parameters; {}", run.model.str(), human_count(c.parameters()),
                                        ranks > 1 ? c.parallel.mesh.str() : "one rank");
  return Field::Table{
      {"trainer", hold(made)}, {"inputs", inputs}, {"parameters", params}, {"ranks", ranks}, {"about", about}};
}

Field trainer_close(const Arguments& a) {
  forget(a.whole("trainer"));
  return {};
}

Field trainer_step(const Arguments& a) {
  const Batch batch = batch_of(a);
  const Use t(a);
  t.all().changed();
  for (const auto& [rate, lr] : a.numbers("rates")) t->set_rate(rate, lr);
  if (!a.flag("record")) return step_field(t->step(batch));
  Timeline timeline;
  Field step = step_field(t->step(batch, &timeline));
  return Field::Table{{"step", std::move(step)}, {"svg", svg(timeline, {.clock = Clock::seconds})}};
}

Field trainer_evaluate(const Arguments& a) {
  const Batch batch = batch_of(a);
  return step_field(Use(a)->evaluate(batch, a.sizes("sizes")));
}

Field trainer_read(const Arguments& a) {
  const std::string name = a.text("name"), what = a.text("what");
  const Use t(a);
  const Array array = what == "parameter"  ? t->parameter(name)
                      : what == "gradient" ? t->gradient(name)
                                           : t->state(name, what);
  const Memory to = a.memory("buffer");
  if (std::ssize(to) != std::ssize(array.bytes))
    throw Error("arguments", "'{}' is {}, of {} bytes, and the buffer has {}", name, array.str(), array.bytes.size(),
                to.size());
  std::memcpy(to.data(), array.bytes.data(), to.size());
  return {};
}

Field trainer_write(const Arguments& a) {
  const Array array = array_of(a.table("array"));
  const Use t(a);
  t.all().changed();
  if (const std::string what = a.text("what", "parameter"); what == "parameter")
    t->set_parameter(a.text("name"), array);
  else
    t->set_state(a.text("name"), what, array);
  return {};
}

Field trainer_set_step(const Arguments& a) {
  const Use t(a);
  t->set_step(a.whole("step", 0, 0, i64(1) << 40));
  return {};
}

Field trainer_steps(const Arguments& a) { return Field(Use(a)->steps_done()); }

Field trainer_save(const Arguments& a) {
  const Use t(a);
  save(*t, a.text("directory"), a.count("keep", 3), beside_tensors(t.run()));
  return {};
}

Field trainer_load(const Arguments& a) {
  const Use t(a);
  t.all().changed();
  const bool found = load(*t, a.text("directory"));
  return Field::Table{{"found", found}, {"step", t->steps_done()}};
}

Field trainer_hash(const Arguments& a) { return Field(fmt::format("{:016x}", Use(a)->parameters_hash())); }

}  // namespace stretto::python
