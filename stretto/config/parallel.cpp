#include "stretto/config/parallel.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "stretto/base/text.h"
#include "stretto/schedule/choice.h"

namespace stretto {
namespace {

constexpr int kMostActors = 1024, kMostStages = 1 << 16;

bool is_text(const Field* f, std::string_view text) {
  const auto* s = f ? std::get_if<std::string>(&f->value) : nullptr;
  return s && *s == text;
}

bool read_stages(FieldReader& section, std::vector<int>& stages) {
  const Field* field = section.raw("stages");
  if (!field || is_text(field, "auto")) return true;
  if (!field->array()) {
    section.fail_hint("stages", "must be \"auto\" or a list of the pieces that each stage takes", "e.g. [3, 2, 2, 3]");
    return false;
  }
  std::vector<i64> counts;
  if (!section.read("stages", counts, between(1, kMostStages))) return false;
  if (counts.empty()) section.fail_hint("stages", "names no stage", "write \"auto\" or e.g. [3, 2, 2, 3]");
  stages.assign(counts.begin(), counts.end());
  return !counts.empty();
}

constexpr std::pair<std::string_view, int ParallelNames::*> kSizes[] = {{"data", &ParallelNames::data},
                                                                        {"tensor", &ParallelNames::tensor},
                                                                        {"expert", &ParallelNames::expert},
                                                                        {"context", &ParallelNames::context},
                                                                        {"depth", &ParallelNames::depth}};

// {x = 2, y = 2}: in the order of the file, major to minor.
bool read_mesh(FieldReader& section, Mesh& mesh) {
  if (!section.has("mesh")) return section.raw("mesh") == nullptr;
  FieldReader axes = section.section("mesh");
  if (!axes.field().table()) return false;
  bool right = true;
  for (const Member& m : *axes.field().table()) {
    Axis axis{m.key, 1};
    right = axes.read(m.key, axis.size, between(1, kMostActors)) && right;
    const bool taken = m.key == "pipe" || std::any_of(std::begin(kSizes), std::end(kSizes),
                                                      [&](const auto& name) { return name.first == m.key; });
    if (taken) axes.fail_hint(m.key, "is an axis of its own", fmt::format("write parallel.{} = {}", m.key, axis.size));
    right = right && !taken;
    mesh.push_back(std::move(axis));
  }
  return right;
}

// {batch = "data", seq_r = ["context", "tensor"]}
bool read_layout(FieldReader& section, Layout& layout) {
  if (!section.has("layout")) return section.raw("layout") == nullptr;
  FieldReader dims = section.section("layout");
  if (!dims.field().table()) return false;
  bool right = true;
  for (const Member& m : *dims.field().table()) {
    std::vector<std::string> axes;
    right = dims.read(m.key, axes) && right;
    LayoutEntry entry{m.key, {}};
    entry.axes.assign(axes.begin(), axes.end());
    layout.push_back(std::move(entry));
  }
  return right;
}

bool read_recompute(FieldReader& section, std::vector<Recompute>& recompute) {
  constexpr Recompute all[] = {Recompute::none, Recompute::full, Recompute::selective};
  std::vector<std::string> words;
  if (!section.has("recompute")) return section.raw("recompute") == nullptr;
  if (!section.read("recompute", words)) return false;
  std::vector<std::string> names;
  for (const Recompute r : all) names.emplace_back(name_of(r));
  for (const std::string& word : words) {
    const auto known = std::find(names.begin(), names.end(), word);
    if (known == names.end()) {
      const auto near = nearest(word, names);
      section.fail_hint("recompute", fmt::format("must be one of {}, or a list of them", join(names, ", ")),
                        near ? fmt::format("did you mean \"{}\"?", *near) : "");
      return false;
    }
    recompute.push_back(all[known - names.begin()]);
  }
  if (recompute == std::vector{Recompute::none}) recompute.clear();
  return true;
}

// A table of two numbers above 0, both optional.
template <class T>
bool read_pair(FieldReader& section, std::string_view key, T& to, std::string_view first, double T::*a, Range a_range,
               std::string_view second, double T::*b, Range b_range) {
  if (!section.has(key)) return true;
  FieldReader inner = section.section(key);
  const bool there = inner.has(first), there_too = inner.has(second);
  const bool right = (inner.read(first, to.*a, a_range) || !there) && inner.field().table();
  return (inner.read(second, to.*b, b_range) || !there_too) && right;
}

}  // namespace

bool read_parallel(FieldReader& section, ParallelSection& s) {
  bool right = true;
  const auto read = [&](std::string_view key, auto& value, auto... limits) {
    const bool there = section.has(key);
    right = (section.read(key, value, limits...) || !there) && right;
  };
  read("pipe", s.pipe, between(1, kMostActors));
  for (const auto& [key, size] : kSizes) read(key, s.names.*size, between(1, kMostActors));
  read("sequence", s.names.sequence);
  read("exchange", s.names.exchange);
  read("zero", s.names.zero, between(0, 3));
  read("regather", s.regather);
  const bool reshard = section.has("reshard");
  right = (section.choose("reshard", s.reshard, {{"microbatch", Reshard::microbatch}, {"step", Reshard::step}}) ||
           !reshard) &&
          right;
  right = read_mesh(section, s.mesh) && right;
  right = read_layout(section, s.layout) && right;
  read("schedule", s.schedule);
  read("chunks", s.chunks, between(0, kMostActors));
  right = read_stages(section, s.stages) && right;
  right = read_recompute(section, s.recompute) && right;
  const bool device = section.has("device");
  right =
      (section.choose("device", s.device, {{"cpu", DeviceKind::cpu}, {"emulated", DeviceKind::emulated}}) || !device) &&
      right;
  if (section.has("link")) {
    Link link;
    right = read_pair(section, "link", link, "latency", &Link::latency, between(0, 1e6), "bandwidth", &Link::bandwidth,
                      above(0)) &&
            right;
    s.link = link;
  } else {
    section.raw("link");
  }
  const Range speed{.least = 0, .most = 1e30, .open_least = true};
  section.raw("machine");
  right = read_pair(section, "machine", s.machine, "flops", &Machine::flops, speed, "bandwidth",
                    &Machine::memory_bandwidth, speed) &&
          right;
  double poll = 0;  // older runs have it here, mostly as 0
  if (section.read("poll", poll, between(0, 1e9)) && poll > 0) {
    section.fail_hint("poll", "changes the numbers, and has become a key of [train]",
                      fmt::format("write train.poll = {}", poll));
    right = false;
  }
  read("timeout", s.timeout, between(0, 1e9));
  return right;
}

Field parallel_field(const ParallelSection& s) {
  Field to{Field::Table{}};
  to.set("pipe", s.pipe);
  for (const auto& [key, size] : kSizes) to.set(key, s.names.*size);
  to.set("sequence", s.names.sequence);
  to.set("exchange", s.names.exchange);
  to.set("zero", s.names.zero);
  to.set("regather", s.regather);
  to.set("reshard", std::string(name_of(s.reshard)));
  for (const Axis& a : s.mesh) to.set("mesh." + a.name, a.size);
  for (const LayoutEntry& e : s.layout) to.set("layout." + e.dim, Field(Field::Array(e.axes.begin(), e.axes.end())));
  to.set("schedule", s.schedule);
  to.set("chunks", s.chunks);
  to.set("stages", s.stages.empty() ? Field("auto") : Field(Field::Array(s.stages.begin(), s.stages.end())));
  Field::Array recompute;
  for (const Recompute r : s.recompute) recompute.emplace_back(std::string(name_of(r)));
  to.set("recompute", recompute.empty() ? Field("none") : Field(recompute));
  to.set("device", s.device == DeviceKind::cpu ? "cpu" : "emulated");
  to.set("timeout", s.timeout);
  if (s.link) {
    to.set("link.latency", s.link->latency);
    if (std::isfinite(s.link->bandwidth)) to.set("link.bandwidth", s.link->bandwidth);
  }
  to.set("machine.flops", s.machine.flops);
  to.set("machine.bandwidth", s.machine.memory_bandwidth);
  return to;
}

std::vector<Fault> schedule_faults(const ParallelSection& s, int microbatches) {
  try {
    // A file has numbers of its own: that they are others than the run's is one fault, not one per missing action.
    if (names_a_file(s.schedule)) {
      const CheckedSchedule file = check_schedule(s.schedule, {.actors = 0, .microbatches = 0, .chunks = s.chunks});
      const int rows = file.schedule.actors(), cut = file.schedule.microbatches;
      if (file.validation.ok() && (rows != s.pipe || cut != microbatches))
        return {fault(s.schedule, fmt::format("use parallel.pipe = {} and train.microbatches = {}", rows, cut),
                      "the file is for {} actors and {} microbatches, the run has {} and {}", rows, cut, s.pipe,
                      microbatches)};
    }
    return check_schedule(s.schedule, {.actors = s.pipe, .microbatches = microbatches, .chunks = s.chunks})
        .validation.all_faults();
  } catch (const Error& e) {
    return e.faults();
  }
}

Parallel parallel_of(const ParallelSection& s) {
  Parallel p{.names = s.names,
             .layout = s.layout,
             .regather = s.regather,
             .reshard = s.reshard,
             .schedule = s.schedule,
             .chunks = s.chunks,
             .stages = s.stages,
             .recompute = s.recompute};
  if (s.pipe > 1) p.mesh = {{"pipe", s.pipe}};
  p.mesh.insert(p.mesh.end(), s.mesh.begin(), s.mesh.end());
  p.remote = s.remote;
  return p;
}

RunOptions options_of(const ParallelSection& s) {
  RunOptions o;
  o.timeout = s.timeout;
  o.link = s.link;
  o.device = s.device;
  o.machine = s.machine;
  return o;
}

}  // namespace stretto
