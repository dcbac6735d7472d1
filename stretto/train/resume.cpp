#include "stretto/train/resume.h"

#include "stretto/base/text.h"
#include "stretto/formats/fields.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;

// What must stay: the weights' meaning, and what the order of the data hangs on.
bool must_stay(const std::string& section, const std::string& key) {
  if (section == "model") return key != "from" && key.find("dropout") == std::string::npos;
  if (section == "train") return key == "seed" || key == "batch" || key == "dtype";
  return section == "optimizer" && key == "name";
}

std::string text_of(const Field* f) { return !f ? "not set" : f->table() ? write_json(*f) : f->str(); }

void compare(const RunConfig& now, const Checkpoint& c, std::vector<std::string>& notes) {
  const Field before = read_toml(c.manifest().config, "checkpoint"), after = read_toml(checkpoint_config(now), "run");
  std::vector<Fault> faults;
  for (const auto& [section, table] : *after.table()) {
    if (!table.table() || section == "log" || section == "checkpoint") continue;
    for (const auto& [key, value] : *table.table()) {
      const Field* old_section = before.find(section);
      const Field* old = old_section ? old_section->find(key) : nullptr;
      const std::string was = text_of(old), is = text_of(&value);
      if (was == is) continue;
      const std::string what = fmt::format("{}.{} is {} and was {}", section, key, is, was);
      if (must_stay(section, key))
        faults.push_back({"resume", what, fmt::format("continue with --{}.{}={}", section, key, was)});
      else if (section == "data")
        notes.push_back("note: " + what);
    }
  }
  refuse(std::move(faults));
}

}  // namespace

std::string checkpoint_config(const RunConfig& config) {
  RunConfig c = config;
  c.model.from.clear();
  return resolved_toml(c);
}

RunConfig config_of(const Checkpoint& c) {
  return parse_run(c.manifest().config, (c.path() / manifest_name).string() + ", config");
}

std::optional<Resumed> find_checkpoint(RunConfig& config, const std::string& from) {
  if (!from.empty() && is_checkpoint(from)) {
    Resumed r{.checkpoint = Checkpoint(from), .same_directory = false};
    compare(config, r.checkpoint, r.notes);
    return r;
  }
  if (!from.empty()) {
    if (!fs::is_directory(from))
      throw Error("resume", "there is no directory '{}'", from).hint("give a run directory or one of its checkpoints");
    config.log.dir = fs::path(from).lexically_normal().string();
  }
  if (config.log.dir.empty())
    throw Error("resume", "it is not said which run to continue")
        .hint("give its directory: --resume=DIR, or --resume with --log.dir=DIR");
  Newest newest = newest_checkpoint(fs::path(config.log.dir) / "checkpoints");
  if (!newest.checkpoint) {
    if (!newest.damaged.empty())
      throw Error("resume", "no checkpoint in '{}' is whole: {}", config.log.dir, join(newest.damaged, "; "));
    if (from.empty() && (!fs::exists(config.log.dir) || fs::is_empty(config.log.dir))) return std::nullopt;
    throw Error("resume", "'{}' holds no checkpoint", config.log.dir)
        .hint("start again in another directory, with --log.dir=DIR and checkpoint.every");
  }
  Resumed r{.checkpoint = std::move(*newest.checkpoint)};
  for (const std::string& d : newest.damaged) r.notes.push_back("damaged: " + d);
  compare(config, r.checkpoint, r.notes);
  return r;
}

}  // namespace stretto
