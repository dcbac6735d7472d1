#include "stretto/saved/model_directory.h"

#include <algorithm>
#include <utility>

#include "stretto/base/files.h"
#include "stretto/formats/atomic_directory.h"
#include "stretto/formats/atomic_file.h"
#include "stretto/formats/fields.h"
#include "stretto/formats/hf_directory.h"
#include "stretto/formats/mapped_file.h"
#include "stretto/saved/resume.h"
#include "stretto/tokenize/tokenizer.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;

StoredModel from_checkpoint(const Checkpoint& c, bool ema) {
  StoredModel m{.kind = StoredModel::Kind::checkpoint, .path = c.path(), .config = model_config_of(c)};
  const auto& states = c.manifest().states;
  if (ema && std::find(states.begin(), states.end(), ema_state) == states.end())
    throw Error(c.path().string(), "has no averages of its parameters")
        .hint("leave --ema out, or train with train.ema");
  for (const std::string& name : c.parameters()) {
    const bool averaged = ema && c.tensors().contains(state_tensor(ema_state, name));
    m.weights.emplace(name, averaged ? c.state(ema_state, name) : c.parameter(name));
  }
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

namespace {

constexpr const char* generation_file = "generation_config.json";

const std::string* find_extra(const std::vector<Snapshot::Extra>& all, std::string_view name) {
  for (const Snapshot::Extra& e : all)
    if (e.name == name) return &e.text;
  return nullptr;
}

// Of a directory whose config.json is all that says them, as transformers wrote it once.
std::optional<Snapshot::Extra> ends_of_config(const fs::path& directory) {
  if (!is_there(directory / "config.json")) return std::nullopt;
  const Field config = read_json_file(directory / "config.json");
  Field ends{Field::Table{}};
  for (const char* key : {"bos_token_id", "eos_token_id"})
    if (const Field* id = config.find(key); id && !id->is_null()) ends.set(key, *id);
  if (!ends.find("eos_token_id")) return std::nullopt;
  return Snapshot::Extra{generation_file, write_json(ends, 2) + "\n"};
}

HfEnds ends_of(const std::vector<Snapshot::Extra>& extras) {
  HfEnds ends;
  if (const std::string* text = find_extra(extras, generation_file)) {
    const Field json = read_json(*text, generation_file);
    if (const Field* begin = json.find("bos_token_id")) ends.begin = *begin;
  }
  const std::vector<std::int32_t> ids = end_ids(extras);
  if (ids.size() == 1) ends.end = i64(ids[0]);
  if (ids.size() > 1) ends.end = Field::Array(ids.begin(), ids.end());
  return ends;
}

// A new directory appears when all of it is there. One that has files keeps those that are not written anew.
template <class Write>
void write_whole(const fs::path& directory, const std::vector<Snapshot::Extra>& extras, const Write& write) {
  const auto fill = [&](const fs::path& place) {
    write(place);
    for (const Snapshot::Extra& e : extras) write_file(place / e.name, e.text);
  };
  if (is_there(directory) && (!is_folder(directory) || !entries_of(directory).empty())) return fill(directory);
  AtomicDirectory whole(directory);
  fill(whole.directory());
  whole.commit();
}

}  // namespace

std::vector<Snapshot::Extra> extras_of(const fs::path& directory) {
  std::vector<Snapshot::Extra> all;
  for (const std::string_view name : extra_names)
    if (is_there(directory / name))
      all.push_back({std::string(name), std::string(MappedFile(directory / name).text())});
  if (find_extra(all, generation_file)) return all;
  if (auto ends = ends_of_config(directory)) all.push_back(std::move(*ends));
  return all;
}

std::vector<std::int32_t> end_ids(const std::vector<Snapshot::Extra>& extras) {
  std::vector<std::int32_t> ids;
  const auto add = [&](const Field& f) {
    if (const i64* id = std::get_if<i64>(&f.value)) ids.push_back(std::int32_t(*id));
  };
  if (const std::string* text = find_extra(extras, generation_file)) {
    const Field json = read_json(*text, generation_file);
    const Field* end = json.find("eos_token_id");  // a number or a list
    if (end) add(*end);
    if (end && end->array())
      for (const Field& f : *end->array()) add(f);
  }
  if (!ids.empty()) return ids;
  for (const char* name : {"tokenizer.json", "tokenizer.model"}) try {
      const std::string* text = find_extra(extras, name);
      if (!text) continue;
      if (const auto id = Tokenizer(parse_tokenizer(*text, name), name).end_of_text()) ids.push_back(*id);
      return ids;
    } catch (const Error&) {  // of a kind that is not read here, but carried along
    }
  return ids;
}

namespace {

StoredModel from_peft(const fs::path& directory, const LoadOptions& o) {
  const std::string named = read_peft_config(directory).base;
  const fs::path base = o.base.empty() ? fs::path(named) : o.base;
  if (base.empty() || !is_folder(base))
    throw Error(directory.string(), "is an adapter of '{}', which is no directory here", base.string())
        .hint("name the directory of the model that it belongs to: --base DIR");
  if (is_peft(base))
    throw Error(directory.string(), "is an adapter of '{}', which is an adapter itself", base.string())
        .hint("merge that one first: stretto convert {} DIR", base.string());
  StoredModel m = load_model(base, {.hf_as = o.hf_as});
  const DType dtype = m.weights.empty() ? f32 : m.weights.begin()->second.dtype;
  PeftAdapter adapter = load_peft(directory, m.config, dtype);
  m.config.lora = adapter.lora;
  m.weights.merge(adapter.weights);
  m.merge_adapters();
  m.base = std::exchange(m.path, directory);
  m.notes.push_back(fmt::format("base     {}", base.string()));
  for (Snapshot::Extra& e : extras_of(directory)) {  // a tokenizer that was saved with it
    std::erase_if(m.extras, [&](const Snapshot::Extra& old) { return old.name == e.name; });
    m.extras.push_back(std::move(e));
  }
  return m;
}

// f64 only where a weight is that wide: what narrower ones say is kept in f32.
DType widest_in(const fs::path& hf_directory) {
  const HfWeights weights(hf_directory);
  const auto doubles = [](const auto& named) { return named.second.type == FileType::F64; };
  return std::ranges::any_of(weights.tensors(), doubles) ? f64 : f32;
}

// Of a directory that is no model: `runs` was named instead of `runs/tales`.
std::string advice_on(const fs::path& directory) {
  for (const fs::path& entry : entries_of(directory))
    if (is_folder(entry / "checkpoints") || is_there(entry / "config.json"))
      return fmt::format("did you mean {}?", entry.string());
  return "give a Hugging Face directory, a checkpoint or a run directory";
}

}  // namespace

StoredModel load_model(const fs::path& directory, const LoadOptions& o) {
  if (!is_folder(directory))
    throw Error(directory.string(), "is not a directory")
        .hint("give a Hugging Face directory, a checkpoint or a run directory");
  if (is_peft(directory)) return from_peft(directory, o);
  if (!o.base.empty())
    throw Error(directory.string(), "is no adapter, and a base is given: '{}'", o.base.string())
        .hint("leave it out, or name a directory with {}", peft_config_name);
  if (o.hf_as.empty() && is_checkpoint(directory))
    return with_hint("the checkpoint is damaged: take another one of its run",
                     [&] { return from_checkpoint(Checkpoint(directory), o.ema); });
  if (!o.hf_as.empty() && !is_there(directory / "config.json"))
    throw Error(directory.string(), "has no config.json whose model type could count as '{}'", o.hf_as)
        .hint("leave --hf-as out");
  // A run directory, or a folder of checkpoints such as best/ of one.
  const bool run = is_folder(directory / "checkpoints");
  if (run || !checkpoints_in(directory).empty()) {
    Newest newest = newest_checkpoint(run ? directory / "checkpoints" : directory);
    std::string damaged;
    for (const std::string& d : newest.damaged) damaged += "; " + d;
    if (!newest.checkpoint)
      throw Error(directory.string(), "holds no whole checkpoint{}", damaged)
          .hint("a run writes one every checkpoint.every steps and at its end");
    StoredModel m = from_checkpoint(*newest.checkpoint, o.ema);
    for (const std::string& d : newest.damaged) m.notes.push_back("damaged: " + d);
    return m;
  }
  if (o.ema)
    throw Error(directory.string(), "is no run and no checkpoint, and only those have averages")
        .hint("leave --ema out");
  if (is_there(directory / "config.toml"))
    throw Error(directory.string(), "is a run that has no checkpoint yet")
        .hint("a run writes one every checkpoint.every steps and at its end");
  if (!is_there(directory / "config.json"))
    throw Error(directory.string(),
                "is neither a Hugging Face directory (config.json), nor a checkpoint ({}), nor a "
                "run directory (checkpoints/)",
                manifest_name)
        .hint("{}", advice_on(directory));
  HfModel hf = with_hint("is the directory whole, and is config.json that of these weights?",
                         [&] { return load_hf(directory, widest_in(directory), o.hf_as); });
  return {.path = directory,
          .config = std::move(hf.config),
          .weights = std::move(hf.weights),
          .extras = extras_of(directory)};
}

void export_hf(const fs::path& directory, const StoredModel& m, const ExportOptions& o) {
  const bool doubles = !m.weights.empty() && m.weights.begin()->second.dtype == f64;
  const SaveOptions save{.stored = o.stored.value_or(doubles ? FileType::F64 : FileType::F32),
                         .shard_bytes = o.shard_bytes,
                         .ends = ends_of(m.extras)};
  write_whole(directory, m.extras, [&](const fs::path& place) { save_hf(place, m.config, m.weights, save); });
}

void export_peft(const fs::path& directory, const StoredModel& m, const std::string& base, FileType stored) {
  if (!m.adapter)
    throw Error("peft", "{} has no adapters", m.path.string()).hint("train them: finetune.lora, see docs/finetune.md");
  ModelConfig config = m.config;
  config.lora = m.adapter->lora;
  write_whole(directory, m.extras, [&](const fs::path& place) {
    save_peft(place, {.config = config, .weights = m.adapter->weights, .base = base, .stored = stored});
  });
}

void import_checkpoint(const fs::path& path, const StoredModel& m) {
  RunConfig run;
  run.model.config = m.config;
  if (!m.weights.empty() && m.weights.begin()->second.dtype == f64) run.train.dtype = f64;
  Snapshot s{.seed = u64(run.train.seed), .config = checkpoint_config(run), .extras = m.extras};
  for (const auto& [name, value] : m.weights) s.tensors.push_back({parameter_tensor(name), value});
  write_checkpoint(path, s);
}

}  // namespace stretto
