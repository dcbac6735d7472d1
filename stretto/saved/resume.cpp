#include "stretto/saved/resume.h"

#include "stretto/base/files.h"
#include "stretto/base/text.h"
#include "stretto/formats/atomic_file.h"
#include "stretto/formats/fields.h"
#include "stretto/saved/run_lock.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;

// What must stay: the weights' meaning, and what the order of the data hangs on.
bool must_stay(const std::string& section, const std::string& key) {
  if (section == "model") return key != "from" && key != "hf_as" && key.find("dropout") == std::string::npos;
  if (section == "finetune") return key != "adapter";
  if (section == "train") return key == "seed" || key == "batch";
  return section == "optimizer" && key == "name";
}

bool holds_nothing(const fs::path& directory) {
  const std::vector<fs::path> entries = entries_of(directory);
  return !is_there(directory) || (entries.empty() && is_folder(directory)) ||
         (entries.size() == 1 && entries[0].filename() == RunLock::file_name);
}

// A run that was killed early may have left a file that was being written and nothing else.
bool holds_a_run(const fs::path& directory) {
  if (is_there(directory / "config.toml")) return true;
  for (const fs::path& entry : entries_of(directory))
    if (!is_unfinished(entry) && entry.filename() != RunLock::file_name) return false;
  return true;
}

// As a shell reads it.
std::string in_quotes(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// By its manifest only: what is read again when the run goes on.
std::optional<fs::path> newest_of(const fs::path& checkpoints) {
  try {
    for (const fs::path& path : checkpoints_in(checkpoints))
      if (is_checkpoint(path)) return path;
  } catch (const Error&) {  // it is an error already that leads here
  }
  return std::nullopt;
}

std::string text_of(const Field* f) { return !f ? "not set" : f->table() ? write_json(*f) : f->str(); }
std::string whole_text_of(const Field* f) { return f ? write_json(*f) : "not set"; }

// One key of a section, as it was and as it is; null: it was, or is, not set.
struct Setting {
  std::string section, key;
  const Field *was, *is;
};

std::vector<Setting> settings_of_both(const Field& before, const Field& after) {
  const auto value = [](const Field& all, const std::string& section, const std::string& key) {
    const Field* table = all.find(section);
    return table ? table->find(key) : nullptr;
  };
  std::vector<Setting> both;
  for (const Field* all : {&after, &before})
    for (const auto& [section, table] : *all->table()) {
      if (!table.table()) continue;
      for (const auto& [key, unused] : *table.table())
        if (all == &after || !value(after, section, key))
          both.push_back({section, key, value(before, section, key), value(after, section, key)});
    }
  return both;
}

std::optional<Fault> compare(const Setting& s, std::vector<std::string>& notes) {
  if (s.section == "log" || s.section == "checkpoint") return std::nullopt;
  std::string was = text_of(s.was), is = text_of(s.is);
  if (was == is) was = whole_text_of(s.was), is = whole_text_of(s.is);  // long ones are cut for messages
  if (was == is) return std::nullopt;
  const std::string name = s.section + "." + s.key, what = fmt::format("{} is {} and was {}", name, is, was);
  if (must_stay(s.section, s.key))
    return Fault{"resume", what, s.was ? fmt::format("continue with --{}={}", name, was) : "continue without " + name};
  // f32 is what runs in bf16 have of parameters, too: only what comes from f64 loses anything.
  const bool type = name == "train.dtype", rounds = type && was.find(name_of(f64)) != std::string::npos;
  if (s.section == "data" || type || name == "optimizer.state")
    notes.push_back("note: " + what + (rounds ? ": parameters and states are rounded to f32" : ""));
  return std::nullopt;
}

void compare(RunConfig& now, const Checkpoint& c, std::vector<std::string>& notes) {
  const Field before = read_toml(c.manifest().config, "checkpoint");
  // What was settled when the run started, unless something else is asked for.
  for (const auto& [key, value] : {std::pair("date", &now.data.date), {"hash", &now.data.hash}})
    if (const Field* data = before.find("data"); data && value->empty())
      if (const Field* was = data->find(key)) *value = std::get<std::string>(was->value);
  const Field after = read_toml(checkpoint_config(now), "run");
  const Field usual = read_toml(checkpoint_config({}), "defaults");
  std::vector<Fault> faults;
  for (const Setting& s : settings_of_both(before, after)) {
    // A key that there was not yet when the checkpoint was written meant what its default means.
    const Field* section = usual.find(s.section);
    if (const Field* otherwise = section ? section->find(s.key) : nullptr; !s.was && s.is && otherwise)
      if (whole_text_of(otherwise) == whole_text_of(s.is)) continue;
    if (std::optional<Fault> f = compare(s, notes)) faults.push_back(std::move(*f));
  }
  refuse(std::move(faults));
}

}  // namespace

std::string checkpoint_config(const RunConfig& config) {
  RunConfig c = config;
  c.model.from.clear();
  c.model.hf_as.clear();
  c.finetune.adapter.clear();
  return resolved_toml(c);
}

ModelConfig model_config_of(const Checkpoint& c) {
  const std::string where = (c.path() / manifest_name).string() + ", config";
  const Field all = read_toml(c.manifest().config, where);
  Field model{Field::Table{}};
  for (const char* name : {"model", "finetune"})
    if (const Field* section = all.find(name)) model.set(name, *section);
  if (const Field* section = model.find("model"); section && section->find("graph"))
    throw Error(c.path().string(), "is of a model that is a graph, and not of a family's")
        .hint("in Python: load() it into a Trainer of that module; export() or to_torch() give its values");
  return model_config_of(parse_run(write_toml(model), where));
}

std::string advice_after(const BrokenOff& run) {
  const bool plain = run.directory.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                         "_-./+,:@%") == std::string::npos;
  std::string command = fmt::format("train --resume={}", plain ? run.directory : in_quotes(run.directory));
  command = run.ranks > 1 ? fmt::format("{} -n {} -- {}", run.launcher, run.ranks, command) : "stretto " + command;
  const std::optional<fs::path> newest = newest_of(fs::path(run.directory) / "checkpoints");
  return newest ? fmt::format("the newest checkpoint is {}; to go on from it: {}", newest->string(), command)
                : fmt::format("there is no checkpoint yet; to begin again: {}", command);
}

fs::path directory_to_go_on_in(const RunConfig& config, const std::string& from) {
  if (from.empty()) return config.log.dir;
  return is_checkpoint(from) ? fs::path() : fs::path(from);
}

std::optional<Resumed> find_checkpoint(RunConfig& config, const std::string& from) {
  if (!from.empty() && is_checkpoint(from)) {
    Resumed r{.checkpoint = Checkpoint(from), .same_directory = false};
    compare(config, *r.checkpoint, r.notes);
    return r;
  }
  if (!from.empty()) {
    if (!is_folder(from))
      throw Error("resume", "there is no directory '{}'", from).hint("give a run directory or one of its checkpoints");
    config.log.dir = from;
  }
  if (config.log.dir.empty())
    throw Error("resume", "it is not said which run to continue")
        .hint("give its directory: --resume=DIR, or --resume with --log.dir=DIR");
  const fs::path directory = config.log.dir;
  if (from.empty() && holds_nothing(directory)) return std::nullopt;
  Newest newest = newest_checkpoint(directory / "checkpoints");
  if (!newest.checkpoint && !newest.damaged.empty())
    throw Error("resume", "no checkpoint in '{}' is whole: {}", config.log.dir, join(newest.damaged, "; "))
        .hint("to begin again, remove them or choose another --log.dir=DIR");
  if (!newest.checkpoint && !holds_a_run(directory))
    throw Error("resume", "'{}' is not empty and holds no run", config.log.dir)
        .hint("give the directory of a run, or a new one");
  Resumed r{.checkpoint = std::move(newest.checkpoint)};
  for (const std::string& d : newest.damaged) r.notes.push_back("damaged: " + d);
  if (r.checkpoint)
    compare(config, *r.checkpoint, r.notes);
  else
    r.notes.push_back(fmt::format("resume   '{}' has no checkpoint yet: the run begins again", config.log.dir));
  return r;
}

}  // namespace stretto
