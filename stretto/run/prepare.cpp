#include "stretto/run/prepare.h"

#include <algorithm>
#include <optional>

#include "stretto/base/files.h"
#include "stretto/base/text.h"
#include "stretto/base/threads.h"
#include "stretto/compile/expert_rows.h"
#include "stretto/compile/stages.h"
#include "stretto/formats/hf_directory.h"
#include "stretto/formats/safetensors.h"
#include "stretto/graphs/graph_file.h"
#include "stretto/kernels/peak.h"
#include "stretto/models/head.h"
#include "stretto/models/peft.h"
#include "stretto/program/frozen.h"
#include "stretto/run/current.h"
#include "stretto/run/inner/conversations.h"
#include "stretto/run/inner/drawn.h"
#include "stretto/runtime/devices.h"

namespace stretto {
namespace {

std::string plural(i64 n, std::string_view what, std::string_view ending = "s") {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : ending);
}

// One actor: by arena. A few: each of them. Many: from the least to the most.
std::string memory_line(const Program& program) {
  const std::vector<double> totals = bytes_per_actor(program);
  const std::string shared = shared_str(program), beside = shared.empty() ? "" : ", beside " + shared;
  std::vector<std::string> parts;
  if (totals.size() == 1) {
    const auto& bytes = program.actors[ActorId(0)].bytes;
    for (std::size_t k = 0; k < arena_count; ++k)
      if (bytes.at(k) > 0 && (Arena(k) != Arena::frozen || shared.empty()))
        parts.push_back(fmt::format("{} {}", name_of(Arena(k)), human_bytes(bytes.at(k))));
    return fmt::format("{} planned{}: {}{}", human_bytes(totals[0]),
                       program.ranks_per_actor() > 1 ? fmt::format(" on each of {} ranks", program.ranks()) : "",
                       join(parts, ", "), beside);
  }
  if (totals.size() > 8) {
    const auto [least, most] = std::minmax_element(totals.begin(), totals.end());
    return fmt::format("{} to {} planned on each of {} actors{}", human_bytes(*least), human_bytes(*most),
                       totals.size(), beside);
  }
  for (std::size_t a = 0; a < totals.size(); ++a)
    parts.push_back(fmt::format("{} on {}actor {}", human_bytes(totals[a]),
                                program.ranks_per_actor() > 1 ? "every rank of " : "", a));
  return join(parts, ", ") + " planned" + beside;
}

std::string mesh_line(const RunConfig& c, const Prepared& p) {
  const Program& program = *p.compiled.program;
  std::vector<std::string> pieces;
  for (const int n : program.pieces_per_stage()) pieces.push_back(std::to_string(n));
  std::string line = p.compiled.parallel.mesh.str();
  if (p.compiled.sharded) line += ": " + p.compiled.parallel.layout.str();
  if (c.parallel.names.zero > 0) line += fmt::format(", zero {}", c.parallel.names.zero);
  if (program.actors.size() > 1)
    line += fmt::format("{} schedule {}, {} of {} pieces, predicted bubble {:.1f}%", p.compiled.sharded ? ";" : ":",
                        program.schedule.name, plural(program.schedule.stages, "stage"), join(pieces, "+"),
                        100 * p.prediction.bubble);
  if (const auto& link = c.parallel.link)
    line += fmt::format(", links of {} and {}/s", human_seconds(link->latency), human_bytes(link->bandwidth));
  return line;
}

// "device   emulated, 50 Gflop/s: it computes nothing, so there are no losses, parameters and checkpoints".
std::string device_line(const RunConfig& c) {
  const DeviceType& type = type_of(c.parallel.device);
  const double speed = c.parallel.machine.rate(c.train.dtype == bf16);
  return fmt::format("device   {}{}: it computes nothing, so there are no losses, parameters and checkpoints",
                     type.name, type.emulates ? fmt::format(", {}flop/s", human_count(speed)) : "");
}

// "cores    2 ranks × 3 threads on 8 cores; 2 are left: parallel.threads = 4 uses them".
std::string cores_line(const RunConfig& c, const Program& program) {
  const int cores = static_cast<int>(usable_cores().size()), threads = program.threads;
  const int ranks = c.parallel.on_machine > 0 ? c.parallel.on_machine : program.ranks();
  const int left = cores - ranks * threads;
  std::string line = fmt::format("cores    {} × {} on {}{}", plural(ranks, "rank"), plural(threads, "thread"),
                                 plural(cores, "core"), c.parallel.on_machine > 0 ? " of this machine" : "");
  if (left < 0) line += ", which they share: a step takes longer than predicted";
  if (left > 0) line += fmt::format("; {} left", left == 1 ? "1 is" : fmt::format("{} are", left));
  if (left >= ranks) line += fmt::format(": parallel.threads = {} uses {}", cores / ranks, left == 1 ? "it" : "them");
  return line;
}

// "chunks   10 of 12 collectives of a microbatch go in up to 8 parts".
std::string chunks_line(const Compiled& compiled) {
  int cut = 0, most = 1;
  if (compiled.sharded)
    for (const Collective& x : compiled.sharded->collectives) cut += x.parts > 1, most = std::max(most, x.parts);
  if (cut == 0)
    return "chunks   no product is worth cutting: chunks are for tensor parallelism with sequence = true, and for "
           "links "
           "that take time";
  return fmt::format("chunks   {} of {} collectives of a microbatch go in up to {} parts", cut,
                     compiled.sharded->collectives.size(), most);
}

// "LoRA of rank 8, alpha 16: 24 adapters"; what is trained of how much.
std::string finetune_line(const RunConfig& c, const Compiled& compiled) {
  i64 trained = 0;
  for (const CompiledParam& p : compiled.params) {
    i64 n = p.trained() ? 1 : 0;
    for (const Dim& d : p.dims) n *= d.valid();
    trained += n;
  }
  const std::string share = fmt::format("{} of {} parameters are trained, {:.3g}%", human_count(trained),
                                        human_count(compiled.parameters()), 100.0 * trained / compiled.parameters());
  if (const auto& lora = c.finetune.lora)
    return fmt::format("tune     LoRA of rank {}, alpha {}, beside {} weights; {}", lora->rank, lora->alpha,
                       c.finetune.adapted.size(), share);
  return "tune     " + share;
}

// What the model asks for: without padding, without what is recomputed or on several ranks at once.
double model_flops(const Compiled& c) {
  Graph g = c.graph;
  for (Dim& d : g.dims) d.size = d.valid(), d.logical = 0;
  double sum = 0;
  for (const Node& n : g.nodes) sum += n.op->cost({g, n}).flops;
  return sum * c.program->microbatches;
}

// More ranks than cores share them.
double peak_of(const RunConfig& c, double ranks) {
  if (!computes(c.parallel.device)) return ranks * c.parallel.machine.rate(c.train.dtype == bf16);
  return peak_flops(c.train.dtype) * std::min<double>(ranks * threads_of(c.parallel), usable_cores().size());
}

// Weights of two bytes that the run computes with in four; none: they are not, or not there yet.
std::optional<std::string> widening_note(const RunConfig& c) {
  if (c.model.from.empty() || c.train.dtype == bf16) return std::nullopt;
  try {
    const HfWeights weights(c.model.from);
    for (const auto& [name, tensor] : weights.tensors())
      if (tensor.type != FileType::BF16 && tensor.type != FileType::F16) return std::nullopt;
  } catch (const Error&) {  // whoever reads them says so
    return std::nullopt;
  }
  return fmt::format(
      "note     the weights in '{}' have 16 bits, and the run computes in {}; hint: train.dtype = \"bf16\"",
      c.model.from, name_of(c.train.dtype));
}

Corpus corpus_of_run(const RunConfig& c, Peers* peers) {
  const bool named = c.origins.contains("data.path") || c.origins.contains("data.mixture");
  if (const DataSection usual; !named && c.data.path == usual.path && !is_there(usual.path.front()))
    throw Error("data", "there is no file '{}', the example that is taken when data.path is not given",
                usual.path.front())
        .hint("--data.path=FILE names a text to train on");
  CorpusOptions data = corpus_of(c);
  data.others = others_of(peers);
  return open_corpus(data, c.model.config.context);
}

// First values that lie beside a graph, as many as there are.
void load_arrays(const std::filesystem::path& path, Trainer& trainer) {
  if (path.empty()) return;
  const SafeTensors file(path);
  for (const CompiledParam& p : trainer.compiled().params) {
    const StoredTensor* stored = file.find(p.name);
    if (!stored) continue;
    if (p.logical_dtype() == f64)
      trainer.set_parameter(p.name, Array::of<double>(values<double>(*stored, p.name), stored->shape));
    else
      trainer.set_parameter(p.name, Array::of<float>(values<float>(*stored, p.name), stored->shape));
  }
}

std::string data_line(const RunConfig& c, const Prepared& p) {
  if (!c.model.graph.empty()) return "data     given from outside, by stretto.Trainer in Python or a program";
  std::string line = fmt::format("data     {}; {} tokens to train on", p.corpus.name, p.corpus.training_tokens());
  if (p.corpus.validation) line += fmt::format(", {} to validate on", p.corpus.validation->tokens());
  return line;
}

}  // namespace

Prepared prepare(const RunConfig& c, Peers* peers) {
  if (c.train.dtype.products != ProductType::as_kept)
    throw Error("train.dtype", "products in fewer bits than bf16 can be planned, not trained in")
        .hint("use \"bf16\"; stretto simulate predicts a step with it")
        .about({"train.dtype"});
  if (const DeviceType& device = type_of(c.parallel.device); c.train.exact && !device.same_bits)
    throw Error("train.exact", "the bits of a product on {} devices depend on how many rows it has", device.name)
        .hint("leave train.exact out, or use device = \"cpu\"")
        .about({"train.exact", "parallel.device"});
  Prepared p;
  if (c.model.graph.empty()) p.corpus = corpus_of_run(c, peers);
  p.rows = {.length = c.model.config.context,
            .batch = c.train.batch,
            .seed = u64(c.train.seed),
            .documents = c.data.documents};
  p.compiled = compile_run(c);
  p.prediction = predict(*p.compiled.program, predict_options(c));
  p.flops = model_flops(p.compiled);
  const double ranks = p.compiled.program->ranks();
  p.peak = peak_of(c, ranks);
  PredictOptions here = predict_options(c);
  here.machine.flops = p.peak / ranks / p.compiled.program->threads;
  here.machine.flops_bf16 = 0;  // the peak is that of the run's type
  p.seconds = predict(*p.compiled.program, here).makespan;
  return p;
}

PredictOptions predict_options(const RunConfig& c) {
  PredictOptions o{.machine = c.parallel.machine, .link = c.parallel.link};
  o.machine.threads = threads_of(c.parallel);
  return o;
}

Batch batch_of(const RowsOptions& o, const Rows& rows) {
  const std::vector<i64> sizes{o.batch, o.length};
  Batch batch{{"ids", Array::of<std::int32_t>(rows.ids, sizes)},
              {"targets", Array::of<std::int32_t>(rows.targets, sizes)}};
  if (o.documents) batch.emplace("segments", Array::of<std::int32_t>(rows.segments, sizes));
  return batch;
}

Batch batch_of(const RunConfig& c, const Prepared& p, i64 step) {
  if (!c.model.graph.empty()) return drawn_batch(p.compiled, u64(c.train.seed), step);
  return batch_of(p.rows, TrainingRows(p.corpus, p.rows).at(step));
}

void load_weights(const RunConfig& c, Trainer& trainer) {
  if (!c.model.graph.empty()) load_arrays(read_graph(c.model.graph).arrays, trainer);
  const auto set = [&](const Weights& all) {
    for (const auto& [name, weights] : all) trainer.set_parameter(name, weights);
  };
  const DType dtype = wide(c.train.dtype);
  if (!c.model.from.empty()) set(in_head_parts(c.model.config, load_hf(c.model.from, dtype, c.model.hf_as).weights));
  if (!c.finetune.adapter.empty()) set(load_peft(c.finetune.adapter, c.model.config, dtype).weights);
  start_averages(trainer);
}

std::vector<std::string> about(const RunConfig& c, const Prepared& p) {
  std::vector<std::string> lines;
  lines.push_back(fmt::format("model    {}: {} parameters", c.model.str(), human_count(p.compiled.parameters())));
  lines.push_back(data_line(c, p));
  lines.push_back(fmt::format("step     {} of {} tokens in {}, {}", plural(c.train.batch, "sequence"), p.rows.length,
                              plural(c.train.microbatches, "microbatch", "es"), name_of(c.train.dtype)));
  lines.push_back(fmt::format("update   {}, lr {}, {} over {}{}{}", c.optimizer.name, c.optimizer.lr,
                              c.optimizer.schedule, plural(c.train.steps, "step"),
                              c.optimizer.warmup > 0 ? fmt::format(", warm-up {}", c.optimizer.warmup) : "",
                              c.optimizer.state == bf16 ? ", states in bf16" : ""));
  if (c.finetune.lora || !c.finetune.freeze.empty()) lines.push_back(finetune_line(c, p.compiled));
  if (p.compiled.program->ranks() > 1) lines.push_back("mesh     " + mesh_line(c, p));
  if (type_of(c.parallel.device).threads) lines.push_back(cores_line(c, *p.compiled.program));
  if (!computes(c.parallel.device)) lines.push_back(device_line(c));
  if (const std::optional<Limit> l = limit_of(p.compiled); l && l->head_parts > 0)
    lines.push_back(fmt::format("limit    stage {}, the head, {}: model.head_parts = {} cuts it", l->stage.value,
                                l->shares(), l->head_parts));
  if (const auto reason = expert_rows_reason(p.compiled)) lines.push_back("experts  " + *reason);
  if (c.parallel.overlap == Overlap::chunks) lines.push_back(chunks_line(p.compiled));
  lines.push_back("memory   " + memory_line(*p.compiled.program));
  if (computes(c.parallel.device)) lines.back() += "; " + beside_plan(*p.compiled.program);
  lines.push_back(fmt::format("time     {} per step predicted: {}flop at {}flop/s{}", human_seconds(p.seconds),
                              human_count(p.flops), human_count(p.peak),
                              computes(c.parallel.device) ? ", the measured peak" : ""));
  if (const std::optional<std::string> note = widening_note(c)) lines.push_back(*note);
  if (c.optimizer.warmup > c.train.steps)
    lines.push_back(
        fmt::format("note     the warm-up takes {} and the run has {}: lr never reaches {}; hint: a smaller "
                    "optimizer.warmup, or more train.steps",
                    plural(c.optimizer.warmup, "step"), c.train.steps, c.optimizer.lr));
  if (!p.corpus.validation && c.train.validate != TrainSection().validate)
    lines.push_back(
        "note     train.validate is given and there is nothing to validate on; hint: data.validation = 0.05");
  const int few = 2 * c.parallel.pipe;
  if (c.parallel.pipe > 1 && p.prediction.bubble > 0.4 && c.train.microbatches < few)
    lines.push_back(
        fmt::format("note     {} for {} actors leaves them idle for {:.0f}% of a step; hint: "
                    "train.microbatches = {} or more",
                    plural(c.train.microbatches, "microbatch", "es"), c.parallel.pipe, 100 * p.prediction.bubble, few));
  return lines;
}

}  // namespace stretto
