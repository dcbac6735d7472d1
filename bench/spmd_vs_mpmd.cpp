// The best configuration without a pipeline against the best with one, on emulated devices and links: layers like
// GPT-3's on the accelerators of a cluster file, over links between nodes from slow to as fast as inside of one. All
// that fit are simulated with collectives in place, the best of them also with collectives beside other calls; and the
// best of each kind are run as well. What keeps each of them from being faster is shown, and what `plan` chooses of the
// same configurations.
//   build/bench/spmd_vs_mpmd [cluster.toml] [--section.key=value ...]
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <ranges>

#include "stretto/base/clock.h"
#include "stretto/base/text.h"
#include "stretto/cost/cluster_file.h"
#include "stretto/models/family.h"
#include "stretto/plan/search.h"
#include "stretto/simulate/step_time.h"
#include "stretto/stretto.h"

using namespace stretto;

namespace {

constexpr int ranks = 16, rows = 32, seq = 2048, shown = 3;
constexpr int arranged = 12;  // how many of the best with collectives in place are tried with them beside calls
constexpr int layers = 16, width = 12288, vocab = 51200;
constexpr double slower_to_faster[] = {0.25, 0.5, 1, 2, 6};  // links between nodes, times the file's bandwidth

struct Recipe {
  int pipe = 1, data = 1, tensor = 1, zero = 0;
  int sequences = 1;  // per rank and microbatch
  const char* schedule = "1f1b";
  int chunks = 0;  // stages per actor; 0: the schedule's default
  Recompute recompute = Recompute::none;

  std::string str() const {
    std::string s = pipe > 1 ? fmt::format("pipe={} ", pipe) : "";
    s += fmt::format("data={} tensor={}", data, tensor);
    if (zero) s += fmt::format(" zero={}", zero);
    if (pipe > 1) s += fmt::format(" {}", schedule);
    if (chunks) s += fmt::format(" of {}", chunks);
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
};

struct Candidate {
  Recipe recipe;
  Overlap overlap;
  std::vector<StepTime> times;  // per cluster; not tried there: none
  double gigabytes = 0;

  double seconds(std::size_t cluster) const { return times[cluster].seconds; }
  bool tried(std::size_t cluster) const { return seconds(cluster) > 0; }
  std::string str() const { return recipe.str() + (overlap == Overlap::none ? ", in place" : ""); }
};

const ModelConfig model{
    .family = "gpt2", .layers = layers, .width = width, .heads = 96, .context = seq, .vocab = vocab, .tied = false};

Compiled compiled(const Recipe& r, Overlap overlap, const Cluster& cluster, bool to_run) {
  Parallel parallel{.names = {.data = r.data, .tensor = r.tensor, .sequence = r.tensor > 1, .zero = r.zero},
                    .schedule = r.schedule,
                    .chunks = r.chunks,
                    .link = cluster.inside,
                    .recompute = {r.recompute},
                    .machine = cluster.machine,
                    .overlap = overlap,
                    .cluster = cluster,
                    .purpose = to_run ? Purpose::run : Purpose::sizes};
  if (r.pipe > 1) parallel.mesh = {{"pipe", r.pipe}};
  return compile(make_model(model, rows), adamw(), {.microbatches = rows / r.data / r.sequences}, parallel);
}

constexpr std::pair<const char*, int> schedules[] = {{"1f1b", 0},  {"interleaved-1f1b", 0}, {"interleaved-1f1b", 4},
                                                     {"zb-h1", 0}, {"interleaved-zb", 0},   {"zb-v", 0}};

std::vector<Recipe> recipes() {
  std::vector<Recipe> all;
  for (int pipe = 1; pipe <= ranks; pipe *= 2)
    for (int tensor = 1; pipe * tensor <= ranks; tensor *= 2)
      for (int zero : {0, 1, 2, 3})
        for (int sequences = 1; sequences <= 8; sequences *= 2)
          for (const auto& [schedule, chunks] : schedules)
            for (Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
              const Recipe r{pipe, ranks / pipe / tensor, tensor, zero, sequences, schedule, chunks, recompute};
              if ((r.data == 1 && zero > 0) || rows / r.data % sequences) continue;
              if (pipe == 1 && std::string_view(schedule) != "1f1b") continue;
              all.push_back(r);
            }
  return all;
}

double gigabytes(const Program& p) {
  double most = 0;
  for (const ActorProgram& a : p.actors) {
    double bytes = 0;
    for (u64 b : a.bytes) bytes += double(b);
    most = std::max(most, bytes / 1e9);
  }
  return most;
}

// What fits, over the given links.
std::optional<Candidate> candidate(const Recipe& r, Overlap overlap, const std::vector<Cluster>& clusters,
                                   double memory, std::optional<std::size_t> only = {}) {
  const Compiled c = compiled(r, overlap, clusters[only.value_or(0)], false);
  Candidate found{.recipe = r, .overlap = overlap, .gigabytes = gigabytes(*c.program)};
  if (found.gigabytes * 1e9 > memory) return std::nullopt;
  for (std::size_t i = 0; i < clusters.size(); ++i)
    found.times.push_back(!only || *only == i ? step_time(*c.program, clusters[i]) : StepTime{});
  return found;
}

// The fastest first, of those with or without a pipeline.
std::vector<const Candidate*> ranked(const std::vector<Candidate>& all, bool pipe, std::size_t cluster) {
  std::vector<const Candidate*> best;
  for (const Candidate& c : all)
    if ((c.recipe.pipe > 1) == pipe && c.tried(cluster)) best.push_back(&c);
  std::ranges::stable_sort(best, {}, [&](const Candidate* c) { return c->seconds(cluster); });
  return best;
}

std::vector<Candidate> search(const std::vector<Cluster>& clusters, double memory) {
  std::vector<Candidate> all;
  std::map<std::string, int> refused;
  int tried = 0;
  for (const Recipe& r : recipes()) {
    ++tried;
    if (r.least_bytes() > memory) continue;
    try {
      if (std::optional<Candidate> c = candidate(r, Overlap::none, clusters, memory)) all.push_back(std::move(*c));
    } catch (const Error& e) {
      ++refused[e.what()];
    }
  }
  fmt::print("{} configurations tried, {} fit into {:.0f} GB per rank\n", tried, all.size(), memory / 1e9);
  for (const auto& [why, times] : refused) fmt::print("refused {} times: {}\n", times, why);
  std::vector<Candidate> beside;
  for (std::size_t i = 0; i < clusters.size(); ++i)
    for (bool pipe : {false, true})
      for (const Candidate* c : ranked(all, pipe, i) | std::views::take(arranged))
        if (std::optional<Candidate> b = candidate(c->recipe, Overlap::calls, clusters, memory, i))
          beside.push_back(std::move(*b));
  all.insert(all.end(), beside.begin(), beside.end());
  return all;
}

double measured(Compiled compiled, const Cluster& cluster) {
  const std::vector<std::int32_t> ids(std::size_t(rows) * seq, 1);
  const Batch batch{{"ids", Array::of<std::int32_t>(ids, {rows, seq})},
                    {"targets", Array::of<std::int32_t>(ids, {rows, seq})}};
  Trainer t(std::move(compiled), {.cluster = cluster, .device = DeviceKind::emulated, .machine = cluster.machine});
  return std::min(t.step(batch).seconds, t.step(batch).seconds);
}

double measured(const Candidate& c, const Cluster& cluster) {
  return measured(compiled(c.recipe, c.overlap, cluster, true), cluster);
}

// What `plan` chooses among the same.
struct Choice {
  Planned planned;
  double measured = 0, searched = 0;  // seconds
};
Choice choice(ClusterFile file, const Cluster& cluster) {
  file.cluster = cluster;
  const PlanProblem problem{.model = complete(model),
                            .batch = rows,
                            .optimizer = adamw(),
                            .parallel = {.link = cluster.inside, .machine = cluster.machine},
                            .cluster = file,
                            .ranks = ranks};
  PlanSpace space{.context = {1},
                  .microbatches = {1, 2, 4, 8, 16, 32},
                  .recompute = {Recompute::none, Recompute::selective, Recompute::full}};
  for (const auto& [schedule, chunks] : schedules) space.schedules.push_back(schedule);
  const double start = now();
  Choice made{.planned = make_plan(problem, space).best.at(0)};
  made.searched = now() - start;
  Parallel parallel = parallel_of(problem, made.planned.keys);
  parallel.purpose = Purpose::run;
  made.measured = measured(
      compile(make_model(model, rows), problem.optimizer, training_of(problem, made.planned.keys), parallel), cluster);
  return made;
}

using Lines = std::vector<std::vector<std::string>>;
std::string number(double x) { return fmt::format("{:.3f}", x); }

// What the busiest actor does more than the mean: pieces are half layers, so stages cannot be even.
double uneven(const StepTime& t) { return t.worked - (1 - t.bubble) * t.seconds; }

// Where the time of a step goes, as simulated.
std::vector<std::string> parts(const Cluster& cluster, const Candidate& c, const StepTime& t) {
  const Spent& s = t.spent;
  const auto share = [&](double seconds) { return fmt::format("{:.1f}", 100 * seconds / t.seconds); };
  return {fmt::format("{:.1f}", cluster.between.bandwidth / 1e9),
          c.str(),
          number(t.seconds),
          share(s.products + s.attention + s.elements + s.update - uneven(t)),
          share(uneven(t)),
          share(s.bubble),
          share(s.collectives),
          share(s.messages),
          share(s.sums + s.gathers)};
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
  const std::vector<Candidate> all = search(clusters, d.memory);
  Lines best{{"configuration", "simulated s", "measured s", "GB per rank"}},
      ratios{{"GB/s between nodes", "best without a pipeline", "best with one", "simulated", "measured",
              "were stages even"}},
      choices{{"GB/s between nodes", "what plan chooses", "simulated s", "measured s", "measured / simulated",
               "best of all, simulated s", "choice / best", "search s"}},
      spent{{"GB/s", "configuration", "simulated s", "kernels %", "uneven stages", "bubble", "collectives", "messages",
             "sums, gathers"}};
  for (std::size_t i = 0; i < clusters.size(); ++i) {
    const Candidate* first[2] = {};
    double ran[2] = {};
    for (bool pipe : {false, true}) {
      const std::vector<const Candidate*> order = ranked(all, pipe, i);
      first[pipe] = order.at(0);
      ran[pipe] = measured(*order[0], clusters[i]);
      spent.push_back(parts(clusters[i], *order[0], order[0]->times[i]));
      for (int n = 0; slower_to_faster[i] == 1 && n < shown; ++n)
        best.push_back({order[n]->str(), number(order[n]->seconds(i)),
                        number(n == 0 ? ran[pipe] : measured(*order[n], clusters[i])),
                        fmt::format("{:.1f}", order[n]->gigabytes)});
    }
    ratios.push_back({fmt::format("{:.1f}", clusters[i].between.bandwidth / 1e9), first[0]->str(), first[1]->str(),
                      number(first[0]->seconds(i) / first[1]->seconds(i)), number(ran[0] / ran[1]),
                      number(first[0]->seconds(i) / (first[1]->seconds(i) - uneven(first[1]->times[i])))});
    const Choice made = choice(d, clusters[i]);
    const double least = std::min(first[0]->seconds(i), first[1]->seconds(i)), seconds = made.planned.seconds;
    choices.push_back({fmt::format("{:.1f}", clusters[i].between.bandwidth / 1e9), made.planned.keys.str(),
                       number(seconds), number(made.measured), number(made.measured / seconds), number(least),
                       number(seconds / least), fmt::format("{:.1f}", made.searched)});
  }
  fmt::print("\nThe best on the file's links:\n{}", table(best));
  fmt::print("\nSpeed with a pipeline / without, by the bandwidth between nodes:\n{}", table(ratios));
  fmt::print("\nWhat `plan` chooses of the same, against the best of all:\n{}", table(choices));
  fmt::print("\nWhere the time of the busiest actor goes, simulated, as shares of the step:\n{}", table(spent));
}
