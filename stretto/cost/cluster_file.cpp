#include "stretto/cost/cluster_file.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "stretto/formats/fields.h"

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

}  // namespace stretto
