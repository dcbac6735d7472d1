#include "stretto/cost/cluster_file.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "stretto/base/text.h"

namespace stretto {
namespace {

constexpr int most_per_node = 1 << 20;
constexpr Range speed_range{.least = 1,
                            .most = 1e30};  // per second: times stay numbers that can be added up and printed

bool read_link(FieldReader& file, std::string_view name, Link& link) {
  const bool there = file.has(name);
  FieldReader section = file.section(name);
  section.read("latency", link.latency, between(0, 1e6));
  section.read("bandwidth", link.bandwidth, speed_range);
  return there;
}

void set_link(Field& to, const std::string& name, const Link& link) {
  to.set(name + ".latency", link.latency);
  if (std::isfinite(link.bandwidth)) to.set(name + ".bandwidth", link.bandwidth);
}

constexpr struct {
  std::string_view key;
  i64 RunSizes::*of;
} run_sizes[] = {{"ranks", &RunSizes::ranks}, {"context", &RunSizes::context}, {"width", &RunSizes::width}};

std::optional<CalibratedOn> read_calibrated(FieldReader& file) {
  if (!file.raw("calibrated")) return {};
  const std::size_t so_far = file.faults_so_far();
  FieldReader section = file.section("calibrated");
  CalibratedOn on;
  if (file.faults_so_far() == so_far) {  // it is a table
    section.need("runs");
    section.read("runs", on.runs, at_least(1));
    for (const auto& [key, of] : run_sizes) {
      std::vector<i64> ends;
      section.need(key);
      if (!section.read(key, ends, at_least(1))) continue;
      if (ends.size() == 2 && ends[0] <= ends[1])
        on.least.*of = ends[0], on.most.*of = ends[1];
      else
        section.fail(key, "must be two numbers, the smallest and the largest");
    }
  }
  file.hint_since(so_far, "[calibrated] is as stretto calibrate -o writes it, e.g. runs = 5, ranks = [2, 16]");
  return on;
}

std::string in_words(std::string_view key, const std::string& number) {
  if (key == "ranks") return fmt::format("{} rank{}", number, number == "1" ? "" : "s");
  return fmt::format("{} {}", key, number);
}

// A device with its stack, and what the file says over them. A file it names lies beside this one.
template <class Read>
auto read_named(FieldReader& reader, std::string_view key, const std::string& path, Read&& read) {
  std::string name;
  reader.read(key, name);
  if (name.ends_with(".toml")) name = (std::filesystem::path(path).parent_path() / name).string();
  try {
    return read(name);
  } catch (const Error& e) {
    for (const Fault& f : e.faults())
      reader.blame(key, f.where.empty() ? f.what : fmt::format("{}: {}", f.where, f.what), f.hint);
    return decltype(read(name)){};
  }
}

ClusterFile read_device_cluster(FieldReader& reader, ClusterFile file, const std::string& path, ProductType products) {
  DeviceModel d = read_named(reader, "device", path, read_device);
  Stack stack;
  if (reader.has("stack")) stack = read_named(reader, "stack", path, read_stack);
  double factor = 1;
  reader.read("factor", factor, above_up_to(0, 100));
  stack.factor *= factor;
  double scores = 1;
  reader.read("scores", scores, above_up_to(0, 100));
  stack.scores_forward *= scores, stack.scores_backward *= scores;
  reader.read("memory", d.memory, above(0));
  reader.read("nic", d.between.bandwidth, speed_range);
  read_over(reader, d);
  reader.read("ranks_per_node", d.domain, between(1, most_per_node));
  reader.read("ranks", file.ranks, at_least(1));
  reader.finish();
  file.device = d;
  file.memory = d.memory;
  file.inside = file.between = d.linked;
  file.cluster = cluster_of(d, stack, products);
  return file;
}

ClusterFile read_checked(const std::string& path, const std::vector<std::string>& overrides, ProductType products) {
  Field fields = read_toml_file(path);
  for (const std::string& o : overrides) override_field(fields, o);
  ClusterFile file{.name = path};
  Cluster& c = file.cluster;
  c.machine.memory_bandwidth = std::numeric_limits<double>::infinity();
  FieldReader reader(fields);
  file.calibrated = read_calibrated(reader);
  if (reader.has("device")) return read_device_cluster(reader, std::move(file), path, products);
  if (reader.has("stack")) reader.fail_hint("stack", "is of a device, and none is given", "give device = \"a100-80g\"");
  reader.read("ranks_per_node", c.ranks_per_node, stretto::between(1, most_per_node));
  reader.read("memory", file.memory, above(0));
  FieldReader machine = reader.section("machine");
  machine.read("flops", c.machine.flops, speed_range);
  machine.read("flops_bf16", c.machine.flops_bf16, speed_range);
  machine.read("memory_bandwidth", c.machine.memory_bandwidth, speed_range);
  file.inside = read_link(reader, "inside", c.inside);
  file.between = read_link(reader, "between", c.between);
  reader.finish();
  return file;
}

}  // namespace

ClusterFile read_cluster(const std::string& path, const std::vector<std::string>& overrides, ProductType products) {
  return with_hint("a cluster file has flops and bytes per second, and seconds: docs/cluster.md",
                   [&] { return read_checked(path, overrides, products); });
}

void CalibratedOn::add(const RunSizes& run) {
  for (const auto& [key, of] : run_sizes) {
    least.*of = runs == 0 ? run.*of : std::min(least.*of, run.*of);
    most.*of = runs == 0 ? run.*of : std::max(most.*of, run.*of);
  }
  ++runs;
}

Field CalibratedOn::field() const {
  Field to{Field::Table{}};
  to.set("runs", runs);
  for (const auto& [key, of] : run_sizes) to.set(key, Field::Array{least.*of, most.*of});
  return to;
}

std::string cluster_toml(const ClusterFile& file, const std::vector<std::string>& comments) {
  const Cluster& c = file.cluster;
  Field to{Field::Table{}};
  std::string text;
  for (const std::string& line : comments) text += "# " + line + "\n";
  if (file.device) {
    to.set("device", file.device->name);
    to.set("stack", c.stack.name);
    if (file.ranks) to.set("ranks", *file.ranks);
  }
  to.set("ranks_per_node", c.ranks_per_node);
  if (std::isfinite(file.memory)) to.set("memory", file.memory);
  if (!file.device) to.set("machine.flops", c.machine.flops);
  if (file.calibrated) to.set("calibrated", file.calibrated->field());
  if (file.device) {
    if (file.inside) set_link(to, "inside", c.inside), to.set("inside.share", 1.0);
    if (file.between) set_link(to, "between", c.between), to.set("between.share", 1.0);
    return text + write_toml(to);
  }
  if (c.machine.flops_bf16 > 0) to.set("machine.flops_bf16", c.machine.flops_bf16);
  if (std::isfinite(c.machine.memory_bandwidth)) to.set("machine.memory_bandwidth", c.machine.memory_bandwidth);
  if (file.inside) set_link(to, "inside", c.inside);
  if (file.between) set_link(to, "between", c.between);
  return text + write_toml(to);
}

void check_ranks(const ClusterFile& file, int ranks) {
  const int per_node = file.cluster.ranks_per_node;
  if (ranks > per_node && !file.between)
    throw Error(file.name, "has no [between], and {} ranks are on {} nodes of {}", ranks,
                (ranks + per_node - 1) / per_node, per_node)
        .hint("give latency and bandwidth between nodes, or measure them: stretto bench comm on several nodes");
  if (std::min(ranks, per_node) > 1 && !file.inside)
    throw Error(file.name, "has no [inside], and nodes have {} ranks", per_node)
        .hint("give latency and bandwidth within a node, or measure them: stretto bench comm");
}

std::string extrapolated(const ClusterFile& file, const RunSizes& run) {
  if (!file.calibrated) return "";
  const auto& [runs, least, most] = *file.calibrated;
  std::vector<std::string> here, there;
  for (const auto& [key, of] : run_sizes) {
    const i64 low = least.*of, high = most.*of;
    if (run.*of >= low && run.*of <= high) continue;
    here.push_back(in_words(key, fmt::format("{}", run.*of)));
    there.push_back(in_words(key, low == high ? fmt::format("{}", low) : fmt::format("{} to {}", low, high)));
  }
  if (here.empty()) return "";
  return fmt::format("extrapolated: {}; it was calibrated on {}", join(here, ", "), join(there, ", "));
}

}  // namespace stretto
