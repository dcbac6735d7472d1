// The best configurations without a pipeline against the best with one, on emulated devices and links: layers like
// GPT-3's on the accelerators of a cluster file. All are simulated, the best of each kind run as well.
//   build/bench/spmd_vs_mpmd [cluster.toml] [--section.key=value ...]
#include <fmt/format.h>

#include <algorithm>

#include "stretto/base/text.h"
#include "stretto/compile/step_time.h"
#include "stretto/cost/cluster_file.h"
#include "stretto/models/family.h"
#include "stretto/stretto.h"

using namespace stretto;

namespace {

constexpr int ranks = 16, rows = 32, seq = 2048, shown = 3;

struct Candidate {
  std::string name;
  bool pipe = false;
  Compiled compiled;
  double simulated = 0, gigabytes = 0, measured = 0;
};

std::vector<Candidate> candidates(const ClusterFile& d) {
  const ModelConfig config{
      .family = "gpt2", .layers = 16, .width = 12288, .heads = 96, .context = seq, .vocab = 51200, .tied = false};
  std::vector<Candidate> all;
  for (int pipe : {1, 4, 8})
    for (int tensor : {1, 2, 4, 8, 16})
      for (int zero : {0, 1, 2, 3}) {
        const int data = ranks / pipe / tensor;
        if (data < 1 || (data == 1 && zero > 0) || (pipe > 1 && zero > 1) || tensor > 2 * d.cluster.ranks_per_node)
          continue;
        for (const char* schedule : {"1f1b", "interleaved-1f1b", "zb-h1"})
          for (Recompute recompute : {Recompute::none, Recompute::full}) {
            if (pipe == 1 && std::string_view(schedule) != "1f1b") continue;
            const int microbatches = rows / data;  // one sequence per rank and microbatch
            Candidate c{.name = fmt::format("{}data={} tensor={}{}{}{}", pipe > 1 ? fmt::format("pipe={} ", pipe) : "",
                                            data, tensor, zero ? fmt::format(" zero={}", zero) : "",
                                            pipe > 1 ? fmt::format(" {}", schedule) : "",
                                            recompute == Recompute::full ? " recompute" : ""),
                        .pipe = pipe > 1};
            Parallel parallel{.names = {.data = data, .tensor = tensor, .sequence = tensor > 1, .zero = zero},
                              .schedule = schedule,
                              .recompute = {recompute}};
            if (pipe > 1) parallel.mesh = {{"pipe", pipe}};
            try {
              c.compiled = compile(make_model(config, rows), adamw(), {.microbatches = microbatches}, parallel);
            } catch (const Error&) {
              continue;  // what cannot be split so
            }
            for (const ActorProgram& a : c.compiled.program->actors) {
              double bytes = 0;
              for (u64 b : a.bytes) bytes += double(b);
              c.gigabytes = std::max(c.gigabytes, bytes / 1e9);
            }
            if (c.gigabytes * 1e9 > d.memory) continue;
            c.simulated = step_time(*c.compiled.program, d.cluster).seconds;
            all.push_back(std::move(c));
          }
      }
  std::sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) { return a.simulated < b.simulated; });
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  const bool given = argc > 1 && argv[1][0] != '-';
  const ClusterFile d = read_cluster(given ? argv[1] : STRETTO_SOURCE "/bench/cluster.toml",
                                     std::vector<std::string>(argv + (given ? 2 : 1), argv + argc));
  check_ranks(d, ranks);
  std::vector<Candidate> all = candidates(d);
  const std::vector<std::int32_t> ids(std::size_t(rows) * seq, 1);
  const Batch batch{{"ids", Array::of<std::int32_t>(ids, {rows, seq})},
                    {"targets", Array::of<std::int32_t>(ids, {rows, seq})}};
  std::vector<std::vector<std::string>> lines{{"configuration", "simulated s", "measured s", "GB per rank"}};
  double best_simulated[2] = {}, best_measured[2] = {};
  for (bool pipe : {false, true}) {
    int n = 0;
    for (Candidate& c : all) {
      if (c.pipe != pipe || ++n > shown) continue;
      Trainer t(c.compiled, {.cluster = d.cluster, .device = DeviceKind::emulated, .machine = d.cluster.machine});
      c.measured = std::min(t.step(batch).seconds, t.step(batch).seconds);
      const auto least = [](double& best, double x) { best = best == 0 ? x : std::min(best, x); };
      least(best_simulated[pipe], c.simulated);
      least(best_measured[pipe], c.measured);
      lines.push_back({c.name, fmt::format("{:.3f}", c.simulated), fmt::format("{:.3f}", c.measured),
                       fmt::format("{:.1f}", c.gigabytes)});
    }
  }
  fmt::print("{} configurations fit into {:.0f} GB; the best without and with a pipeline:\n{}", all.size(),
             d.memory / 1e9, table(lines));
  fmt::print("speed with a pipeline / without: simulated {:.3f}, measured {:.3f}\n",
             best_simulated[0] / best_simulated[1], best_measured[0] / best_measured[1]);
}
