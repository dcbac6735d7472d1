// `stretto convert`: a Hugging Face directory to a checkpoint, or a checkpoint or run to a Hugging Face directory.
#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <memory>

#include "commands.h"
#include "load_options.h"
#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/text.h"
#include "stretto/formats/interrupt.h"
#include "stretto/saved/model_directory.h"
#include "usage.h"

namespace stretto::app {
namespace {

struct ConvertOptions {
  std::string from, to, base;
  bool adapter = false;  // the adapters alone
  LoadOptions load;
  FileType stored = FileType::F32;
  ExportOptions out;
};

void write_adapter(const ConvertOptions& o, const StoredModel& m, bool typed) {
  export_peft(o.to, m, o.base, typed ? o.stored : FileType::F32);
  i64 numbers = 0;
  for (const auto& [name, value] : m.adapter->weights) numbers += value.elements();
  fmt::print("{}: {} -> adapter in {}\n", m.config.str(), m.path.string(), o.to);
  fmt::print("{} tensors, {} parameters\n", m.adapter->weights.size(), human_count(numbers));
}

void convert(const ConvertOptions& o, bool typed) {
  if (is_there(o.to) && !is_empty_folder(o.to))
    throw Error("convert", "'{}' exists and is not empty", o.to).hint("choose another place, or remove it");
  const bool for_reading = is_peft(o.from) || !o.adapter;  // else it is what is written into the new adapter
  LoadOptions load = o.load;
  if (for_reading) load.base = o.base;
  const StoredModel m = load_model(o.from, load);
  for (const std::string& note : m.notes) fmt::print("{}\n", note);
  if (o.adapter) return write_adapter(o, m, typed);
  const bool importing = m.kind == StoredModel::Kind::hugging_face && !m.adapter;
  if (importing && typed)
    throw Error("convert", "a checkpoint holds f32: --dtype is for Hugging Face directories")
        .hint("leave it out")
        .as(Error::Kind::usage);
  ExportOptions out = o.out;
  if (typed) out.stored = o.stored;
  if (importing)
    import_checkpoint(o.to, m);
  else
    export_hf(o.to, m, out);
  i64 numbers = 0;
  for (const auto& [name, value] : m.weights) numbers += value.elements();
  fmt::print("{}: {} -> {} {}\n", m.config.str(), m.path.string(), importing ? "checkpoint" : "Hugging Face directory",
             o.to);
  fmt::print("{} tensors, {} parameters\n", m.weights.size(), human_count(numbers));
}

}  // namespace

void add_convert(CLI::App& app) {
  const auto o = std::make_shared<ConvertOptions>();
  CLI::App* command = app.add_subcommand(
      "convert", "from a Hugging Face directory to a checkpoint, or from a checkpoint or run to such a directory");
  command
      ->add_option("FROM", o->from,
                   "a Hugging Face directory, a checkpoint, a run (its newest checkpoint), or an adapter of PEFT's")
      ->required();
  command->add_option("TO", o->to, "a new directory: a checkpoint if FROM is from Hugging Face, else the other way")
      ->required();
  add_load_options(*command, o->load);
  command->add_flag("--adapter", o->adapter, "of a run with finetune.lora: the adapters alone, in PEFT's format");
  command
      ->add_option("--base", o->base,
                   "the model that an adapter belongs to: where FROM is one, or what is written into a new one")
      ->type_name("DIR");
  const std::map<std::string, FileType> types{
      {"f32", FileType::F32}, {"f64", FileType::F64}, {"bf16", FileType::BF16}, {"f16", FileType::F16}};
  CLI::Option* typed = command->add_option("--dtype", o->stored, "of the weights in the Hugging Face directory")
                           ->type_name("f32|f64|bf16|f16")
                           ->transform(CLI::CheckedTransformer(types).description(""))
                           ->transform(one_of({"f32", "f64", "bf16", "f16"}));
  command->add_option("--shard-size", o->out.shard_bytes, "most bytes per file, e.g. 500MB or 5GB")
      ->type_name("SIZE")
      ->transform(CLI::AsSizeValue(true).description(""))
      ->transform(size_of_file());
  command->callback([o, typed] {
    const InterruptGuard guard;
    convert(*o, typed->count() > 0);
  });
}

}  // namespace stretto::app
