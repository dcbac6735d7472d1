// Trainers that Python holds, by numbers. Arrays are given as {"dtype", "sizes", "at"}: memory of the caller's, read or
// filled during the call.
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "calls.h"
#include "stretto/run/prepare.h"
#include "stretto/train/snapshot.h"

namespace stretto::python {
namespace {

struct Held {
  std::map<i64, std::shared_ptr<Trainer>> trainers;
  i64 next = 1;
  std::mutex mutex;
};
Held& held() {
  static Held all;
  return all;
}

std::shared_ptr<Trainer> trainer_of(const Arguments& a) {
  const std::lock_guard lock(held().mutex);
  const auto it = held().trainers.find(a.whole("trainer"));
  if (it == held().trainers.end()) throw Error("trainer", "it has been closed").hint("make another one");
  return it->second;
}

DType array_type(const std::string& name) {
  for (const DType d : {f32, f64, i32})
    if (name_of(d) == name) return d;
  throw Error("array", "there are no arrays of {}", name).hint("use float32, float64 or int32");
}

template <class T>
T* memory_of(const Arguments& a) {
  return reinterpret_cast<T*>(static_cast<std::uintptr_t>(a.whole("at")));
}

Array array_of(const Field& f) {
  const Arguments a(f);
  Array array{.dtype = array_type(a.text("dtype"))};
  for (const Field& size : *a.find("sizes")->array()) array.sizes.push_back(std::get<i64>(size.value));
  array.bytes.resize(std::size_t(array.elements()) * size_of(array.dtype));
  if (!array.bytes.empty()) std::memcpy(array.bytes.data(), memory_of<const std::byte>(a), array.bytes.size());
  return array;
}

Batch batch_of(const Arguments& a) {
  Batch batch;
  for (const Member& m : *a.find("batch")->table()) batch.emplace(m.key, array_of(m.value));
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
  if (run.parallel.device != DeviceKind::emulated) check_fits(planned_bytes(*compiled.program), machine_bytes());
  const auto trainer = std::make_shared<Trainer>(std::move(compiled), options_of(run.parallel));
  load_weights(run, *trainer);
  const Compiled& c = trainer->compiled();
  Field::Array inputs, params;
  const i64 rows = c.rows_per_step;
  for (const TracedInput& in : c.inputs) {
    i64 times = 1;
    for (const Dim& d : in.dims)
      if (d.name == c.batch) times = rows / d.valid();
    inputs.push_back(described(in.name, in.dims, in.dtype, times, c.batch));
  }
  for (const CompiledParam& p : c.params) params.push_back(described(p.name, p.dims, p.logical_dtype()));
  const std::lock_guard lock(held().mutex);
  const i64 id = held().next++;
  held().trainers[id] = trainer;
  return Field::Table{{"trainer", id}, {"inputs", inputs}, {"parameters", params}, {"ranks", c.program->ranks()}};
}

Field trainer_close(const Arguments& a) {
  std::shared_ptr<Trainer> last;  // ends outside of the lock
  const std::lock_guard lock(held().mutex);
  if (const auto it = held().trainers.find(a.whole("trainer")); it != held().trainers.end()) {
    last = std::move(it->second);
    held().trainers.erase(it);
  }
  return {};
}

Field trainer_step(const Arguments& a) { return step_field(trainer_of(a)->step(batch_of(a))); }

Field trainer_evaluate(const Arguments& a) {
  std::map<std::string, i64> sizes;
  if (const Field* given = a.find("sizes"))
    for (const Member& m : *given->table()) sizes[m.key] = std::get<i64>(m.value.value);
  return step_field(trainer_of(a)->evaluate(batch_of(a), sizes));
}

Field trainer_read(const Arguments& a) {
  const auto t = trainer_of(a);
  const std::string name = a.text("name"), what = a.text("what");
  const Array array = what == "parameter"  ? t->parameter(name)
                      : what == "gradient" ? t->gradient(name)
                                           : t->state(name, what);
  const Arguments to(*a.find("to"));
  STRETTO_ASSERT(to.whole("bytes") == std::ssize(array.bytes), "memory of another size");
  if (!array.bytes.empty()) std::memcpy(memory_of<std::byte>(to), array.bytes.data(), array.bytes.size());
  return {};
}

Field trainer_write(const Arguments& a) {
  trainer_of(a)->set_parameter(a.text("name"), array_of(*a.find("array")));
  return {};
}

Field trainer_save(const Arguments& a) {
  save(*trainer_of(a), a.text("directory"), int(a.whole("keep", 3)));
  return {};
}

Field trainer_load(const Arguments& a) {
  const auto t = trainer_of(a);
  const bool found = load(*t, a.text("directory"));
  return Field::Table{{"found", found}, {"step", t->steps_done()}};
}

Field trainer_hash(const Arguments& a) { return Field(fmt::format("{:016x}", trainer_of(a)->parameters_hash())); }

}  // namespace stretto::python
