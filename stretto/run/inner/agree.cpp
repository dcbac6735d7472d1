#include "stretto/run/inner/agree.h"

#include <map>
#include <sstream>

#include "stretto/base/hash.h"
#include "stretto/formats/mapped_file.h"

namespace stretto {
namespace {

constexpr int most_per_rank = 4;

u64 hash_of_rows(const Rows& r) {
  u64 h = hash_bytes(r.ids.data(), r.ids.size() * sizeof r.ids[0], 0);
  return hash_bytes(r.targets.data(), r.targets.size() * sizeof r.targets[0], h);
}

std::map<std::string, std::string> lines_of(const std::string& text) {
  std::map<std::string, std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    if (const std::size_t at = line.find(" = "); at != std::string::npos)
      lines[line.substr(0, at)] = line.substr(at + 3);
  return lines;
}

// "section.key = value" of every key that is set; `only`: of one section.
std::string settings_of(const RunConfig& config, std::string_view only = {}) {
  RunConfig c = config;
  c.log = {};  // where a rank writes is its own affair
  std::istringstream toml(resolved_toml(c));
  std::string section, text;
  for (std::string line; std::getline(toml, line);) {
    if (line.starts_with('['))
      section = line.substr(1, line.find(']') - 1) + ".";
    else if (!line.empty() && section.starts_with(only))
      text += section + line + "\n";
  }
  return text;
}

}  // namespace

std::string data_description(const RunConfig& config) { return settings_of(config, "data."); }

std::string description(const RunConfig& config, const Prepared& p, i64 steps_done) {
  const MappedFile executable("/proc/self/exe");
  std::string text =
      fmt::format("executable = {:016x}\n", hash_bytes(executable.text().data(), executable.text().size(), 0));
  text += fmt::format("program = {:016x}\n", p.compiled.program->hash());
  text += fmt::format("steps done before = {}\n", steps_done);
  const TrainingRows rows(p.corpus, p.rows);
  text += fmt::format("data = {} tokens; the first and the last batch have hashes {:016x} and {:016x}\n",
                      p.corpus.training_tokens(), hash_of_rows(rows.at(1)), hash_of_rows(rows.at(config.train.steps)));
  return text + settings_of(config);
}

std::vector<Fault> disagreements(const std::vector<std::string>& all) {
  std::vector<Fault> faults;
  const auto expected = lines_of(all[0]);
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    const auto mine = lines_of(all[rank]);
    auto both = mine;
    both.insert(expected.begin(), expected.end());
    int said = 0;
    for (const auto& [name, value] : both) {
      const auto a = mine.find(name), b = expected.find(name);
      const std::string is = a == mine.end() ? "not set" : a->second, was = b == expected.end() ? "not set" : b->second;
      if (is == was || ++said > most_per_rank) continue;
      faults.push_back(fault(fmt::format("rank {}", rank),
                             "start all ranks with the same executable, run file and data",
                             "{} is {}, and on rank 0 it is {}", name, is, was));
    }
  }
  return faults;
}

void agree(Peers& peers, const std::string& description) { refuse(disagreements(peers.gather(description))); }

}  // namespace stretto
