#include "stretto/train/model_directory.h"

#include "stretto/base/files.h"
#include "stretto/formats/atomic_file.h"
#include "stretto/formats/mapped_file.h"
#include "stretto/train/resume.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;

StoredModel from_checkpoint(const Checkpoint& c) {
  StoredModel m{.kind = StoredModel::Kind::checkpoint, .path = c.path(), .config = model_config_of(c)};
  for (const std::string& name : c.parameters()) m.weights.emplace(name, c.parameter(name));
  for (const ManifestFile& f : c.manifest().extras)
    m.extras.push_back({f.name, std::string(MappedFile(c.path() / f.name).text())});
  return m;
}

}  // namespace

std::vector<Snapshot::Extra> extras_of(const fs::path& directory) {
  std::vector<Snapshot::Extra> all;
  for (const std::string_view name : extra_names)
    if (is_there(directory / name))
      all.push_back({std::string(name), std::string(MappedFile(directory / name).text())});
  return all;
}

StoredModel load_model(const fs::path& directory) {
  if (!is_folder(directory))
    throw Error(directory.string(), "is not a directory")
        .hint("give a Hugging Face directory, a checkpoint or a run directory");
  if (is_checkpoint(directory)) return from_checkpoint(Checkpoint(directory));
  if (is_folder(directory / "checkpoints")) {
    Newest newest = newest_checkpoint(directory / "checkpoints");
    std::string damaged;
    for (const std::string& d : newest.damaged) damaged += "; " + d;
    if (!newest.checkpoint) throw Error(directory.string(), "holds no whole checkpoint{}", damaged);
    StoredModel m = from_checkpoint(*newest.checkpoint);
    for (const std::string& d : newest.damaged) m.notes.push_back("damaged: " + d);
    return m;
  }
  if (!is_there(directory / "config.json"))
    throw Error(directory.string(),
                "is neither a Hugging Face directory (config.json), nor a checkpoint ({}), nor a "
                "run directory (checkpoints/)",
                manifest_name);
  HfModel hf = load_hf(directory);
  return {.path = directory,
          .config = std::move(hf.config),
          .weights = std::move(hf.weights),
          .extras = extras_of(directory)};
}

void export_hf(const fs::path& directory, const StoredModel& m, const ExportOptions& o) {
  const bool doubles = !m.weights.empty() && m.weights.begin()->second.dtype == f64;
  save_hf(directory, m.config, m.weights, o.stored.value_or(doubles ? FileType::F64 : FileType::F32), o.shard_bytes);
  for (const Snapshot::Extra& e : m.extras) write_file(directory / e.name, e.text);
}

void import_checkpoint(const fs::path& path, const StoredModel& m) {
  RunConfig run;
  run.model.config = m.config;
  Snapshot s{.seed = u64(run.train.seed), .config = checkpoint_config(run), .extras = m.extras};
  for (const auto& [name, value] : m.weights) s.tensors.push_back({parameter_tensor(name), value});
  write_checkpoint(path, s);
}

}  // namespace stretto
