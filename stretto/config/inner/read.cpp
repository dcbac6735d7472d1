#include "stretto/config/inner/read.h"

#include <algorithm>
#include <filesystem>

#include "stretto/base/day.h"
#include "stretto/base/files.h"
#include "stretto/base/text.h"
#include "stretto/config/describe.h"
#include "stretto/config/inner/read_parts.h"
#include "stretto/config/inner/visitors.h"
#include "stretto/data/chat.h"
#include "stretto/formats/hf_directory.h"
#include "stretto/models/family.h"
#include "stretto/models/hf.h"
#include "stretto/models/peft.h"

namespace stretto {
namespace {

class RunReader {
 public:
  RunReader(const Field& root, RunConfig start) : root_(root), run_(std::move(start)) { root_.answer(synonyms()); }

  RunConfig read() {
    look_through();
    read_model();
    read_data();
    follow_vocabulary();
    read_train();
    read_optimizer();
    read_finetune();
    read_parallel();
    read_checkpoint();
    read_log();
    read_plan();
    root_.finish();
    return run_;
  }

  ParallelSection read_parallel_of(const ModelConfig& model) {
    look_through();
    run_.model.config = model;
    right_model_ = right_counts_ = true;
    read_parallel();
    root_.finish();
    return run_.parallel;
  }

 private:
  void look_through() {
    for (const Member& section : *root_.field().table()) note(section.key, section.value);
    refuse(faults_);
  }

  // What `preset`, `config` or `from` says; the other keys are read over it. Whether that was right.
  bool read_base(FieldReader& section, ModelConfig& config) {
    ModelBase base;
    Reading reading(section);
    keys_of(base, reading);
    std::vector<std::string> given;
    bool right = reading.right();
    for (const auto& [key, value] :
         {std::pair("preset", &base.preset), std::pair("config", &base.config), std::pair("from", &base.from)}) {
      if (!section.has(key)) continue;
      given.push_back(fmt::format("'{}'", key));
      if (given.size() > 1 || !right) continue;
      try {
        config = value == &base.preset ? preset(*value) : read_hf_config(*value, base.hf_as).config;
      } catch (const Error& e) {
        const bool of_file = value != &base.preset, missing = of_file && !is_there(*value);
        for (const Fault& f : e.faults())  // of a file the place in it, too
          section.blame(key, of_file ? fmt::format("{}: {}", f.where, f.what) : f.what,
                        missing ? advice_on_model(*value, run_.beside) : f.hint);
        right = false;
      }
    }
    if (given.size() > 1)
      section.blame("preset", fmt::format("{} are given together", join(given, " and ")), "give one of them");
    if (section.has("hf_as") && base.config.empty() && base.from.empty())
      section.fail_hint("hf_as", "there is no directory of another type", "give model.from, or leave it out");
    run_.model.frozen_dtype = base.frozen_dtype;
    if (given.size() == 1) run_.model.from = base.from;
    if (!run_.model.from.empty()) run_.model.hf_as = base.hf_as;
    return right && given.size() < 2;
  }

  void read_model() {
    FieldReader section = root_.section("model");
    if (section.has("graph")) return read_graph_model(section, run_.model);
    ModelConfig c;
    right_base_ = read_base(section, c);
    const ModelConfig base = c;
    Reading reading(section);
    keys_of(c, reading);
    if (!right_base_ || !reading.right()) return;
    try {
      c = complete(c);
    } catch (const Error& e) {
      return blame(section, "family", e);
    }
    const std::vector<Fault> wrong = validate(c);
    for (const Fault& f : wrong) root_.blame(f.where, f.what, f.hint);
    if (wrong.empty() && !run_.model.from.empty()) same_weights(section, base, c);
    run_.model.config = c;
    right_model_ = wrong.empty();
  }

  bool is_graph() const { return !run_.model.graph.empty(); }

  void same_weights(FieldReader& section, const ModelConfig& stored, const ModelConfig& asked) {
    const auto shapes = [](ModelConfig c) {
      c.head_parts = 1;  // files have the head in one
      std::vector<std::pair<std::string, std::vector<i64>>> all;
      for (const ParamSpec& p : family_named(c.family).params(c)) all.emplace_back(p.name, p.sizes);
      return all;
    };
    if (shapes(stored) != shapes(asked))
      section.blame("from",
                    fmt::format("the weights are those of {}, and other keys make it {}", stored.str(), asked.str()),
                    "leave those keys out, or train from scratch with 'config'");
  }

  // The tokenizer that lies beside weights. Without any, text is refused unless tokens may be bytes.
  std::string beside(const std::filesystem::path& weights) const {
    for (const char* name : {"tokenizer.json", "tokenizer.model"})
      if (is_there(weights / name)) return (weights / name).string();
    return run_.model.config.vocab == 256 ? "bytes" : "none";
  }

  void read_data() {
    FieldReader section = root_.section("data");
    DataSection& s = run_.data;
    if (!run_.model.from.empty()) s.tokenizer = beside(run_.model.from);
    Reading reading(section);
    keys_of(s, reading);
    if (section.has("path") && reading.right() && s.path.empty()) section.fail("path", "names no files");
    if (s.tokenizer.empty())
      section.fail_hint("tokenizer", "names no file", "write \"bytes\", or name a tokenizer.json or tokenizer.model");
    if (section.has("path") && section.has("mixture"))
      section.blame("mixture", "'path' is given too", "give one of them");
    if (!s.mixture.empty()) s.path.clear();
    if (section.has("date") && reading.right() && !s.date.empty() && !is_day(s.date))
      section.fail_hint("date", fmt::format("is no day: '{}'", s.date), "write it as 2026-11-18");
    if (s.field == messages_field) s.documents = true;  // conversations know nothing of each other
    if (is_graph()) refuse_beside_graph(section, {"documents"}, "leave it out");
    if (s.documents && right_base_ && !family_named(run_.model.config.family).attends)
      section.fail_hint("documents", fmt::format("the family '{}' has no attention", run_.model.config.family),
                        "leave it out");
  }

  // Without a word about it the model's vocabulary is that of its data. What is wrong with the files is said when they
  // are opened, which not every command does.
  void follow_vocabulary() {
    const Field* model = root_.field().find("model");
    for (const char* key : {"vocab", "preset", "config", "from"})
      if (model && model->find(key)) return;
    if (!right_model_) return;
    try {
      CorpusOptions options = corpus_of(run_);
      options.vocab = 0;
      const auto vocab = vocabulary_of(options);
      if (vocab && *vocab <= ModelConfig::most_vocab) run_.model.config.vocab = std::max<i64>(*vocab, 1);
    } catch (const Error&) {
    }
  }

  void read_train() {
    FieldReader section = root_.section("train");
    without_poll(section);
    Reading reading(section);
    TrainSection& s = run_.train;
    keys_of(s, reading);
    right_counts_ = reading.right();
    if (right_counts_ && s.dtype != bf16 && !s.precision.in_f32.empty())
      section.fail_hint("precision", fmt::format("train.dtype is {}: nothing is rounded", name_of(s.dtype)),
                        "leave it out, or train in bf16");
    if (!right_counts_) return;
    if (s.patience > 0) need_validation(section, "patience");
    if (s.batch % s.microbatches != 0)
      section.blame(
          section.has("microbatches") ? "microbatches" : "batch",
          fmt::format("{} sequences per step cannot be cut into {} equal microbatches", s.batch, s.microbatches),
          fmt::format("use a batch of {}, or train.microbatches = {}",
                      (s.batch + s.microbatches - 1) / s.microbatches * s.microbatches,
                      divisors_near(s.batch, s.microbatches)));
    if (!s.exact && s.leaf != TrainSection().leaf)
      section.fail_hint("leaf", "is of exact training only", "add train.exact = true, or leave it out");
  }

  // The name and the schedule first: they decide which other keys there are, and their defaults.
  void read_optimizer() {
    FieldReader section = root_.section("optimizer");
    OptimizerSection& s = run_.optimizer;
    Reading first(section), rest(section);
    const auto decides = [](const Key& key) { return key.name == "name" || key.name == "schedule"; };
    keys_of(s, [&](const Key& key, auto& value, const auto&... limits) {
      if (decides(key)) first(key, value, limits...);
    });
    if (s.name == "lion") s.lr = Lion().lr, s.betas = {Lion().beta1, Lion().beta2}, s.decay = Lion().decay;
    if (s.name == "sgd") s.lr = Sgd().lr, s.momentum = Sgd().momentum, s.decay = Sgd().decay;
    if (s.name == "muon") s.momentum = Muon().momentum, s.nesterov = Muon().nesterov;
    keys_of(s, [&](Key key, auto& value, const auto&... limits) {
      if (!first.right()) key.foreign.clear();  // what is unknown may have it
      if (!decides(key)) rest(key, value, limits...);
    });
    if (!rest.right()) return;
    if (s.name != "sgd" && (s.betas.size() != 2 || s.betas[0] >= 1 || s.betas[1] >= 1))
      section.fail_hint("betas", "must be two numbers from 0 up to, not including, 1", "e.g. [0.9, 0.95]");
    if (s.nesterov && s.momentum == 0)
      section.fail_hint("nesterov", "momentum is 0", "give optimizer.momentum, e.g. 0.9");
  }

  // What an adapter's files say comes first, other keys over it.
  void read_finetune() {
    FieldReader section = root_.section("finetune");
    FinetuneSection& s = run_.finetune;
    if (is_graph())
      refuse_beside_graph(section, {"lora", "adapter"}, "let PEFT put adapters into the module before it is a graph");
    std::optional<PeftAdapter> adapter;
    if (section.has("adapter") && right_model_) {
      try {
        section.read("adapter", s.adapter);
        if (!s.adapter.empty()) adapter = open_peft(s.adapter, run_.model.config);
      } catch (const Error& e) {
        blame_file(section, "adapter", e);
      }
    }
    Reading reading(section);
    keys_of(s, reading);
    if (!reading.right() || !right_model_) return;
    if (adapter && !s.lora) s.lora = LoraSection{};
    if (!s.lora) return;
    FieldReader lora = section.section("lora");
    if (adapter) follow_adapter(lora, *adapter);
    if (!s.freeze.empty())
      section.fail_hint("freeze", "finetune.lora freezes all but the adapters", "leave one of the two out");
    try {
      if (exports_adapter()) take_exportable(run_.model.config, s.lora->targets);
      s.adapted =
          adapter && !lora.has("targets") ? adapter->lora.params : lora_params(run_.model.config, s.lora->targets);
    } catch (const Error& e) {
      return blame(lora, "targets", e);
    }
    if (adapter && s.adapted != adapter->lora.params)
      lora.blame(
          "targets",
          fmt::format("{} weights, and the adapter has {} others", s.adapted.size(), adapter->lora.params.size()),
          "leave it out: the adapter says which weights have one");
  }

  // Said in another section, which is read later.
  bool exports_adapter() const {
    const Field* section = root_.field().find("checkpoint");
    const Field* to = section ? section->find("export_adapter") : nullptr;
    const std::string* text = to ? std::get_if<std::string>(&to->value) : nullptr;
    return text && !text->empty();
  }

  void follow_adapter(FieldReader& lora, const PeftAdapter& adapter) {
    LoraSection& s = *run_.finetune.lora;
    if (lora.has("rank") && s.rank != adapter.lora.rank)
      lora.fail_hint("rank", fmt::format("the adapter's is {}", adapter.lora.rank), "leave it out");
    s.rank = adapter.lora.rank;
    if (!lora.has("alpha")) s.alpha = adapter.lora.alpha;
    if (!lora.has("dropout")) s.dropout = adapter.lora.dropout;
    if (!lora.has("targets")) s.targets = adapter.lora.params;
  }

  void read_parallel() {
    FieldReader section = root_.section("parallel");
    ParallelSection& s = run_.parallel;
    without_poll(section);
    Reading reading(section);
    keys_of(s, reading);
    if (const int n = s.names.expert; n > 1 && right_model_ && run_.model.config.experts == 0)
      section.fail_hint("expert", fmt::format("family '{}' has no experts", run_.model.config.family),
                        fmt::format("use parallel.data = {}, or family 'mixtral'", n));
    if (!reading.right()) return;
    if (!s.mesh.empty()) check_axes(section.section("mesh"));
    if (right_counts_ && run_.searched.empty()) check_schedule_of(section);
  }

  // Axes that have a key of their own are given by it.
  void check_axes(FieldReader mesh) {
    for (const Axis& axis : run_.parallel.mesh)
      axes_of(run_.parallel, [&](const Key& key, const auto&...) {
        if (key.name == axis.name)
          mesh.fail_hint(axis.name, "is an axis of its own",
                         fmt::format("write parallel.{} = {}", axis.name, axis.size));
      });
  }

  void check_schedule_of(FieldReader& section) {
    const std::string& schedule = run_.parallel.schedule;
    for (const Fault& f : schedule_faults(run_.parallel, run_.train.microbatches, run_.train.segments.number())) {
      // A builder's name in front of a fault says nothing new; a file, or a place in it, does.
      const bool plain = f.where == "schedule" || (f.where == schedule && !names_a_file(schedule));
      section.blame(section.has("schedule") ? "schedule" : "pipe",
                    plain ? f.what : fmt::format("{}: {}", f.where, f.what), f.hint);
    }
  }

  void read_checkpoint() {
    FieldReader section = root_.section("checkpoint");
    keys_of(run_.checkpoint, Reading(section));
    check_adapter_export(section);
    if (run_.checkpoint.best) need_validation(section, "best");
    if (is_graph()) refuse_beside_graph(section, {"export"}, "in Python: trainer.to_torch(module)");
    if (run_.checkpoint.export_to.empty() || !right_base_) return;
    // Before hours of training, not after.
    try {
      hf_config(run_.model.config, FileType::F32);
      check_hf_target(run_.checkpoint.export_to);
    } catch (const Error& e) {
      return blame(section, "export", e);
    }
    std::error_code absent;
    if (std::filesystem::equivalent(run_.checkpoint.export_to, run_.model.from, absent))
      section.fail_hint("export", "model.from reads its weights there, and they would be lost",
                        "name another directory");
  }

  // A key that would silently do nothing.
  void need_validation(FieldReader& section, const char* key) const {
    if (run_.data.validation > 0 || !run_.data.validation_path.empty()) return;
    section.fail_hint(key, "no data is held out for validation", "hold some out, e.g. data.validation = 0.05");
  }

  void check_adapter_export(FieldReader& section) {
    if (run_.checkpoint.export_adapter.empty() || !right_model_) return;
    try {
      check_peft(model_config_of(run_));
      check_hf_target(run_.checkpoint.export_adapter);
    } catch (const Error& e) {
      blame(section, "export_adapter", e);
    }
  }

  void read_log() {
    FieldReader section = root_.section("log");
    const LogSection& s = run_.log;
    keys_of(run_.log, Reading(section));
    if (s.name.empty() || s.name.find('/') != s.name.npos) section.fail("name", "must be a plain name, without '/'");
    if (s.timeline.number > run_.train.steps)
      section.blame("timeline",
                    fmt::format("step {} is never done: train.steps is {}", s.timeline.number, run_.train.steps),
                    "\"last\" is the last one, whichever it is");
  }

  void read_plan() {
    FieldReader section = root_.section("plan");
    keys_of(run_.plan, Reading(section));
    const auto known = [&](std::string_view key, std::vector<std::string>& given, const std::vector<std::string>& all) {
      if (given == std::vector<std::string>{"auto"}) given.clear();
      if (const Field* list = section.raw(key); list && list->array() && list->array()->empty())
        section.fail_hint(key, "names none", fmt::format("leave it out, or name some of {}", join(all, ", ")));
      for (const std::string& word : given)
        if (const auto near = nearest(word, all); std::find(all.begin(), all.end(), word) == all.end())
          section.fail_hint(key, fmt::format("there is no '{}'", word),
                            near ? fmt::format("did you mean '{}'?", *near) : join(all, ", "));
    };
    known("schedules", run_.plan.schedules, schedule_names());
    known("recompute", run_.plan.recompute, {"none", "selective", "layer", "full"});
  }

  void note(const std::string& path, const Field& field) {
    run_.origins.emplace(path, field.source.str());
    if (const std::string* text = std::get_if<std::string>(&field.value); text && text->find('\0') != text->npos)
      faults_.push_back(
          fault(field.source.str(), "leave it out", "key '{}' holds a NUL, which ends names of files", path));
    if (field.array())
      for (const Field& f : *field.array()) note(path, f);
    if (field.table())
      for (const Member& m : *field.table()) note(fmt::format("{}.{}", path, m.key), m.value);
  }

  FieldReader root_;
  RunConfig run_;
  std::vector<Fault> faults_;  // that are found before anything is read
  // What the model is made from; all of its keys; numbers of sequences and microbatches.
  bool right_base_ = false, right_model_ = false, right_counts_ = false;
};

}  // namespace

RunConfig run_of(const Field& root, RunConfig start) { return RunReader(root, std::move(start)).read(); }

ParallelSection parallel_section_of(const Field& root, const ModelConfig& model) {
  return RunReader(root, {}).read_parallel_of(model);
}

}  // namespace stretto
