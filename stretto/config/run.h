// RUN.toml and flags as plain structs.
//
//   RunConfig run = read_run("run.toml", {"--train.batch=64"});
//   Trainer trainer(compile_run(run), options_of(run.parallel));
//
// Every key has a default. What is misspelt, of the wrong type or impossible is
// named with file, line and key, all of it in one Error; so is every key of
// something that this version cannot do yet, unless it asks for nothing.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "stretto/compile/compile.h"
#include "stretto/config/parallel.h"
#include "stretto/cost/product_type.h"
#include "stretto/data/corpus.h"
#include "stretto/models/config.h"
#include "stretto/optim/muon.h"
#include "stretto/optim/optimizer.h"

namespace stretto {

// What a model is made from: one of these, or none. Other keys of [model] are read over it.
struct ModelBase {
  std::string preset = {}, config = {}, from = {}, graph = {};
  std::string hf_as = {};  // what the model type of `config` or `from` counts as; "": what it says
  std::optional<DType> frozen_dtype = {};
};

struct ModelSection {
  ModelConfig config;                      // complete and valid; in the file also `preset` or
                                           // `config`, an HF config.json. Of a graph: context alone, the ids of a row
  std::string graph = {};                  // a model as data, in a file of its own (stretto/graphs): no family
  std::string from = {};                   // an HF directory: shape and first weights come from it
  std::string hf_as = {};                  // how its type is read
  std::optional<DType> frozen_dtype = {};  // that frozen parameters are kept in; none: train.dtype
  std::string str() const;                 // what model it is, in a line
  bool operator==(const ModelSection&) const = default;
};

struct DataSection {
  std::vector<std::string> path = {"examples/data/tales.txt"};  // files or globs
  std::vector<MixturePart> mixture = {};                        // instead of `path`
  DataFormat format = DataFormat::automatic;
  std::string tokenizer = "bytes";                // of text; "none": text is refused
  std::string field = "text";                     // of a line of .jsonl files; "messages": conversations
  std::string chat_template = {};                 // `template`: a file; "": the one beside the tokenizer
  std::string date = {};                          // of conversations: 2026-11-18; "": the day the run starts
  std::string hash = {};                          // of its tokens when the run starts
  bool documents = false;                         // attention stays within documents
  double validation = 0;                          // a part of the data, or in the file also:
  std::vector<std::string> validation_path = {};  // ... files of their own
  bool operator==(const DataSection&) const = default;
};

// What to do with a step whose loss or gradient norm is infinite or not a number.
enum class Nonfinite : std::uint8_t {
  stop,      // leave the parameters as they are and end the run
  skip,      // leave the parameters as they are and go on
  carry_on,  // update them all the same
};

// {router = "f32"}: parameters, by name or a part of it, and the type they are kept in.
struct Precision {
  std::vector<std::string> in_f32 = {};
  bool operator==(const Precision&) const = default;
};

// train.dtype: what numbers are kept in, and what products are made in where that is less (bf16 is kept then).
struct RunType {
  DType kept = f32;
  ProductType products = ProductType::as_kept;  // fp8 and fp4 can be planned, not trained in yet
  RunType(DType d = f32, ProductType p = ProductType::as_kept) : kept(d), products(p) {}
  operator DType() const { return kept; }
  bool operator==(const RunType&) const = default;
  bool operator==(DType d) const { return kept == d; }
};

struct TrainSection {
  static constexpr int most_microbatches = 1 << 16, most_segments = 1 << 20;  // or tokens in one of them
  i64 steps = 300;
  i64 batch = 16;  // sequences per step
  int microbatches = 1;
  SegmentSizes segments = {};  // of a microbatch's sequences
  i64 seed = 1;
  RunType dtype = f32;
  Precision precision = {};  // bf16: what stays f32
  double clip = 1;           // of the global gradient norm; 0: none
  bool clip_late = false;    // updates do not wait for the norm, and are undone where that was wrong
  i64 validate = 100;        // steps between validations, when there is data for it;
                             // 0: only at the end
  i64 validate_batches = 8;  // at most, per validation
  i64 patience = 0;          // validations without a better loss after which the run ends; 0: it goes on
  double ema = 0;            // decay of the running average of parameters; 0: there is none
  Nonfinite nonfinite = Nonfinite::stop;
  bool exact = false;  // the same bits for every parallel.data and microbatches
  i64 leaf = 1;        // exact: sequences that kernels see at a time
  bool operator==(const TrainSection&) const = default;
};

// Adapters that are trained instead of the weights beside them.
struct LoraSection {
  i64 rank = Lora().rank;
  double alpha = Lora().alpha, dropout = Lora().dropout;
  std::vector<std::string> targets = {"all"};  // weights that have one: see lora_params() of models/lora.h
  bool operator==(const LoraSection&) const = default;
};
struct FinetuneSection {
  std::vector<std::string> freeze = {};   // see TraceOptions::frozen
  std::optional<LoraSection> lora = {};   // all else is frozen
  std::string adapter = {};               // a directory of PEFT's that the adapters start from
  std::vector<std::string> adapted = {};  // no key: the weights that `lora` is about
  bool operator==(const FinetuneSection&) const = default;
};

struct OptimizerSection {
  std::string name = "adamw";
  double lr = 3e-4, decay = 0.1;
  std::vector<double> betas = {0.9, 0.95};  // adamw, lion
  double eps = 1e-8;                        // adamw
  double momentum = 0;                      // sgd, muon
  bool nesterov = false;                    // sgd, muon
  Muon::Scale scale = Muon().scale;         // muon, and all that follow
  int newton_schulz = Muon().steps;
  double others_lr = Muon().others_lr;
  std::vector<std::string> numbers = Muon().numbers;
  DType state = f32;                // of its states; bf16: rounded at random
  std::string schedule = "cosine";  // of the learning rate: constant cosine linear wsd
  i64 warmup = 0;                   // steps of linear rise
  double floor = 0.1;               // the last rate, as a part of lr
  double stable = 0.8;              // wsd: where the decay starts, as a part of the run
  bool operator==(const OptimizerSection&) const = default;
};

struct CheckpointSection {
  i64 every = 0;                              // steps between checkpoints; the end of a run has one in any case
  int keep = 2;                               // how many are kept; 0: none are written
  bool best = false;                          // that of the best validation is kept, too
  double timeout = 3600;                      // seconds that ranks wait for each other while one is saved; 0: for ever
  std::string export_to = {};                 // `export`: a Hugging Face directory that is written at the end
  std::string export_adapter = {};            // a directory of PEFT's with the adapters, likewise
  std::optional<FileType> export_dtype = {};  // none: as the logical parameters are
  bool operator==(const CheckpointSection&) const = default;
};

// The step whose timeline is measured: in the file its number, "last", or 0 for none.
struct TimelineStep {
  i64 number = 0;
  bool last = false;
  bool is(i64 step, i64 steps) const { return step == (last ? steps : number); }
  bool operator==(const TimelineStep&) const = default;
};

struct LogSection {
  std::string name = "run";  // of the file, without .toml
  std::string dir = {};      // the run directory; "": runs/<name>-<date and time>
  i64 every = 10;            // steps per line
  TimelineStep timeline = {};
  std::string profile = {};  // a file that gets what each piece took, for parallel.times; "": none
  std::string sample = {};   // a prompt that the model goes on with after validations; "": none
  bool operator==(const LogSection&) const = default;
};

// What `stretto plan` may choose, beside what the other sections fix. Empty: anything.
struct PlanSection {
  std::vector<int> pipe = {}, data = {}, tensor = {}, context = {}, expert = {}, zero = {}, chunks = {},
                   microbatches = {};
  std::vector<std::string> schedules = {}, recompute = {};
  double memory = 1;               // share of a rank's memory that may be planned
  double margin = 0.02;            // what is slower by less is as good
  std::vector<int> ranks = {};     // how many there are; several: the best for each; empty: as the cluster says
  std::string objective = "time";  // what is to be small: time memory rank_hours
  bool operator==(const PlanSection&) const = default;
};

// Where keys were given: "parallel.pipe" -> "run.toml:12". For messages only.
using Origins = std::map<std::string, std::string>;

struct RunConfig {
  ModelSection model;
  DataSection data;
  TrainSection train;
  OptimizerSection optimizer;
  FinetuneSection finetune;
  ParallelSection parallel;
  CheckpointSection checkpoint;
  LogSection log;
  PlanSection plan;
  // Keys that are "auto", and so have no value yet: `stretto plan` and `stretto train` choose one. Among
  // searched_keys().
  std::vector<std::string> searched;
  Origins origins;
  std::filesystem::path beside = {};  // folder of the run file, where that is not the current one; for messages
};

// `file` "": the defaults. Overrides are "--section.key=value", later ones win.
RunConfig read_run(const std::string& file, const std::vector<std::string>& overrides = {});
RunConfig parse_run(std::string_view toml, const std::string& file, const std::vector<std::string>& overrides = {});

// Settings of [parallel], "--parallel.data=2", for a model that is there already.
ParallelSection read_parallel(const std::vector<std::string>& settings, const ModelConfig& model);

// For `stretto plan`: every key that it may choose and that is not given counts as "auto".
RunConfig read_open_run(const std::string& file, const std::vector<std::string>& overrides = {});
const std::vector<std::string>& searched_keys();  // "parallel.pipe", ...

// Every key with its value: reading this gives the same RunConfig again.
std::string resolved_toml(const RunConfig&);

// [model] with what other sections say about it: documents, adapters.
ModelConfig model_config_of(const RunConfig&);
Model model_of(const RunConfig&);
Optimizer optimizer_of(const RunConfig&);
Training training_of(const RunConfig&);
CorpusOptions corpus_of(const RunConfig&);

// What cannot be compiled because of a key of [parallel] is refused with file, line and key.
Compiled compile_run(const RunConfig&, Purpose = Purpose::run);

}  // namespace stretto
