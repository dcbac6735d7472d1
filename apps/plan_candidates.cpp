// `stretto plan --candidates LIST.tsv`: exactly these configurations, in their order. Columns are keys of runs; `id`
// passes through.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "plan_run.h"
#include "stretto/base/text.h"
#include "stretto/config/describe.h"
#include "stretto/formats/tsv.h"
#include "stretto/plan/explain.h"
#include "stretto/run/measured_runs.h"

namespace stretto::app {
namespace {

constexpr const char* what_a_list_is =
    "its first line has keys of runs with tabs between, e.g. id, pipe, tensor, microbatches, model.layers";

// "pipe" is parallel.pipe; "" where there is no such key.
std::string key_of(const std::string& column, const std::vector<std::string>& known) {
  const auto is_known = [&](const std::string& key) {
    return std::find(known.begin(), known.end(), key) != known.end();
  };
  if (is_known(column)) return column;
  for (const std::string& key : searched_keys())
    if (key.substr(key.find('.') + 1) == column) return key;
  const std::string key = "parallel." + column;
  return is_known(key) ? key : "";
}

// The keys of all columns, "id" as it is.
std::vector<std::string> keys_of_columns(const TsvTable& table, const std::string& path) {
  const std::string where = fmt::format("{}:1", path);
  std::vector<std::string> known, all;
  for (const KeyInfo& k : all_keys()) known.push_back(k.name);
  for (const std::string& column : table.columns) {
    const std::string key = column == "id" ? column : key_of(column, known);
    if (key.empty()) {
      std::vector<std::string> names = known;
      for (const std::string& name : searched_keys()) names.push_back(name.substr(name.find('.') + 1));
      const auto near = nearest(column, names);
      throw Error(where, "the column '{}' is no key of a run", column)
          .hint("{}", near ? fmt::format("did you mean '{}'?", *near) : what_a_list_is);
    }
    if (std::find(all.begin(), all.end(), key) != all.end())
      throw Error(where, "two columns are {}", key).hint("leave one of them out");
    all.push_back(key);
  }
  return all;
}

struct Candidate {
  std::string id, refused;
  std::optional<RunConfig> run;  // unless it is refused
  std::string row = {};          // what is printed of it, once it is scored
};

Candidate read_candidate(const TsvRow& row, const std::vector<std::string>& keys, const RunFile& file,
                         std::vector<std::string> settings) {
  Candidate c;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::string value = row.cell(i);
    if (keys[i] == "id") c.id = value;
    if (keys[i] != "id" && !value.empty()) settings.push_back(fmt::format("--{}={}", keys[i], value));
  }
  if (row.cells.size() != keys.size()) {
    c.refused = fmt::format("{} values for {} columns", row.cells.size(), keys.size());
    return c;
  }
  try {
    const RunConfig run = read_run(file.file, settings);
    keys_of_run(run);  // refuses what is not planned
    if (run.searched.empty())
      c.run = run;
    else
      c.refused = fmt::format("'{}' is open", run.searched.front());
  } catch (const Error& e) {
    c.refused = e.faults().front().what;
  }
  return c;
}

std::vector<Candidate> read_candidates(const std::string& path, const RunFile& file, const CLI::App& command) {
  file.read_open(command);  // what is wrong with the run is not wrong with each of them
  const TsvTable table = read_tsv(path, what_a_list_is);
  const std::vector<std::string> keys = keys_of_columns(table, path);
  if (table.rows.empty())
    throw Error(path, "there is no candidate in it").hint("a row for each configuration, below the line of keys");
  std::vector<Candidate> all;
  for (const TsvRow& row : table.rows) {
    all.push_back(read_candidate(row, keys, file, command.remaining()));
    if (all.back().id.empty()) all.back().id = fmt::format("{}", all.size());
  }
  return all;
}

// Candidates of one model, batch and number of ranks are scored together.
std::string problem_key(const RunConfig& run) {
  return fmt::format("{}\n{}", keys_of_run(run).ranks(), resolved_toml(with_keys(run, {})));
}

void score_together(std::vector<Candidate>& all, const std::vector<std::size_t>& members, const PlanArguments& a) {
  const RunConfig& first = *all[members.front()].run;
  const ClusterFile cluster = cluster_of(a, first);
  const Stack& stack = cluster.cluster.stack;
  const PlanProblem problem =
      problem_of(as_stack_has_it(with_keys(first, {}), stack), cluster, keys_of_run(first).ranks());
  check_ranks(problem.cluster, problem.ranks);
  std::vector<RunKeys> keys;
  for (const std::size_t i : members) keys.push_back(keys_of_run(as_stack_has_it(*all[i].run, stack)));
  PlanOptions options{.quick = a.quick};
  options.each = on_all_cores();
  const std::vector<Planned> scored = score(problem, keys, options);
  const double flops = model_flops(problem), room = problem.cluster.memory * first.plan.memory;
  for (std::size_t n = 0; n < members.size(); ++n) {
    const Planned& x = scored[n];
    Candidate& c = all[members[n]];
    c.refused = !x.refused.empty() ? x.refused : x.bytes > room ? "does not fit" : "";
    if (x.refused.empty()) c.row = plain_row(problem, flops, members[n] + 1, x);
  }
}

}  // namespace

void score_candidates(const RunFile& file, const PlanArguments& a, const CLI::App& command) {
  std::vector<Candidate> all = read_candidates(a.candidates, file, command);
  std::map<std::string, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].run) groups[problem_key(*all[i].run)].push_back(i);
  for (const auto& [key, members] : groups) score_together(all, members, a);
  const std::string header = plain_header(), nothing(std::count(header.begin(), header.end(), '\t'), '\t');
  fmt::print("id\t{}\trefused\n", header);
  for (const Candidate& c : all) fmt::print("{}\t{}\t{}\n", c.id, c.row.empty() ? nothing : c.row, c.refused);
}

}  // namespace stretto::app
