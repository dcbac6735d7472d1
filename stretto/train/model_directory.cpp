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
  m.merge_adapters();
  for (const ManifestFile& f : c.manifest().extras)
    m.extras.push_back({f.name, std::string(MappedFile(c.path() / f.name).text())});
  return m;
}

}  // namespace

void StoredModel::merge_adapters() {
  if (!config.lora) return;
  adapter = PeftAdapter{.lora = *config.lora};
  for (const AdapterSpec& s : adapter_specs(config))
    for (const ParamSpec* p : {&s.a, &s.b})
      if (const auto it = weights.find(p->name); it != weights.end()) adapter->weights.insert(*it);
  weights = merged(config, std::move(weights));
  config.lora.reset();
}

std::vector<Snapshot::Extra> extras_of(const fs::path& directory) {
  std::vector<Snapshot::Extra> all;
  for (const std::string_view name : extra_names)
    if (is_there(directory / name))
      all.push_back({std::string(name), std::string(MappedFile(directory / name).text())});
  return all;
}

namespace {

StoredModel from_peft(const fs::path& directory, const fs::path& given) {
  const std::string named = read_peft_config(directory).base;
  const fs::path base = given.empty() ? fs::path(named) : given;
  if (base.empty() || !is_folder(base))
    throw Error(directory.string(), "is an adapter of '{}', which is no directory here", base.string())
        .hint("name the directory of the model that it belongs to: --base DIR");
  if (is_peft(base))
    throw Error(directory.string(), "is an adapter of '{}', which is an adapter itself", base.string())
        .hint("merge that one first: stretto convert {} DIR", base.string());
  StoredModel m = load_model(base);
  const DType dtype = m.weights.empty() ? f32 : m.weights.begin()->second.dtype;
  PeftAdapter adapter = load_peft(directory, m.config, dtype);
  m.config.lora = adapter.lora;
  m.weights.merge(adapter.weights);
  m.merge_adapters();
  m.path = directory;
  m.notes.push_back(fmt::format("base     {}", base.string()));
  for (Snapshot::Extra& e : extras_of(directory)) {  // a tokenizer that was saved with it
    std::erase_if(m.extras, [&](const Snapshot::Extra& old) { return old.name == e.name; });
    m.extras.push_back(std::move(e));
  }
  return m;
}

}  // namespace

StoredModel load_model(const fs::path& directory, const fs::path& base) {
  if (!is_folder(directory))
    throw Error(directory.string(), "is not a directory")
        .hint("give a Hugging Face directory, a checkpoint or a run directory");
  if (is_peft(directory)) return from_peft(directory, base);
  if (!base.empty())
    throw Error(directory.string(), "is no adapter, and a base is given: '{}'", base.string())
        .hint("leave it out, or name a directory with {}", peft_config_name);
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

void export_peft(const fs::path& directory, const StoredModel& m, const std::string& base, FileType stored) {
  if (!m.adapter)
    throw Error("peft", "{} has no adapters", m.path.string()).hint("train them: finetune.lora, see docs/finetune.md");
  ModelConfig config = m.config;
  config.lora = m.adapter->lora;
  save_peft(directory, {.config = config, .weights = m.adapter->weights, .base = base, .stored = stored});
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
