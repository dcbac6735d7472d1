// `stretto plan --candidates LIST.tsv`: exactly these configurations, in their order. Columns are keys of runs; `id`
// passes through.
#include <fmt/format.h>

#include <map>
#include <sstream>

#include "plan_run.h"
#include "stretto/base/text.h"
#include "stretto/formats/mapped_file.h"
#include "stretto/plan/explain.h"
#include "stretto/train/measured_runs.h"

namespace stretto::app {
namespace {

std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> all;
  std::stringstream in(line);
  for (std::string cell; std::getline(in, cell, '\t');) all.push_back(cell);
  return all;
}

// "pipe" is parallel.pipe.
std::string key_of(const std::string& column) {
  if (column.find('.') != column.npos) return column;
  for (const std::string& key : searched_keys())
    if (key.substr(key.find('.') + 1) == column) return key;
  return "parallel." + column;
}

const std::string nothing(18, '\t');  // the columns of a candidate that cannot be

struct Candidate {
  std::string id, refused;
  std::optional<RunConfig> run;
};

std::vector<Candidate> read_candidates(const std::string& path, const RunFile& file, const CLI::App& command) {
  std::stringstream in{std::string(MappedFile(path).text())};
  std::string line;
  if (!std::getline(in, line)) throw Error(path, "is empty").hint("its first line has keys, e.g. id, pipe, tensor");
  const std::vector<std::string> columns = cells(line);
  std::vector<Candidate> all;
  while (std::getline(in, line)) {
    if (line.empty()) continue;
    const std::vector<std::string> values = cells(line);
    Candidate c{.id = fmt::format("{}", all.size() + 1)};
    std::vector<std::string> settings = command.remaining();
    for (std::size_t i = 0; i < columns.size() && i < values.size(); ++i) {
      if (columns[i] == "id") c.id = values[i];
      if (columns[i] != "id" && !values[i].empty())
        settings.push_back(fmt::format("--{}={}", key_of(columns[i]), values[i]));
    }
    if (values.size() != columns.size()) {
      c.refused = fmt::format("{} values for {} columns", values.size(), columns.size());
    } else {
      try {
        c.run = read_run(file.file, settings);
        if (!c.run->searched.empty()) c.refused = fmt::format("'{}' is open", c.run->searched.front());
      } catch (const Error& e) {
        c.refused = e.faults().empty() ? e.what() : e.faults().front().what;
      }
    }
    all.push_back(std::move(c));
  }
  return all;
}

// Candidates of one model, batch and number of ranks are scored together.
std::string problem_key(const RunConfig& run) {
  return fmt::format("{}\n{}", keys_of_run(run).ranks(), resolved_toml(with_keys(run, {})));
}

}  // namespace

void score_candidates(const RunFile& file, const PlanArguments& a, const CLI::App& command) {
  const std::vector<Candidate> all = read_candidates(a.candidates, file, command);
  std::map<std::string, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].refused.empty()) groups[problem_key(*all[i].run)].push_back(i);
  std::vector<std::string> rows(all.size());
  for (const auto& [key, members] : groups) {
    const RunConfig& read = *all[members.front()].run;
    const RunKeys first = keys_of_run(read);
    const ClusterFile cluster = cluster_of(a, read);
    const RunConfig run = as_stack_has_it(read, cluster.cluster.stack);
    const PlanProblem problem = problem_of(run, cluster, first.ranks());
    check_ranks(problem.cluster, problem.ranks);
    std::vector<RunKeys> keys;
    for (const std::size_t i : members) keys.push_back(keys_of_run(*all[i].run));
    PlanOptions options{.quick = a.quick};
    options.each = on_all_cores();
    const std::vector<Planned> scored = score(problem, keys, options);
    const double flops = Predictor(problem).flops();
    for (std::size_t n = 0; n < members.size(); ++n) {
      const Planned& x = scored[n];
      const double room = problem.cluster.memory * run.plan.memory;
      rows[members[n]] = x.refused.empty()
                             ? plain_row(problem, flops, n + 1, x) + (x.bytes > room ? "\tdoes not fit" : "\t")
                             : nothing + "\t" + x.refused;
    }
  }
  fmt::print("id\t{}\trefused\n", plain_header());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string& id = all[i].id;
    if (all[i].refused.empty())
      fmt::print("{}\t{}\n", id, rows[i]);
    else
      fmt::print("{}\t{}\t{}\n", id, nothing, all[i].refused);
  }
}

}  // namespace stretto::app
