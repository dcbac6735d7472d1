#include "stretto/cost/cluster_file.h"

#include <algorithm>
#include <cmath>

#include "stretto/formats/fields.h"

namespace stretto {
namespace {

constexpr int kMostPerNode = 1 << 20;
constexpr Range kSpeed{.least = 1, .most = 1e30};  // per second: times stay numbers that can be added up and printed

bool read_link(FieldReader& file, std::string_view name, Link& link) {
  const bool there = file.has(name);
  FieldReader section = file.section(name);
  section.read("latency", link.latency, between(0, 1e6));
  section.read("bandwidth", link.bandwidth, kSpeed);
  return there;
}

void set_link(Field& to, const std::string& name, const Link& link) {
  to.set(name + ".latency", link.latency);
  if (std::isfinite(link.bandwidth)) to.set(name + ".bandwidth", link.bandwidth);
}

}  // namespace

ClusterFile read_cluster(const std::string& path, const std::vector<std::string>& overrides) {
  Field fields = read_toml_file(path);
  for (const std::string& o : overrides) override_field(fields, o);
  ClusterFile file{.name = path};
  Cluster& c = file.cluster;
  c.machine.memory_bandwidth = std::numeric_limits<double>::infinity();
  FieldReader reader(fields);
  reader.read("ranks_per_node", c.ranks_per_node, stretto::between(1, kMostPerNode));
  reader.read("memory", file.memory, above(0));
  FieldReader machine = reader.section("machine");
  machine.read("flops", c.machine.flops, kSpeed);
  machine.read("flops_bf16", c.machine.flops_bf16, kSpeed);
  machine.read("memory_bandwidth", c.machine.memory_bandwidth, kSpeed);
  file.inside = read_link(reader, "inside", c.inside);
  file.between = read_link(reader, "between", c.between);
  reader.finish();
  return file;
}

std::string cluster_toml(const ClusterFile& file, const std::vector<std::string>& comments) {
  const Cluster& c = file.cluster;
  Field to{Field::Table{}};
  to.set("ranks_per_node", c.ranks_per_node);
  if (std::isfinite(file.memory)) to.set("memory", file.memory);
  to.set("machine.flops", c.machine.flops);
  if (c.machine.flops_bf16 > 0) to.set("machine.flops_bf16", c.machine.flops_bf16);
  if (std::isfinite(c.machine.memory_bandwidth)) to.set("machine.memory_bandwidth", c.machine.memory_bandwidth);
  if (file.inside) set_link(to, "inside", c.inside);
  if (file.between) set_link(to, "between", c.between);
  std::string text;
  for (const std::string& line : comments) text += "# " + line + "\n";
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
