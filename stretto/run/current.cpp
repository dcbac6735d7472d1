#include "stretto/run/current.h"

#include <algorithm>

#include "stretto/formats/mapped_file.h"
#include "stretto/saved/resume.h"
#include "stretto/tokenize/tokenizer.h"

namespace stretto {
namespace {

bool has_averages(const Trainer& t) {
  const auto& states = t.compiled().optimizer.state;
  return std::find(states.begin(), states.end(), ema_state) != states.end();
}

using Extras = std::vector<Snapshot::Extra>;

void put(Extras& all, Snapshot::Extra e) {
  std::erase_if(all, [&](const Snapshot::Extra& old) { return old.name == e.name; });
  all.push_back(std::move(e));
}

// Instead of those beside the weights. In a directory as libraries write it the other files belong to it too.
void take_tokenizer(Extras& all, const std::filesystem::path& file) {
  const std::string name = file.extension() == ".model" ? "tokenizer.model" : "tokenizer.json";
  const auto of_model = [](const Snapshot::Extra& e) { return e.name == "generation_config.json"; };
  const bool library = file.filename() == name;
  std::erase_if(all, [&](const Snapshot::Extra& e) {
    return library ? !of_model(e) : e.name == "tokenizer.json" || e.name == "tokenizer.model";
  });
  if (!library) return put(all, {name, std::string(MappedFile(file).text())});
  for (Snapshot::Extra& e : stretto::extras_of(file.parent_path()))
    if (!of_model(e)) put(all, std::move(e));
}

// What lies beside the weights a run started from, with the tokenizer of its data.
Extras extras_of(const RunConfig& c) {
  Extras all;
  if (!c.model.from.empty()) all = stretto::extras_of(std::filesystem::path(c.model.from));
  if (c.data.tokenizer != "bytes" && c.data.tokenizer != "none") take_tokenizer(all, tokenizer_file(c.data.tokenizer));
  if (!c.data.chat_template.empty())
    put(all, {"chat_template.jinja", std::string(MappedFile(c.data.chat_template).text())});
  return all;
}

}  // namespace

BesideTensors beside_tensors(const RunConfig& c) { return {checkpoint_config(c), extras_of(c)}; }

StoredModel current_model(const Trainer& trainer, const RunConfig& config, bool wanted) {
  StoredModel m{.config = model_config_of(config)};
  const bool averages = has_averages(trainer);
  for (const CompiledParam& p : trainer.compiled().params) {
    const bool averaged = averages && p.trained();
    Array a = averaged ? trainer.state(p.name, ema_state) : trainer.parameter(p.name);
    if (wanted) m.weights.emplace(p.name, std::move(a));
  }
  if (wanted) m.merge_adapters();
  return m;
}

void start_averages(Trainer& trainer) {
  if (!has_averages(trainer)) return;
  for (const CompiledParam& p : trainer.compiled().params)
    if (p.trained()) trainer.set_state(p.name, ema_state, trainer.parameter(p.name));
}

}  // namespace stretto
