#include "stretto/models/peft.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "stretto/base/files.h"
#include "stretto/base/text.h"
#include "stretto/formats/atomic_file.h"
#include "stretto/formats/safetensors.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view peft_prefix = "base_model.model.";

bool asks_for_nothing(const Field& f) {
  if (const bool* flag = std::get_if<bool>(&f.value)) return !*flag;
  if (const std::string* word = std::get_if<std::string>(&f.value)) return *word == "none" || word->empty();
  return f.is_null() || (f.table() && f.table()->empty()) || (f.array() && f.array()->empty());
}

// Keys that change what an adapter computes, or that bring other weights along.
constexpr std::string_view refused_keys[] = {"use_rslora",
                                             "use_dora",
                                             "use_qalora",
                                             "use_bdlora",
                                             "bias",
                                             "lora_bias",
                                             "rank_pattern",
                                             "alpha_pattern",
                                             "modules_to_save",
                                             "trainable_token_indices",
                                             "target_parameters",
                                             "layer_replication",
                                             "megatron_config",
                                             "alora_invocation_tokens",
                                             "corda_config",
                                             "eva_config",
                                             "arrow_config"};

void check_keys(const Field& json, const fs::path& file) {
  std::vector<Fault> faults;
  const Field* type = json.find("peft_type");
  if (!type || type->str() != "\"LORA\"")
    faults.push_back(fault(file.string(), "only LORA is read", "peft_type is {}", type ? type->str() : "not set"));
  for (const std::string_view key : refused_keys)
    if (const Field* value = json.find(key); value && !asks_for_nothing(*value))
      faults.push_back(fault(file.string(), "merge it into the model with PEFT (merge_and_unload) and read that",
                             "'{}' is {}, which is not supported", key, value->str()));
  refuse(std::move(faults));
}

// "model.layers.0.self_attn.q_proj" of its lora_A or lora_B; empty: another name.
std::string module_in(std::string_view tensor) {
  for (const std::string_view end : {".lora_A.weight", ".lora_B.weight"})
    if (tensor.starts_with(peft_prefix) && tensor.ends_with(end))
      return std::string(tensor.substr(peft_prefix.size(), tensor.size() - peft_prefix.size() - end.size()));
  return {};
}

// The model with an adapter wherever the file has a tensor.
ModelConfig config_of(const SafeTensors& file, ModelConfig base, Lora lora) {
  std::set<std::string, std::less<>> modules;
  for (const auto& [name, tensor] : file.tensors()) modules.insert(module_in(name));
  lora.params = lora_params(base, {"all"});
  base.lora = lora;
  std::vector<std::string> there;
  for (const AdapterSpec& s : adapter_specs(base))
    if (!s.module.empty() && modules.contains(s.module)) there.push_back(s.of.name);
  base.lora->params = std::move(there);
  return base;
}

void check_tensors(const SafeTensors& file, const std::vector<AdapterSpec>& specs) {
  const std::string where = file.path().string();
  std::vector<Fault> faults;
  std::set<std::string, std::less<>> known;
  for (const AdapterSpec& s : specs)
    for (const ParamSpec* p : {&s.a, &s.b}) {
      known.insert(p->stored);
      const Array need{f32, p->stored_shape(), {}};  // printed without its type
      const StoredTensor* tensor = file.find(p->stored);
      if (!tensor)
        faults.push_back(fault(where, "", "tensor '{}' is missing", p->stored));
      else if (tensor->shape != need.sizes)
        faults.push_back(fault(where, "is it the adapter of another model, or of another rank than its config says?",
                               "tensor '{}' is {}, and the model's is {}", p->stored, tensor->str(),
                               need.str().substr(3)));
    }
  for (const auto& [name, tensor] : file.tensors())
    if (!known.contains(name))
      faults.push_back(fault(where, "is it the adapter of another model?",
                             "tensor '{}' {} is no adapter of a weight of this model", name, tensor.str()));
  refuse(std::move(faults));
}

SafeTensors weights_of(const fs::path& directory) {
  const fs::path file = directory / peft_weights_name;
  if (!is_there(file))
    throw Error(directory.string(), "holds {} and no {}", peft_config_name, peft_weights_name)
        .hint("save it with safetensors, which PEFT does by default");
  return SafeTensors(file);
}

PeftAdapter opened(const fs::path& directory, const ModelConfig& base, std::optional<DType> dtype) {
  PeftAdapter a = read_peft_config(directory);
  const SafeTensors file = weights_of(directory);
  const ModelConfig config = config_of(file, base, a.lora);
  const std::vector<AdapterSpec> specs = adapter_specs(config);
  check_tensors(file, specs);
  if (specs.empty()) throw Error(file.path().string(), "has no adapters");
  a.lora = *config.lora;
  if (!dtype) return a;
  for (const AdapterSpec& s : specs)
    for (const ParamSpec* p : {&s.a, &s.b}) a.weights.emplace(p->name, from_stored(*p, file.at(p->stored), *dtype));
  return a;
}

// Names as PEFT's target_modules has them: the last part, which is enough for it.
Field target_modules(const std::vector<AdapterSpec>& specs) {
  std::set<std::string> names;
  for (const AdapterSpec& s : specs) names.insert(s.module.substr(s.module.rfind('.') + 1));
  Field::Array all;
  for (const std::string& n : names) all.emplace_back(n);
  return Field(std::move(all));
}

// Are they all weights of their names, in all layers? Else they are listed one by one. So are those of models with
// experts, whose modules have the same names.
bool are_all(const ModelConfig& config, const std::vector<AdapterSpec>& specs) {
  if (config.experts > 0) return false;
  std::vector<std::string> names;
  for (const AdapterSpec& s : specs) names.push_back(s.module.substr(s.module.rfind('.') + 1));
  return lora_params(config, names) == config.lora->params;
}

Field peft_config(const PeftExport& e, const std::vector<AdapterSpec>& specs) {
  Field json{Field::Table{}};
  json.set("peft_type", Field("LORA"));
  json.set("task_type", Field("CAUSAL_LM"));
  json.set("base_model_name_or_path", e.base.empty() ? Field() : Field(e.base));
  json.set("r", Field(e.config.lora->rank));
  json.set("lora_alpha", Field(e.config.lora->alpha));
  json.set("lora_dropout", Field(e.config.lora->dropout));
  Field::Array each;
  for (const AdapterSpec& s : specs) each.emplace_back(s.module);
  json.set("target_modules", are_all(e.config, specs) ? target_modules(specs) : Field(std::move(each)));
  json.set("fan_in_fan_out", Field(!specs[0].of.transposed));  // GPT-2's matrices are [in, out]
  json.set("bias", Field("none"));
  json.set("inference_mode", Field(true));
  json.set("use_rslora", Field(false));
  json.set("use_dora", Field(false));
  return json;
}

}  // namespace

bool is_peft(const fs::path& directory) { return is_there(directory / peft_config_name); }

PeftAdapter read_peft_config(const fs::path& directory) {
  const fs::path file = directory / peft_config_name;
  if (!is_there(file))
    throw Error(directory.string(), "holds no {}", peft_config_name).hint("name a directory that PEFT has saved");
  const Field json = read_json_file(file);
  check_keys(json, file);
  PeftAdapter a;
  FieldReader reader(json);
  reader.need("r");
  reader.need("lora_alpha");
  reader.read("r", a.lora.rank, between(1, Lora::most_rank));
  reader.read("lora_alpha", a.lora.alpha, above(0));
  reader.read("lora_dropout", a.lora.dropout, from_below(0, 1));
  reader.read("base_model_name_or_path", a.base);
  for (const Member& m : *json.table()) reader.raw(m.key);  // the others are of no consequence, or were looked at
  reader.finish();
  return a;
}

PeftAdapter open_peft(const fs::path& directory, const ModelConfig& base) { return opened(directory, base, {}); }
PeftAdapter load_peft(const fs::path& directory, const ModelConfig& base, DType dtype) {
  return opened(directory, base, dtype);
}

void check_peft(const ModelConfig& config) {
  if (!config.lora) throw Error("peft", "the model has no adapters").hint("train them: finetune.lora");
  for (const AdapterSpec& s : adapter_specs(config))
    if (!s.refusal.empty())
      throw Error("peft", "'{}' {}", s.of.name, s.refusal)
          .hint("finetune.lora.targets = \"{}\" leaves it out; checkpoint.export writes the merged model",
                exportable_targets);
}

void save_peft(const fs::path& directory, const PeftExport& e) {
  check_peft(e.config);
  const std::vector<AdapterSpec> specs = adapter_specs(e.config);
  std::vector<std::vector<std::byte>> bytes;
  std::vector<NamedTensor> tensors;
  bytes.reserve(2 * specs.size());
  for (const AdapterSpec& s : specs)
    for (const ParamSpec* p : {&s.a, &s.b}) {
      const auto it = e.weights.find(p->name);
      if (it == e.weights.end()) throw Error("peft", "parameter '{}' is missing", p->name);
      bytes.push_back(to_stored(*p, it->second, e.stored));
      tensors.push_back({p->stored, e.stored, p->stored_shape(), bytes.back()});
    }
  make_folders(directory);
  write_safetensors(directory / peft_weights_name, tensors, {{"format", "pt"}});
  write_file(directory / peft_config_name, write_json(peft_config(e, specs), 2) + "\n");
}

}  // namespace stretto
