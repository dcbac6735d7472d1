// Models: of a trainer as it is now, or in a directory. What they say, and where they are written.
#include <cstring>

#include "held.h"
#include "stretto/base/files.h"
#include "stretto/base/text.h"
#include "stretto/config/parallel.h"
#include "stretto/generate/generate.h"
#include "stretto/generate/utf8_stream.h"
#include "stretto/run/evaluate.h"
#include "stretto/run/verify.h"

namespace stretto::python {
namespace {

std::optional<FileType> file_type(const Arguments& a) {
  const std::string name = a.text("dtype");
  for (const auto& [word, type] :
       {std::pair("f32", FileType::F32), {"f64", FileType::F64}, {"bf16", FileType::BF16}, {"f16", FileType::F16}})
    if (name == word) return type;
  if (name.empty()) return std::nullopt;
  throw Error("arguments", "'dtype' is '{}'", name).hint("use \"f32\", \"f64\", \"bf16\" or \"f16\"");
}

std::vector<std::int32_t> ids_of(const Arguments& a, std::string_view key) {
  std::vector<std::int32_t> ids;
  for (const i64 id : a.wholes(key)) {
    if (!std::in_range<std::int32_t>(id))
      throw Error("arguments", "token {} is no id", id).hint("give ids of the model");
    ids.push_back(std::int32_t(id));
  }
  return ids;
}

Field as_field(const std::vector<std::int32_t>& ids) { return Field::Array(ids.begin(), ids.end()); }

std::string text_of(const Codec& codec, const std::vector<std::int32_t>& ids) {
  Utf8Stream stream;
  std::string text;
  for (const std::int32_t id : ids) text += stream.push(codec.decode(id));
  return text + stream.finish();
}

void refuse_full(const std::string& to) {
  if (is_there(to) && !is_empty_folder(to))
    throw Error(to, "exists and is not empty").hint("choose another place, or remove it");
}

}  // namespace

Field trainer_logits(const Arguments& a) {
  const Array ids = array_of(a.table("ids"));
  const Memory to = a.memory("buffer");
  const Use t(a);
  HeldTrainer& held = t.all();
  const StoredModel& m = held.current();
  if (!held.scorer) held.scorer.emplace(m.config, m.weights);
  const Array logits = held.scorer->logits(ids);
  if (std::ssize(to) != std::ssize(logits.bytes))
    throw Error("arguments", "the logits are {}, and the buffer has {} bytes", logits.str(), to.size());
  std::memcpy(to.data(), logits.bytes.data(), to.size());
  return {};
}

Field trainer_generate(const Arguments& a) {
  GenerateOptions o{
      .tokens = a.whole("tokens", 100, 0, 1 << 20),
      .sample = {.temperature = a.number("temperature", 0.8), .top_k = a.whole("top_k"), .top_p = a.number("top_p", 1)},
      .seed = u64(a.whole("seed", 0, 0)),
      .stop = ids_of(a, "stop")};
  const Use t(a);
  const StoredModel& m = t.all().current();
  std::vector<std::int32_t> made;
  const auto keep = [&](std::int32_t id) { return made.push_back(id), true; };
  if (a.has("ids")) {
    generate(m, ids_of(a, "ids"), o, keep);
    return as_field(made);
  }
  const Codec codec = codec_of(m, a.text("tokenizer"));
  if (!a.has("stop")) o.stop = codec.ends;
  generate(m, codec.encode(a.text("prompt"), true), o, keep);
  return text_of(codec, made);
}

Field trainer_encode(const Arguments& a) {
  const Use t(a);
  return as_field(codec_of(t.all().current(), a.text("tokenizer")).encode(a.text("text"), true));
}

Field trainer_decode(const Arguments& a) {
  const std::vector<std::int32_t> ids = ids_of(a, "ids");
  const Use t(a);
  const StoredModel& m = t.all().current();
  for (const std::int32_t id : ids)
    if (id < 0 || id >= m.config.vocab)
      throw Error("decode", "token {} is outside of a vocabulary of {}", id, m.config.vocab)
          .hint("is the tokenizer the model's?");
  return text_of(codec_of(m, a.text("tokenizer")), ids);
}

Field trainer_export(const Arguments& a) {
  const std::string to = a.text("directory");
  const std::optional<FileType> stored = file_type(a);
  refuse_full(to);
  const Use t(a);
  const StoredModel& m = t.all().current();
  if (a.flag("adapter"))
    export_peft(to, m, t.run().model.from, stored.value_or(FileType::F32));
  else
    export_hf(to, m, {.stored = stored});
  return {};
}

Field convert(const Arguments& a) {
  const std::string from = a.text("from"), to = a.text("to"), base = a.text("base");
  refuse_full(to);
  const std::optional<FileType> stored = file_type(a);
  const bool adapter = a.flag("adapter"), reads_base = is_peft(from) || !adapter;
  const StoredModel m =
      load_model(from, {.base = reads_base ? base : "", .ema = a.flag("ema"), .hf_as = a.text("hf_as")});
  if (adapter) {
    export_peft(to, m, base, stored.value_or(FileType::F32));
    return Field("adapter");
  }
  if (m.kind != StoredModel::Kind::hugging_face || m.adapter) {
    export_hf(to, m, {.stored = stored});
    return Field("Hugging Face directory");
  }
  if (stored)
    throw Error("convert", "a checkpoint holds f32: dtype is for Hugging Face directories").hint("leave it out");
  import_checkpoint(to, m);
  return Field("checkpoint");
}

Field eval(const Arguments& a) {
  EvaluateOptions o{.data = a.texts("data"),
                    .tokenizer = a.text("tokenizer"),
                    .field = a.text("field", "text"),
                    .chat_template = a.text("template"),
                    .documents = a.flag("documents"),
                    .batch = a.whole("batch", 8, 1, 1 << 20),
                    .batches = a.whole("batches", 0, 0)};
  const StoredModel m =
      load_model(a.text("directory"), {.base = a.text("base"), .ema = a.flag("ema"), .hf_as = a.text("hf_as")});
  const ParallelSection parallel = read_parallel(a.texts("settings"), m.config);
  o.parallel = parallel_of(parallel, ProductType::as_kept);
  o.run = options_of(parallel);
  const Evaluated e = evaluate(m, o);
  const std::optional<double> bits = e.bits_per_byte();
  return Field::Table{
      {"loss", e.loss},     {"perplexity", e.perplexity()}, {"bits_per_byte", bits ? Field(*bits) : Field()},
      {"tokens", e.tokens}, {"seconds", e.seconds},         {"data", e.data}};
}

Field verify(const Arguments& a) {
  VerifyOptions o{.steps = a.whole("steps", 3, 1, 1 << 20)};
  if (a.has("tolerance")) o.tolerance = a.number("tolerance");
  const Verification v = stretto::verify(run_of(a), o);
  return Field::Table{{"equal", !v.first.has_value()},
                      {"first", v.first ? Field(v.first->str()) : Field()},
                      {"tolerance", v.tolerance},
                      {"tensors", v.tensors},
                      {"text", v.str()}};
}

}  // namespace stretto::python
