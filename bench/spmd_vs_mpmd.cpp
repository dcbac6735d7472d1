// The best configuration without a pipeline against the best with one, on emulated devices and links: layers like
// GPT-3's on the accelerators of a cluster file, over links between nodes from slow to as fast as inside of one. All
// that fit are simulated, the best of each kind are run as well.
//   build/bench/spmd_vs_mpmd [cluster.toml] [--section.key=value ...]
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "stretto/base/text.h"
#include "stretto/cost/cluster_file.h"
#include "stretto/models/family.h"
#include "stretto/simulate/step_time.h"
#include "stretto/stretto.h"

using namespace stretto;

namespace {

constexpr int ranks = 16, rows = 32, seq = 2048, shown = 3;
constexpr int layers = 16, width = 12288, vocab = 51200;
constexpr double slower_to_faster[] = {0.25, 0.5, 1, 2, 6};  // links between nodes, times the file's bandwidth

struct Recipe {
  int pipe = 1, data = 1, tensor = 1, zero = 0;
  int sequences = 1;  // per rank and microbatch
  const char* schedule = "1f1b";
  Recompute recompute = Recompute::none;

  std::string str() const {
    std::string s = pipe > 1 ? fmt::format("pipe={} ", pipe) : "";
    s += fmt::format("data={} tensor={}", data, tensor);
    if (zero) s += fmt::format(" zero={}", zero);
    if (pipe > 1) s += fmt::format(" {}", schedule);
    s += fmt::format(" {} of {}", rows / data / sequences, sequences);
    if (recompute != Recompute::none) s += recompute == Recompute::full ? " full" : " selective";
    return s;
  }
  // Parameters, gradients and AdamW's state of the layers alone.
  double least_bytes() const {
    const double parameters = 12.0 * layers * width * width / pipe / tensor;
    return 4 * parameters *
           ((zero < 3 ? 1 : 1.0 / data) + (zero < 2 ? 1 : 1.0 / data) + 2 * (zero < 1 ? 1 : 1.0 / data));
  }
  Compiled compiled() const {
    const ModelConfig config{
        .family = "gpt2", .layers = layers, .width = width, .heads = 96, .context = seq, .vocab = vocab, .tied = false};
    Parallel parallel{.names = {.data = data, .tensor = tensor, .sequence = tensor > 1, .zero = zero},
                      .schedule = schedule,
                      .recompute = {recompute}};
    if (pipe > 1) parallel.mesh = {{"pipe", pipe}};
    return compile(make_model(config, rows), adamw(), {.microbatches = rows / data / sequences}, parallel);
  }
};

std::vector<Recipe> recipes() {
  std::vector<Recipe> all;
  for (int pipe = 1; pipe <= ranks; pipe *= 2)
    for (int tensor = 1; pipe * tensor <= ranks; tensor *= 2)
      for (int zero : {0, 1, 2, 3})
        for (int sequences = 1; sequences <= 8; sequences *= 2)
          for (const char* schedule : {"1f1b", "interleaved-1f1b", "zb-h1"})
            for (Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
              const Recipe r{pipe, ranks / pipe / tensor, tensor, zero, sequences, schedule, recompute};
              if ((r.data == 1 && zero > 0) || rows / r.data % sequences) continue;
              if (pipe == 1 && std::string_view(schedule) != "1f1b") continue;
              all.push_back(r);
            }
  return all;
}

struct Found {
  Recipe recipe;
  std::vector<double> simulated;  // per cluster
  double gigabytes = 0;
};

double gigabytes(const Program& p) {
  double most = 0;
  for (const ActorProgram& a : p.actors) {
    double bytes = 0;
    for (u64 b : a.bytes) bytes += double(b);
    most = std::max(most, bytes / 1e9);
  }
  return most;
}

std::vector<Found> search(const std::vector<Cluster>& clusters, double memory) {
  std::vector<Found> all;
  std::map<std::string, int> refused;
  int tried = 0;
  for (const Recipe& r : recipes()) {
    ++tried;
    if (r.least_bytes() > memory) continue;
    try {
      const Compiled c = r.compiled();
      Found f{.recipe = r, .gigabytes = gigabytes(*c.program)};
      if (f.gigabytes * 1e9 > memory) continue;
      for (const Cluster& cluster : clusters) f.simulated.push_back(step_time(*c.program, cluster).seconds);
      all.push_back(std::move(f));
    } catch (const Error& e) {
      ++refused[e.what()];
    }
  }
  fmt::print("{} configurations tried, {} fit into {:.0f} GB per rank\n", tried, all.size(), memory / 1e9);
  for (const auto& [why, times] : refused) fmt::print("refused {} times: {}\n", times, why);
  return all;
}

double measured(const Recipe& r, const Cluster& cluster) {
  const std::vector<std::int32_t> ids(std::size_t(rows) * seq, 1);
  const Batch batch{{"ids", Array::of<std::int32_t>(ids, {rows, seq})},
                    {"targets", Array::of<std::int32_t>(ids, {rows, seq})}};
  Trainer t(r.compiled(), {.cluster = cluster, .device = DeviceKind::emulated, .machine = cluster.machine});
  return std::min(t.step(batch).seconds, t.step(batch).seconds);
}

}  // namespace

int main(int argc, char** argv) {
  const bool given = argc > 1 && argv[1][0] != '-';
  const ClusterFile d = read_cluster(given ? argv[1] : STRETTO_SOURCE "/bench/cluster.toml",
                                     std::vector<std::string>(argv + (given ? 2 : 1), argv + argc));
  check_ranks(d, ranks);
  std::vector<Cluster> clusters;
  for (double factor : slower_to_faster) {
    clusters.push_back(d.cluster);
    clusters.back().between.bandwidth *= factor;
  }
  std::vector<Found> all = search(clusters, d.memory);
  std::vector<std::vector<std::string>> best{{"configuration", "simulated s", "measured s", "GB per rank"}},
      ratios{{"GB/s between nodes", "best without a pipeline", "best with one", "simulated", "measured"}};
  for (std::size_t i = 0; i < clusters.size(); ++i) {
    std::sort(all.begin(), all.end(), [&](const Found& a, const Found& b) { return a.simulated[i] < b.simulated[i]; });
    double simulated[2] = {}, ran[2] = {};
    std::string name[2];
    for (bool pipe : {false, true}) {
      const bool details = slower_to_faster[i] == 1;
      int n = 0;
      for (const Found& f : all) {
        if ((f.recipe.pipe > 1) != pipe || n == (details ? shown : 1)) continue;
        const double m = measured(f.recipe, clusters[i]);
        if (n++ == 0) simulated[pipe] = f.simulated[i], ran[pipe] = m, name[pipe] = f.recipe.str();
        if (details)
          best.push_back({f.recipe.str(), fmt::format("{:.3f}", f.simulated[i]), fmt::format("{:.3f}", m),
                          fmt::format("{:.1f}", f.gigabytes)});
      }
    }
    ratios.push_back({fmt::format("{:.1f}", clusters[i].between.bandwidth / 1e9), name[0], name[1],
                      fmt::format("{:.3f}", simulated[0] / simulated[1]), fmt::format("{:.3f}", ran[0] / ran[1])});
  }
  fmt::print("\nThe best on the file's links:\n{}", table(best));
  fmt::print("\nSpeed with a pipeline / without, by the bandwidth between nodes:\n{}", table(ratios));
}
