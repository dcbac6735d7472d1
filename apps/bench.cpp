// `stretto bench comm`: what messages and collectives between the ranks of a run take, and a cluster file of it.
// `stretto bench device`: what kernels take on this machine, and a device file of it.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <thread>

#include "ranks.h"
#include "run_file.h"
#include "stretto/base/error.h"
#include "stretto/base/text.h"
#include "stretto/comm/link_bench.h"
#include "stretto/cost/cluster_file.h"
#include "stretto/cost/device_fit.h"
#include "stretto/formats/atomic_file.h"
#include "stretto/kernels/kernel_bench.h"
#include "stretto/kernels/lane_device.h"
#include "stretto/kernels/peak.h"
#include "stretto/run/prepare.h"
#include "stretto/runtime/devices.h"
#include "usage.h"

namespace stretto::app {
namespace {

struct BenchOptions {
  RunFile run;
  WorldFlags world;
  std::string output;
  bool shared = true;
};

std::string link_line(const char* where, const Link& link) {
  return fmt::format("{:<9}{} and {}/s\n", where, human_seconds(link.latency), human_bytes(link.bandwidth));
}

// More ranks than cores share them.
ClusterFile cluster_of(const LinkBench& b, const std::string& name) {
  const double cores = std::max(1u, std::thread::hardware_concurrency());
  const double share = std::min(1.0, cores / b.ranks_per_node), f32_rate = peak_flops(f32), rate = peak_flops(bf16);
  ClusterFile file{.name = name, .inside = b.fit.has_inside, .between = b.fit.has_between};
  file.cluster = {
      .machine = {.flops = f32_rate * share,
                  .memory_bandwidth = b.memory_bandwidth,
                  .flops_bf16 = rate == f32_rate ? 0 : rate * share},  // the processor has instructions for it
      .inside = b.fit.inside,
      .between = b.fit.between,
      .ranks_per_node = b.ranks_per_node};
  return file;
}

void bench_comm(const BenchOptions& o, const CLI::App& command, Ranks& ranks) {
  const RunConfig config = o.run.read(command);
  const Mesh mesh = mesh_of(config.parallel);
  check_directory_of(o.output);
  const std::shared_ptr<Peers> peers = ranks.join({.timeouts = timeouts_of(config), .shared = o.shared});
  if (peers) check_world(peers->world(), mesh);
  const LinkBench b = measure_links(mesh, {.link = config.parallel.link}, peers.get());
  if (peers && !peers->first()) return;
  const std::string where = peers ? placement_str(mesh, peers->nodes()) + ", " + peers->name()
                                  : fmt::format("{} threads of one process", b.ranks);
  const ClusterFile file = cluster_of(b, o.output);
  const Machine& machine = file.cluster.machine;
  fmt::print("mesh     {}\nranks    {}\n\n{}\n", mesh.str(), where, b.str());
  const std::string narrow =
      machine.flops_bf16 > 0 ? fmt::format(" ({}flop/s in bf16)", human_count(machine.flops_bf16)) : "";
  fmt::print("machine  {}flop/s{} and {}/s of memory for each of {} ranks on a node\n", human_count(machine.flops),
             narrow, human_bytes(machine.memory_bandwidth), b.ranks_per_node);
  if (file.inside) fmt::print("{}", link_line("inside", b.fit.inside));
  if (file.between) fmt::print("{}", link_line("between", b.fit.between));
  if (o.output.empty()) return;
  write_file(o.output, cluster_toml(file, {fmt::format("Measured by stretto bench comm: {}, {}.", mesh.str(), where)}));
  fmt::print("cluster  {}\n", o.output);
}

DeviceKind measured_kind(const std::string& name) {
  for (const DeviceKind kind : {DeviceKind::cpu, DeviceKind::cuda})
    if (type_of(kind).name == name) return kind;
  throw Error("bench", "device '{}' is none that is measured", name).hint("cpu or cuda");
}

void bench_device(const std::string& output, DeviceKind kind) {
  check_directory_of(output);
  std::vector<KernelSample> samples;
  std::vector<std::vector<std::string>> rows{{"kernel", "seconds", "flop/s", "bytes/s", "model"}};
  const Program nothing{};
  const auto device = make_device(nothing, 0, {.device = kind});
  const std::vector<BenchedKernel> times = measure_kernels(*device);
  for (const BenchedKernel& k : times) samples.push_back({.work = {.cost = k.cost}, .seconds = k.seconds});
  // Nobody has told the peak of a GPU: the fastest product stands for it.
  double peak = kind == DeviceKind::cpu ? peak_flops(f32) : 0;
  for (const BenchedKernel& k : times) peak = std::max(peak, kind == DeviceKind::cpu ? 0 : k.cost.flops / k.seconds);
  const auto* const own = dynamic_cast<const LaneDevice*>(device.get());  // memory of its own
  const double memory = own && own->free_bytes() ? *own->free_bytes() : machine_bytes();
  const DeviceFit fit = fit_device(samples, {.name = output, .f32 = peak, .memory = memory});
  const Machine machine = cluster_of(fit.device, {}).machine;
  for (const BenchedKernel& k : times)
    rows.push_back({k.name, human_seconds(k.seconds), human_count(k.cost.flops / k.seconds),
                    human_bytes((k.cost.read + k.cost.written) / k.seconds),
                    human_seconds(kernel_seconds({.cost = k.cost}, machine))});
  fmt::print("{}\n", table(rows));
  const DeviceModel& d = fit.device;
  fmt::print("products  {:.1f}% of {}flop/s, sides of {:.0f} reach half of it; off by {:.1f}%\n", 100 * d.rates.product,
             human_count(d.f32), d.rates.small, 100 * fit.products);
  fmt::print("attention {:.1f}%, backward {:.1f}% of that; off by {:.1f}%\n", 100 * d.rates.attention,
             100 * d.rates.attention_backward, 100 * fit.attention);
  fmt::print("elements  {:.1f}% of {}/s, and {} for every kernel; off by {:.1f}%\n", 100 * d.rates.elements,
             human_bytes(d.memory_bandwidth), human_seconds(d.rates.kernel), 100 * fit.elements);
  if (output.empty()) return;
  write_file(output, device_toml(d, {"Measured by stretto bench device, f32. Links: stretto bench comm."}));
  fmt::print("device    {}\n", output);
}

}  // namespace

void add_bench(CLI::App& app) {
  CLI::App* bench = app.add_subcommand("bench", "measure what this machine, or cluster, does");
  bench->require_subcommand(1);
  CLI::App* command = bench->add_subcommand("comm", "messages and collectives between the ranks of a run");
  const auto o = std::make_shared<BenchOptions>();
  o->run.declare(*command);
  command->add_option("-o,--output", o->output, "write the cluster file that `stretto simulate --cluster` reads")
      ->type_name("X.toml");
  command->add_option("--ranks", o->world.size, "how many processes there are; by default as the launcher says")
      ->check(whole_number(1));
  command->add_option("--rank", o->world.rank, "which of them this is; by default as the launcher says")
      ->check(whole_number(0));
  command->add_flag("!--no-shared-memory", o->shared,
                    "between processes of one machine too, everything goes through MPI");
  command->callback([o, command] {
    Ranks ranks(o->world);
    ranks.run([&] { bench_comm(*o, *command, ranks); });
  });
  CLI::App* device = bench->add_subcommand("device", "products, attention, passes over elements of this machine");
  struct DeviceOptions {
    std::string output, device = "cpu";
  };
  const auto d = std::make_shared<DeviceOptions>();
  device->add_option("-o,--output", d->output, "write the device file that cluster files name")->type_name("X.toml");
  device->add_option("--device", d->device, "cpu, or cuda: the first GPU");
  device->callback([d] { bench_device(d->output, measured_kind(d->device)); });
}

}  // namespace stretto::app
