#include "stretto/comm/world.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <set>

#include "stretto/base/error.h"
#include "stretto/base/text.h"

extern char** environ;

namespace stretto {
namespace {

constexpr int most_processes = 1 << 20;

struct LauncherVariables {
  const char *rank, *size;
};
constexpr LauncherVariables torchrun_variables{"RANK", "WORLD_SIZE"};
constexpr LauncherVariables known_launchers[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                                 {"PMI_RANK", "PMI_SIZE"},
                                                 {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};

// None: the text is not such a number.
std::optional<int> number_from(int least, const std::string& text) {
  int n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && n >= least && n <= most_processes ? std::optional(n) : std::nullopt;
}

int number(const Environment& e, const char* name, int least, std::string_view what, std::string_view hint) {
  const std::string& text = e.at(name);
  const std::optional<int> n = number_from(least, text);
  if (!n) throw Error("ranks", "the environment has {} = '{}', which is no {}", name, text, what).hint("{}", hint);
  return *n;
}

int number(const Environment& e, const char* name) {
  return number(e, name, 0, "rank and no number of processes", "unset it, or start the run with mpirun or srun");
}

// None unless both variables are there.
std::optional<World> read(const Environment& e, const LauncherVariables& s) {
  if (!e.contains(s.rank) || !e.contains(s.size)) return {};
  World w{number(e, s.rank), number(e, s.size), fmt::format("{}, {}", s.rank, s.size)};
  if (w.size < 1 || w.rank >= w.size)
    throw Error("ranks", "the environment has {} = {} and {} = {}", s.rank, w.rank, s.size, w.size)
        .hint("ranks count from 0: unset both, or start the run with mpirun or srun");
  return w;
}

// Only one of the two was set by hand: every process would believe that it is alone. Of a launcher's own variables, one
// without the other means nothing, like Slurm's outside of srun.
void refuse_half(const Environment& e, const LauncherVariables& s) {
  if (e.contains(s.rank) == e.contains(s.size)) return;
  const char *there = e.contains(s.rank) ? s.rank : s.size, *missing = e.contains(s.rank) ? s.size : s.rank;
  if (there == s.size && number(e, there) == 1) return;
  throw Error("ranks", "the environment has {} = '{}' and no {}", there, e.at(there), missing)
      .hint("set both or unset both, or start the run with mpirun or srun");
}

std::string range(int first, int last) {
  return first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
}

}  // namespace

Environment environment() {
  Environment e;
  for (char** v = environ; *v; ++v) {
    const std::string_view text = *v;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos) e.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return e;
}

World find_world(const Environment& e, const WorldFlags& flags) {
  refuse_half(e, torchrun_variables);
  std::vector<World> all;
  if (const auto w = read(e, torchrun_variables)) all.push_back(*w);
  for (const LauncherVariables& s : known_launchers)
    if (const auto w = read(e, s)) {
      all.push_back(*w);
      break;
    }
  for (const World& w : all) {
    if (flags.rank && *flags.rank != w.rank)
      throw Error("ranks", "the command line says rank {}, and {} say {} of {}", *flags.rank, w.source, w.rank, w.size)
          .hint("leave --rank away");
    if (flags.size && *flags.size != w.size)
      throw Error("ranks", "the command line says {} ranks, and {} say {}", *flags.size, w.source, w.size)
          .hint("start as many processes as there are ranks: mpirun -n {}", *flags.size);
    if (w.rank != all[0].rank || w.size != all[0].size)
      throw Error("ranks", "{} say rank {} of {}, and {} say {} of {}", all[0].source, all[0].rank, all[0].size,
                  w.source, w.rank, w.size)
          .hint("start the run with one launcher, or unset the variables of the other");
  }
  if (all.empty() && flags.size.value_or(1) > 1)
    throw Error("ranks", "the command line says {} ranks, and no launcher has started this process", *flags.size)
        .hint("stretto launch -n {0} -- ..., or mpirun -n {0} stretto ...", *flags.size);
  if (all.empty() && flags.rank && (*flags.rank != 0 || flags.size != 1))
    throw Error("ranks", "the command line says rank {}, and no launcher has started this process", *flags.rank)
        .hint("leave --rank away, or start the run with stretto launch or mpirun");
  return all.empty() ? World{} : all[0];
}

int ranks_per_node(const Environment& e) {
  constexpr const char* name = "STRETTO_RANKS_PER_NODE";
  return e.contains(name) ? number(e, name, 1, "number of processes", "unset it, or give at least 1") : 0;
}

void check_world(const World& w, const Mesh& mesh) {
  if (mesh.ranks() == w.size) return;
  throw Error("ranks", "there are {} processes ({}), and {}", w.size, w.source,
              mesh.empty() ? "the run has one rank" : fmt::format("the mesh {} has {} ranks", mesh.str(), mesh.ranks()))
      .hint("start {}, or change [parallel] so that its sizes give {}",
            mesh.ranks() == 1 ? "one process" : fmt::format("{} processes", mesh.ranks()), w.size);
}

std::vector<int> place_ranks(std::span<const int> node_of_process) {
  // Ranks count the last axis fastest: neighbours along it are neighbours in number. Nodes come in the order of their
  // first process, so that a node's processes get consecutive ranks and process 0 stays rank 0.
  std::vector<int> first, order(node_of_process.size());
  std::map<int, int> first_of;  // per node
  for (const int node : node_of_process) first.push_back(first_of.try_emplace(node, first.size()).first->second);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return first[a] < first[b]; });
  std::vector<int> rank(order.size());
  for (int next = 0; const int process : order) rank[process] = next++;
  return rank;
}

std::string placement_str(const Mesh& mesh, std::span<const int> node_of_rank) {
  const int ranks = node_of_rank.size();
  std::vector<std::string> parts;
  for (int first = 0; first < ranks;) {
    int last = first;
    while (last + 1 < ranks && node_of_rank[last + 1] == node_of_rank[first]) ++last;
    parts.push_back(range(first, last));
    first = last + 1;
  }
  const std::size_t nodes = std::set<int>(node_of_rank.begin(), node_of_rank.end()).size();
  std::string text = fmt::format("{} processes on {} node{}", ranks, nodes, nodes == 1 ? "" : "s");
  if (nodes == 1) return text;
  text += ": ranks " + join(parts, ", ");
  std::vector<std::string> within, between;
  for (const Axis& axis : mesh) {
    if (axis.size == 1) continue;
    bool inside = true;
    for (int r = 0; r < ranks; ++r)
      for (int other : group_of(mesh, r, {axis.name})) inside = inside && node_of_rank[other] == node_of_rank[r];
    (inside ? within : between).push_back(axis.name);
  }
  if (!within.empty()) text += "; " + join(within, ", ") + " within nodes";
  if (!between.empty()) text += "; " + join(between, ", ") + " between nodes";
  return text;
}

}  // namespace stretto
