#include <algorithm>

#include "stretto/base/files.h"
#include "stretto/base/text.h"
#include "stretto/models/hf.h"
#include "stretto/models/inner/hf_closest.h"
#include "stretto/models/inner/hf_keys.h"
#include "stretto/models/inner/hf_parts.h"

namespace stretto {
namespace {

using namespace hf;

// A model type of config.json: how it is read, and what its missing keys mean.
struct Kind {
  std::string_view name;
  void (*read)(FieldReader&, const Kind&, ModelConfig&);
  bool qkv_bias = false, qk_norm = false;  // always there
  bool windows = false;                    // layers may have a sliding window
  bool windows_off = false;                // sliding_window counts only with use_sliding_window
  bool must_say_heads = false;             // num_key_value_heads has a default of the type's own
  i64 window = 0;                          // sliding_window when it is not said
  double norm_eps = 1e-6, rope_base = 1e4;
};

constexpr std::pair<std::string_view, FileType> file_types[] = {
    {"float32", FileType::F32}, {"float64", FileType::F64}, {"bfloat16", FileType::BF16}, {"float16", FileType::F16}};

// Which layers have a window, and how wide it is.
void read_window(FieldReader& r, const Kind& type, ModelConfig& c) {
  if (!type.windows) {
    if (r.raw("sliding_window") && r.has("sliding_window"))
      r.fail_hint("sliding_window", "this type of model has no sliding window",
                  "with null every token sees all before it");
    std::string kinds;
    hf::read_layer_types(r, c.layers, kinds);
    if (kinds.find('w') != kinds.npos) r.fail("layer_types", "this type of model has no sliding window");
    return;
  }
  i64 window = type.window, from = 0;
  bool used = !type.windows_off;
  if (r.field().find("sliding_window") && !r.has("sliding_window")) window = 0;
  r.read("sliding_window", window, at_least(0));
  r.read("max_window_layers", from, at_least(0));
  if (type.windows_off) {
    r.read("use_sliding_window", used);
    must_be(r, "use_mrope", false);
  }
  std::string kinds;
  hf::read_layer_types(r, c.layers, kinds);
  if (!used) window = 0;
  if (kinds.empty() && type.windows_off && window > 0)
    for (i64 i = 0; i < c.layers; ++i) kinds += i < from ? 'f' : 'w';
  c.pattern = window > 0 ? hf::shortest_period(kinds) : "";
  c.window = c.pattern.find('w') == std::string::npos && !c.pattern.empty() ? 0 : window;
  if (c.window == 0 || c.pattern == "w") c.pattern.clear();
}

void read_gpt2(FieldReader& r, const Kind&, ModelConfig& c) {
  c.family = "gpt2";
  for (const char* key : {"n_layer", "n_embd", "n_head", "n_positions", "vocab_size"}) r.need(key);
  r.read("n_layer", c.layers);
  r.read("n_embd", c.width);
  r.read("n_head", c.heads);
  r.read("n_positions", c.context);
  r.read("vocab_size", c.vocab);
  r.read("n_inner", c.ff, at_least(1));
  c.tied = true;
  r.read("tie_word_embeddings", c.tied);
  read_activation(r, "activation_function", c);
  read_rate(r, "resid_pdrop", c.dropout, 0.1);
  read_rate(r, "embd_pdrop", c.embedding_dropout, 0.1);
  read_rate(r, "attn_pdrop", c.attention_dropout, 0.1);
  r.read("layer_norm_epsilon", c.norm_eps, above(0));
  must_be(r, "scale_attn_weights", true);
  must_be(r, "scale_attn_by_inverse_layer_idx", false);
  r.ignore({"n_ctx", "reorder_and_upcast_attn", "summary_activation", "summary_first_dropout", "summary_proj_to_labels",
            "summary_type", "summary_use_proj"});
}

void read_llama(FieldReader& r, const Kind& type, ModelConfig& c) {
  c.family = "llama";
  for (const char* key : {"num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size",
                          "max_position_embeddings", "vocab_size"})
    r.need(key);
  if (type.must_say_heads) r.need("num_key_value_heads");
  if (type.qk_norm) r.need("head_dim");
  r.read("num_hidden_layers", c.layers);
  r.read("hidden_size", c.width);
  r.read("num_attention_heads", c.heads);
  r.read("num_key_value_heads", c.kv_heads, at_least(1));
  r.read("head_dim", c.head_dim, at_least(1));
  r.read("intermediate_size", c.ff, at_least(1));
  r.read("max_position_embeddings", c.context);
  r.read("vocab_size", c.vocab);
  c.tied = false;
  r.read("tie_word_embeddings", c.tied);
  read_activation(r, "hidden_act", c);
  read_rate(r, "attention_dropout", c.attention_dropout, 0);
  c.norm_eps = type.norm_eps;
  c.rope_base = type.rope_base;
  r.read("rms_norm_eps", c.norm_eps, above(0));
  read_rope(r, c);
  read_window(r, type, c);
  if (r.read("attention_bias", c.qkv_bias)) c.out_bias = c.qkv_bias;
  c.qkv_bias = c.qkv_bias || type.qkv_bias;
  c.qk_norm = type.qk_norm;
  r.read("mlp_bias", c.mlp_bias);
  r.ignore({"pretraining_tp"});
}

void read_mixtral(FieldReader& r, const Kind& type, ModelConfig& c) {
  read_llama(r, type, c);
  c.family = "mixtral";
  r.need("num_local_experts");
  r.read("num_local_experts", c.experts, at_least(1));
  r.read("num_experts_per_tok", c.top_k, at_least(1));
  double weight = 0.001;
  bool used = false;
  r.read("router_aux_loss_coef", weight, at_least(0));
  r.read("output_router_logits", used);  // only then the loss has it
  if (used) c.balance = weight;
  c.balance_pooled = true;
  hf::no_jitter(r);
}

constexpr Kind hf_kinds[] = {
    {.name = "gpt2", .read = read_gpt2},
    {.name = "llama", .read = read_llama},
    {.name = "mistral", .read = read_llama, .windows = true, .must_say_heads = true, .window = 4096},
    {.name = "mixtral",
     .read = read_mixtral,
     .windows = true,
     .must_say_heads = true,
     .norm_eps = 1e-5,
     .rope_base = 1e6},
    {.name = "qwen2",
     .read = read_llama,
     .qkv_bias = true,
     .windows = true,
     .windows_off = true,
     .must_say_heads = true},
    {.name = "qwen3",
     .read = read_llama,
     .qk_norm = true,
     .windows = true,
     .windows_off = true,
     .must_say_heads = true},
};

// Of no consequence for what the model computes from ids.
void ignore_common(FieldReader& r) {
  r.ignore({"_name_or_path", "name_or_path", "architectures", "transformers_version", "use_cache", "return_dict",
            "torchscript", "gradient_checkpointing", "_attn_implementation", "attn_implementation",
            "_attn_implementation_autoset", "use_flash_attention_2"});
  r.ignore({"bos_token_id", "eos_token_id", "pad_token_id", "sep_token_id", "cls_token_id", "unk_token_id",
            "mask_token_id", "decoder_start_token_id", "tokenizer_class", "prefix", "is_decoder"});
  r.ignore({"output_hidden_states", "output_attentions", "use_return_dict", "chunk_size_feed_forward", "pruned_heads",
            "tie_encoder_decoder", "cross_attention_hidden_size", "use_bfloat16", "tf_legacy_loss"});
  r.ignore({"id2label", "label2id", "num_labels", "finetuning_task", "problem_type", "task_specific_params",
            "classifier_dropout", "return_dict_in_generate", "output_scores"});
  r.ignore({"max_length",
            "min_length",
            "do_sample",
            "early_stopping",
            "num_beams",
            "num_beam_groups",
            "diversity_penalty",
            "temperature",
            "top_k",
            "top_p",
            "typical_p",
            "repetition_penalty",
            "length_penalty",
            "no_repeat_ngram_size",
            "encoder_no_repeat_ngram_size",
            "bad_words_ids",
            "num_return_sequences",
            "exponential_decay_length_penalty",
            "suppress_tokens",
            "begin_suppress_tokens",
            "forced_bos_token_id",
            "forced_eos_token_id",
            "remove_invalid_values"});
  r.ignore({"auto_map"});
  must_be(r, "is_encoder_decoder", false);
  must_be(r, "add_cross_attention", false);
}

FileType read_stored(FieldReader& r) {
  std::string text = "float32";
  r.read("torch_dtype", text);
  const std::string_view key = r.read("dtype", text) ? "dtype" : "torch_dtype";  // the newer name wins
  for (const auto& [name, type] : file_types)
    if (name == text) return type;
  r.fail_hint(key, "no such type is supported", "supported are float32, float64, bfloat16 and float16");
  return FileType::F32;
}

std::string written_type(FileType t) {
  for (const auto& [name, type] : file_types)
    if (type == t) return std::string(name);
  throw Error("hugging face", "weights cannot be kept in {}", name_of(t)).hint("use F32, F64, BF16 or F16");
}

Field gpt2_config(const ModelConfig& c) {
  Field f{Field::Table{}};
  f.set("model_type", "gpt2");
  f.set("architectures", Field::Array{"GPT2LMHeadModel"});
  f.set("n_layer", c.layers);
  f.set("n_embd", c.width);
  f.set("n_head", c.heads);
  f.set("n_inner", c.ff == 4 * c.width ? Field() : Field(c.ff));
  f.set("n_positions", c.context);
  f.set("activation_function", written(*c.activation));
  f.set("resid_pdrop", c.dropout);
  f.set("embd_pdrop", c.embedding_dropout);
  f.set("attn_pdrop", c.attention_dropout);
  f.set("layer_norm_epsilon", c.norm_eps);
  return f;
}

Field llama_config(const ModelConfig& c) {
  // The plainest type that has these biases and norms. None has a place for dropout outside the attention, which only
  // training needs.
  const bool qwen2 = c.qkv_bias && !c.out_bias && !c.qk_norm, qwen3 = c.qk_norm;
  const bool mistral = c.window > 0 && c.pattern.empty() && !qwen2 && !qwen3;
  const std::string type = qwen2 ? "qwen2" : qwen3 ? "qwen3" : mistral ? "mistral" : "llama";
  std::vector<Fault> faults;
  if (c.qkv_bias != c.out_bias && !qwen2)
    faults.push_back(
        {"hugging face",
         fmt::format("no model type has qkv_bias {}, out_bias {} and qk_norm {}", c.qkv_bias, c.out_bias, c.qk_norm),
         "make out_bias the same as qkv_bias"});
  if (type == "llama" && c.window > 0)
    faults.push_back({"hugging face", fmt::format("no such model type has layers \"{}\" of windows", c.pattern),
                      "leave pattern out"});
  if (mistral && c.qkv_bias)
    faults.push_back({"hugging face", "model type mistral has no biases", "leave qkv_bias and out_bias out"});
  if (!c.gated)
    faults.push_back({"hugging face", fmt::format("model type {} has a gate", type), "leave gated = false out"});
  if (c.mlp_bias && type != "llama")
    faults.push_back({"hugging face", fmt::format("model type {} has no mlp_bias", type), "leave mlp_bias out"});
  refuse(std::move(faults));
  Field f{Field::Table{}};
  f.set("model_type", type);
  f.set("architectures", Field::Array{qwen2     ? "Qwen2ForCausalLM"
                                      : qwen3   ? "Qwen3ForCausalLM"
                                      : mistral ? "MistralForCausalLM"
                                                : "LlamaForCausalLM"});
  f.set("num_hidden_layers", c.layers);
  f.set("hidden_size", c.width);
  f.set("num_attention_heads", c.heads);
  f.set("num_key_value_heads", c.kv_heads);
  f.set("head_dim", c.head_dim);
  f.set("intermediate_size", c.ff);
  f.set("max_position_embeddings", c.context);
  f.set("hidden_act", written(*c.activation));
  f.set("attention_dropout", c.attention_dropout);
  f.set("rms_norm_eps", c.norm_eps);
  if (!qwen2 && !mistral) f.set("attention_bias", c.qkv_bias);
  if (type == "llama") f.set("mlp_bias", c.mlp_bias);
  if (qwen2 || qwen3) {
    f.set("use_sliding_window", c.window > 0);
    if (c.window > 0) f.set("layer_types", hf::layer_types(c));
  }
  if (c.window > 0) f.set("sliding_window", c.window);
  f.set("rope_theta", c.rope_base);
  f.set("rope_scaling", c.rope_scaling.kind == RopeScaling::Kind::none ? Field() : rope_config(c.rope_scaling));
  f.set("rope_parameters", rope_config(c.rope_scaling));
  f.set("rope_parameters.rope_theta", c.rope_base);
  return f;
}

Field mixtral_config(const ModelConfig& c) {
  std::vector<Fault> faults;
  const auto wrong = [&](std::string what, std::string hint) {
    faults.push_back({"hugging face", std::move(what), std::move(hint)});
  };
  if (c.qkv_bias || c.out_bias || c.qk_norm) wrong("model type mixtral has no biases and no qk_norm", "leave them out");
  if (c.rope_scaling.kind != RopeScaling::Kind::none) wrong("model type mixtral has no rope_scaling", "leave it out");
  if (!c.pattern.empty()) wrong("model type mixtral has one kind of layers", "leave pattern out");
  refuse(std::move(faults));
  Field f = llama_config(c);
  f.set("model_type", "mixtral");
  f.set("architectures", Field::Array{"MixtralForCausalLM"});
  f.set("num_local_experts", c.experts);
  f.set("num_experts_per_tok", c.top_k);
  f.set("router_aux_loss_coef", c.balance > 0 ? c.balance : 0.001);
  f.set("output_router_logits", c.balance > 0);
  f.set("sliding_window", c.window > 0 ? Field(c.window) : Field());
  return f;
}

constexpr std::pair<std::string_view, Field (*)(const ModelConfig&)> hf_writers[] = {
    {"gpt2", gpt2_config}, {"llama", llama_config}, {"mixtral", mixtral_config}};

// Without what only training and storage need.
ModelConfig on_disk(ModelConfig c) {
  c.hf_type.clear();
  c.pad_vocab = 1;
  c.dropout = c.embedding_dropout = c.capacity = c.balance = c.router_z = 0;
  c.balance_pooled = c.documents = false;
  c.balance_rate = ModelConfig().balance_rate;
  c.lora.reset();
  return c;
}

}  // namespace

std::vector<std::string> hf_type_names() {
  std::vector<std::string> all;
  for (const Kind& t : hf_kinds) all.emplace_back(t.name);
  for (const HfType& t : hf_types()) all.emplace_back(t.name);
  return all;
}

HfConfig parse_hf_config(const Field& json, std::string_view as) {
  FieldReader r(json);
  if (!json.table()) r.finish();
  std::string name;
  if (const Field* type = json.find("model_type"); !type || !std::holds_alternative<std::string>(type->value))
    throw Error(json.source.str(), "key 'model_type' is {}",
                type ? fmt::format("{} and not text", type->kind()) : "missing")
        .hint("is it the config.json of a model that transformers has saved?");
  r.read("model_type", name);
  if (!as.empty()) name = as;
  const Kind* type =
      std::find_if(std::begin(hf_kinds), std::end(hf_kinds), [&](const Kind& t) { return t.name == name; });
  const HfType* other = find_hf_type(name);
  if (type == std::end(hf_kinds) && !other) {
    const std::vector<std::string> known = hf_type_names();
    if (!as.empty()) {
      const auto near = nearest(as, known);
      throw Error("hf_as", "there is no model type '{}'", as)
          .hint("{}supported are {}", near ? fmt::format("did you mean '{}'? ", *near) : "", join(known, ", "));
    }
    if (const Field* text = json.find("text_config"))
      throw Error(r.where("model_type"), "key 'model_type' is \"{}\", a model of more than text", name)
          .hint("its text model alone{} can be read: load it in transformers and save it by itself",
                text->find("model_type") ? fmt::format(" ({})", text->find("model_type")->str()) : "");
    const ClosestType closest = closest_type(json);
    throw Error(r.where("model_type"), "key 'model_type' is \"{}\" but no such model is supported; {}", name,
                closest.str())
        .hint("{}; supported are {}", closest.advice(), join(known, ", "));
  }
  HfConfig h;
  if (other)
    read_type(*other, r, h.config);
  else
    type->read(r, *type, h.config);
  r.read("initializer_range", h.config.init_std, above(0));
  h.stored = read_stored(r);
  if (r.has("quantization_config") && r.raw("quantization_config"))
    r.fail_hint("quantization_config", "weights of fewer than 16 bits are not supported",
                "save them as bfloat16 first");
  ignore_common(r);
  for (const Member& m : *json.table())
    if (m.value.is_null()) r.raw(m.key);
  std::vector<Fault> faults = r.faults();
  for (Fault& f : faults)
    if (f.hint.starts_with("known keys")) f.hint = "it may change what the model computes; remove it if it does not";
  refuse(std::move(faults));
  h.config = complete(h.config);
  faults = validate(h.config);
  for (Fault& f : faults)
    f.where = fmt::format("{}: {}", json.source.file ? *json.source.file : "config.json", f.where);
  refuse(std::move(faults));
  return h;
}

HfConfig read_hf_config(const std::filesystem::path& file, std::string_view as) {
  return parse_hf_config(read_json_file(is_folder(file) ? file / "config.json" : file), as);
}

Field hf_config(const ModelConfig& config, FileType stored) {
  const ModelConfig c = checked(config);
  const HfType* type = find_hf_type(c.hf_type);
  if (!c.hf_type.empty() && !type)
    throw Error("hugging face", "there is no model type '{}'", c.hf_type).hint("leave hf_type out");
  const auto writer =
      std::find_if(std::begin(hf_writers), std::end(hf_writers), [&](const auto& w) { return w.first == c.family; });
  if (writer == std::end(hf_writers)) throw Error("hugging face", "there is no model type for family '{}'", c.family);
  Field f = type ? write_type(*type, c) : writer->second(c);
  f.set("vocab_size", c.vocab);
  f.set("tie_word_embeddings", *c.tied);
  f.set("initializer_range", c.init_std);
  f.set("bos_token_id", Field());  // null: without them transformers takes numbers of its own
  f.set("eos_token_id", Field());
  f.set("dtype", written_type(stored));
  f.set("torch_dtype", written_type(stored));
  if (on_disk(parse_hf_config(f).config) != on_disk(c))
    throw Error("hugging face", "model type {} cannot express all options of this model", f.find("model_type")->str())
        .hint("leave out what it does not have, or say hf_type: the type that has it");
  return f;
}

}  // namespace stretto
