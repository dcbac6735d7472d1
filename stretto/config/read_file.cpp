// RUN.toml and flags -> RunConfig.
#include <algorithm>
#include <filesystem>

#include "stretto/base/files.h"
#include "stretto/config/inner/beside.h"
#include "stretto/config/inner/read.h"
#include "stretto/models/config.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;

// Keys that are searched are "auto"; what else [parallel] says holds.
void search_parallel(Field& root) {
  for (const std::string& path : searched_keys())
    if (path.starts_with("parallel.")) root.set(path, Field("auto"));
}

// `parallel = "auto"` stands for a section in which each of its keys is.
void open_section(Field& root) {
  const Field* const parallel = root.find("parallel");
  const std::string* const word = parallel ? std::get_if<std::string>(&parallel->value) : nullptr;
  if (!word || *word != "auto") return;
  root.set("parallel", Field(Field::Table{}));
  search_parallel(root);
}

// Takes keys that are "auto" out, and with `open` counts those that are not given as such.
std::vector<std::string> take_searched(Field& root, bool open) {
  std::vector<std::string> found;
  for (const std::string& path : searched_keys()) {
    const std::size_t dot = path.find('.');
    const Field* section = root.find(path.substr(0, dot));
    const Field* value = section ? section->find(path.substr(dot + 1)) : nullptr;
    const std::string* word = value ? std::get_if<std::string>(&value->value) : nullptr;
    if (word && *word == "auto") {
      Field nothing;
      nothing.source = value->source;
      root.set(path, std::move(nothing));
      found.push_back(path);
    } else if (!value && open) {
      found.push_back(path);
    }
  }
  return found;
}

RunConfig read_fields(Field root, const std::string& name, const std::vector<std::string>& overrides, bool open = false,
                      const fs::path& beside = {}) {
  open_section(root);
  for (const std::string& o : overrides) o == "--parallel=auto" ? search_parallel(root) : override_field(root, o);
  RunConfig start;
  start.log.name = name;
  start.beside = beside;
  start.searched = take_searched(root, open);
  return run_of(root, std::move(start));
}

std::string name_of_file(const std::string& file) {
  const std::string stem = std::filesystem::path(file).stem().string();
  return stem.empty() ? "run" : stem;
}

// What was named may be something else that belongs to a run: then it is said how that is given.
std::string advice_on(const fs::path& file) {
  const std::string name = file.string();
  if (std::ranges::any_of(presets(), [&](const Preset& p) { return p.name == name; }))
    return fmt::format("{0} is a preset: --model.preset={0}", name);
  if (!is_there(file)) return where_names_are();
  if (!is_folder(file)) return fmt::format("a run is a TOML file; to train on a text: --data.path={}", name);
  if (is_there(file / "config.json")) return fmt::format("to train its model: --model.from={}", name);
  if (is_there(file / "config.toml"))
    return fmt::format("to go on with its run: --resume={0}; its settings are in {0}/config.toml", name);
  return "a run is a TOML file; `stretto show config` prints one with every key";
}

Field fields_of(const fs::path& file) {
  try {
    return read_toml_file(file);
  } catch (const Error& e) {
    const bool mistake_in_run = !is_folder(file) && is_there(file) && file.extension() == ".toml";
    if (mistake_in_run || (file.is_absolute() && !is_there(file))) throw;
    throw Error(e).hint("{}", advice_on(file));
  }
}

RunConfig read_file(const fs::path& file, const std::vector<std::string>& overrides, bool open) {
  if (file.empty()) return read_fields(Field(Field::Table{}), "run", overrides, open);
  Field root = fields_of(file);
  return read_fields(look_beside(std::move(root), file), name_of_file(file), overrides, open, folder_beside(file));
}

}  // namespace

std::string advice_on_model(const std::string& name, const fs::path& beside) {
  std::string advice = "name a Hugging Face directory, or its config.json; " + where_names_are(beside);
  const fs::path path(name);
  const bool of_hub = name.find_first_of(". ~") != 0 && std::distance(path.begin(), path.end()) <= 2 &&
                      path.is_relative() && !path.has_extension();
  if (of_hub)
    advice += fmt::format("; a model of the Hub is fetched by: hf download {} --local-dir {}", name,
                          path.filename().string());
  return advice;
}

RunConfig read_run(const std::string& file, const std::vector<std::string>& overrides) {
  return read_file(file, overrides, false);
}

RunConfig read_open_run(const std::string& file, const std::vector<std::string>& overrides) {
  return read_file(file, overrides, true);
}

ParallelSection read_parallel(const std::vector<std::string>& settings, const ModelConfig& model) {
  Field root(Field::Table{});
  for (const std::string& s : settings) override_field(root, s);
  return parallel_section_of(root, model);
}

const std::vector<std::string>& searched_keys() {
  static const std::vector<std::string> all{"parallel.pipe",      "parallel.data",     "parallel.tensor",
                                            "parallel.context",   "parallel.expert",   "parallel.sequence",
                                            "parallel.zero",      "parallel.schedule", "parallel.chunks",
                                            "parallel.recompute", "train.microbatches"};
  return all;
}

RunConfig parse_run(std::string_view toml, const std::string& file, const std::vector<std::string>& overrides) {
  return read_fields(read_toml(toml, file), name_of_file(file), overrides);
}

}  // namespace stretto
