// Every key of a run, in one line each: its name, what it means, its place in the structs, what it may be. Reading,
// writing, `--help-keys` and docs/keys.md are made of these lines.
//
//   keys_of(run.train, [&](const Key& key, auto&& value, const auto&... limits) { ... });
//
// `limits` is nothing or a form of key.h. A table below a section is visited with `visit.table(key, value)`, whose keys
// are those of keys_of(value).
#pragma once
#include "stretto/config/inner/key.h"
#include "stretto/models/family.h"
#include "stretto/runtime/devices.h"
#include "stretto/schedule/builders.h"

namespace stretto {

constexpr double largest_factor = 1e30;  // of numbers that training multiplies with: finite in f32, too
constexpr double longest_time = 1e9;

template <class Visit>
void keys_of(RopeScaling& s, Visit&& visit) {
  using Kind = RopeScaling::Kind;
  const Choices<Kind> kinds{{"none", Kind::none},
                            {"linear", Kind::linear},
                            {"llama3", Kind::llama3},
                            {"yarn", Kind::yarn},
                            {"longrope", Kind::longrope}};
  visit(Key{"kind", "how rotary frequencies are stretched for longer contexts"}, s.kind, kinds);
  const auto is = [&](Kind kind) { return s.kind == kind; };
  const std::string_view chosen = kinds[std::size_t(s.kind)].first;
  visit(Key{"factor", "by how much"}.only(!is(Kind::none), "kind", chosen), s.factor, between(1, largest_factor));
  const auto llama3 = [&](Key key) { return std::move(key).only(is(Kind::llama3), "kind", chosen); };
  visit(llama3({"low_freq", "llama3: longer waves than original_context / low_freq are stretched"}), s.low_freq,
        above(0));
  visit(llama3({"high_freq", "llama3: shorter waves than original_context / high_freq are not"}), s.high_freq,
        above(0));
  const bool from_context = is(Kind::llama3) || is(Kind::yarn) || is(Kind::longrope);
  visit(Key{"original_context", "llama3, yarn, longrope: the context that was trained on"}.only(from_context, "kind",
                                                                                                chosen),
        s.original_context, at_least(1));
  const auto yarn = [&](Key key) { return std::move(key).only(is(Kind::yarn), "kind", chosen); };
  visit(yarn({"beta_fast", "yarn: pairs that turn more often in the original context stay"}), s.beta_fast, above(0));
  visit(yarn({"beta_slow", "yarn: pairs that turn less often are stretched"}), s.beta_slow, above(0));
  visit(Key{"attention_factor", "yarn, longrope: how much longer queries and keys become; 0: by the factor"}.only(
            is(Kind::yarn) || is(Kind::longrope), "kind", chosen),
        s.attention_factor, between(0, largest_factor));
  visit(yarn({"truncate", "yarn: what lies between begins and ends with whole pairs"}), s.truncate);
  visit(yarn({"mscale_all_dim", "yarn: scores grow with the factor, too; 0: they do not"}), s.mscale_all_dim,
        between(0, largest_factor));
  const auto longrope = [&](Key key) { return std::move(key).only(is(Kind::longrope), "kind", chosen); };
  visit(longrope({"short_factor", "longrope: how much slower pairs turn, up to original_context", "none"}),
        s.short_factor, above(0));
  visit(longrope({"long_factor", "longrope: how much slower pairs turn in longer sequences", "none"}), s.long_factor,
        above(0));
}

// The shape, over what `preset`, `config` or `from` says.
template <class Visit>
void keys_of(ModelBase& s, Visit&& visit) {
  std::vector<std::string> all;
  for (const Preset& p : presets()) all.emplace_back(p.name);
  visit(Key{"preset", "a shape with a name, which other keys change", "none"}, s.preset, Words{join(all, ", ")});
  visit(Key{"config", "a Hugging Face config.json, or its directory: the shape", "none"}, s.config, Words{"file"});
  visit(Key{"from", "a Hugging Face directory: shape and first weights", "none"}, s.from, Words{"directory"});
  visit(Key{"graph", "a model as a graph in a JSON file, as stretto.from_torch writes it", "none"}, s.graph,
        Words{"file"});
  visit(Key{"hf_as", "of `config` or `from`: the model type that theirs counts as, e.g. llama", "what it says"},
        s.hf_as, Words{"a model type"});
  visit(Key{"frozen_dtype", "type that frozen parameters are kept in; nothing rounds them again", "train.dtype"},
        s.frozen_dtype, Choices<std::optional<DType>>{{"f32", f32}, {"bf16", bf16}});
}

// What relatives of Llama have.
template <class Visit>
void relatives_of(ModelConfig& c, Visit&& visit) {
  using C = ModelConfig;
  visit(Key{"qk_norm_wide", "llama: queries and keys are normalised over all heads together"}, c.qk_norm_wide);
  visit(Key{"qk_norm_bare", "llama: queries and keys are normalised per head, without gains, after they are turned"},
        c.qk_norm_bare);
  visit(Key{"norms", "llama: what is normalised: what a half layer reads, what it adds, or both"}, c.norms,
        Choices<Norms>{{"before", Norms::before}, {"after", Norms::after}, {"both", Norms::both}});
  visit(Key{"unit_gain", "llama: norms multiply with 1 + gain"}, c.unit_gain);
  visit(Key{"pattern",
            "llama: kinds of layers, over and over: f sees all, w a window, c a chunk, n all without positions",
            "one kind"},
        c.pattern, Words{"letters f, w, c and n, e.g. wwwwwf"});
  visit(Key{"window", "llama: tokens that a w layer sees; 0: there is none"}, c.window, between(0, C::most_context));
  visit(Key{"chunk", "llama: c layers see their own chunk, of so many tokens; 0: there is none"}, c.chunk,
        between(0, C::most_context));
  visit(Key{"temperature_floor", "llama: queries of n layers grow every so many positions; 0: they do not"},
        c.temperature_floor, between(0, C::most_context));
  visit(Key{"temperature_scale", "llama: how much, times the logarithm of steps"}, c.temperature_scale,
        between(0, largest_factor));
  visit(Key{"local_rope_base", "llama: rope_base of w layers; 0: as the others"}, c.local_rope_base,
        between(0, largest_factor));
  visit(Key{"rope_dim", "llama: elements of a head that are turned; 0: all"}, c.rope_dim, between(0, C::most_heads));
  visit(Key{"rope_interleaved", "llama: pairs that are turned are neighbours"}, c.rope_interleaved);
  visit(Key{"sinks", "llama: attention has one more score per head, without a value"}, c.sinks);
  visit(Key{"attention_scale", "llama: factor of scores; 0: 1 / sqrt(head_dim)"}, c.attention_scale,
        between(0, largest_factor));
  visit(Key{"attention_softcap", "llama: scores stay below this, by tanh; 0: any"}, c.attention_softcap,
        between(0, largest_factor));
  visit(Key{"logit_softcap", "llama: logits stay below this, by tanh; 0: any"}, c.logit_softcap,
        between(0, largest_factor));
  visit(Key{"embedding_scale", "llama: factor of the embedding"}, c.embedding_scale, above_up_to(0, largest_factor));
  visit(Key{"residual_scale", "llama: factor of what half layers add"}, c.residual_scale,
        above_up_to(0, largest_factor));
  visit(Key{"logit_scale", "llama: factor of logits"}, c.logit_scale, above_up_to(0, largest_factor));
  visit(Key{"q_rank", "llama: queries by way of so many numbers; 0: directly"}, c.q_rank, between(0, C::most_width));
  visit(Key{"kv_rank", "llama: keys and values by way of so many numbers (MLA); 0: directly"}, c.kv_rank,
        between(0, C::most_width));
  visit(Key{"value_dim", "llama: width of a head's values, with kv_rank"}, c.value_dim, between(0, C::most_heads));
}

// What routers and experts of relatives of Mixtral have.
template <class Visit>
void router_of(ModelConfig& c, Visit&& visit) {
  using C = ModelConfig;
  visit(Key{"sparse", "mixtral: which layers have experts, over and over: e, or d for dense", "all"}, c.sparse,
        Words{"letters e and d, e.g. de"});
  visit(Key{"expert_ff", "mixtral: width of an expert", "ff"}, c.expert_ff, between(0, C::most_ff));
  visit(Key{"shared_ff", "mixtral: width of an expert that every token has; 0: there is none"}, c.shared_ff,
        between(0, C::most_ff));
  visit(Key{"shared_gate", "mixtral: that expert has a gate"}, c.shared_gate);
  visit(Key{"score", "mixtral: what the router says of an expert"}, c.score,
        Choices<Score>{{"softmax", Score::softmax}, {"sigmoid", Score::sigmoid}});
  visit(Key{"select_bias", "mixtral: a number per expert is added for the choice alone"}, c.select_bias);
  visit(Key{"balance_rate", "mixtral: by how much a step moves select_bias towards even loads; 0: it stays"},
        c.balance_rate, between(0, largest_factor));
  visit(Key{"groups", "mixtral: groups of experts, of which tokens choose first"}, c.groups, between(1, C::most_heads));
  visit(Key{"top_groups", "mixtral: how many groups a token chooses"}, c.top_groups, between(1, C::most_heads));
  visit(Key{"normalize", "mixtral: weights of a token's experts add up to one"}, c.normalize);
  visit(Key{"route_scale", "mixtral: factor of the weights"}, c.route_scale, above_up_to(0, largest_factor));
  visit(Key{"route_on_input", "mixtral: weights are factors of what experts read"}, c.route_on_input);
  visit(Key{"router_bias", "mixtral: the router has biases"}, c.router_bias);
  visit(Key{"expert_bias", "mixtral: experts have biases"}, c.expert_bias);
  visit(Key{"expert_clamp", "mixtral: GPT-OSS's bounded experts, and their bound; 0: plain"}, c.expert_clamp,
        between(0, largest_factor));
}

template <class Visit>
void keys_of(ModelConfig& c, Visit&& visit) {
  using C = ModelConfig;
  std::vector<std::string> all;
  for (const Family* f : families()) all.emplace_back(f->name);
  visit(Key{"family", "what kind of model"}, c.family, Words{join(all, ", ")});
  visit(Key{"layers", "how many layers"}, c.layers, between(1, C::most_layers));
  visit(Key{"width", "width of the residual stream"}, c.width, between(1, C::most_width));
  visit(Key{"heads", "heads of attention"}, c.heads, between(1, C::most_heads));
  visit(Key{"kv_heads", "heads of keys and values", "heads"}, c.kv_heads, between(0, C::most_heads));
  visit(Key{"head_dim", "width of a head", "width / heads"}, c.head_dim, between(0, C::most_heads));
  visit(Key{"ff", "width of the feed-forward part", "4 width; llama, mixtral: 8/3 width"}, c.ff,
        between(0, C::most_ff));
  visit(Key{"context", "tokens per sequence"}, c.context, between(1, C::most_context));
  visit(Key{"vocab", "how many token ids there are"}, c.vocab, between(1, C::most_vocab));
  visit(Key{"pad_vocab", "the stored vocabulary is a multiple of this"}, c.pad_vocab, between(1, C::most_heads));
  visit(Key{"head_parts", "slices of the vocabulary in which the head is made; a pipeline may be cut between them"},
        c.head_parts, between(1, C::most_head_parts));
  visit(Key{"tied", "the head is the embedding", "the family's habit"}, c.tied);
  visit(Key{"activation", "between the feed-forward products; gelu is its tanh form", "the family's habit"},
        c.activation,
        Choices<std::optional<Activation>>{{"gelu", Activation::gelu},
                                           {"gelu_erf", Activation::gelu_erf},
                                           {"relu", Activation::relu},
                                           {"silu", Activation::silu}});
  visit(Key{"dropout", "dropout of what is added to the residual stream"}, c.dropout, from_below(0, 1));
  visit(Key{"embedding_dropout", "dropout of the embedding"}, c.embedding_dropout, from_below(0, 1));
  visit(Key{"attention_dropout", "dropout of attention's weights"}, c.attention_dropout, from_below(0, 1));
  visit(Key{"norm_eps", "what norms add below their root"}, c.norm_eps, above_up_to(0, largest_factor));
  visit(Key{"init_std", "standard deviation of the first weights"}, c.init_std, above_up_to(0, largest_factor));
  visit(Key{"rope_base", "base of rotary frequencies"}, c.rope_base, above_up_to(0, largest_factor));
  visit(Key{"qkv_bias", "llama: queries, keys and values have biases"}, c.qkv_bias);
  visit(Key{"out_bias", "llama: attention's result has a bias"}, c.out_bias);
  visit(Key{"mlp_bias", "llama: the feed-forward part has biases"}, c.mlp_bias);
  visit(Key{"gated", "llama: the feed-forward part has a gate"}, c.gated);
  visit(Key{"qk_norm", "llama: queries and keys are normalised per head"}, c.qk_norm);
  visit(Key{"hf_type", "the Hugging Face model type that export writes", "the plainest"}, c.hf_type,
        Words{"a model type, e.g. qwen3_moe"});
  relatives_of(c, visit);
  visit(Key{"experts", "mixtral: how many experts", "8 for mixtral"}, c.experts, between(0, C::most_heads));
  visit(Key{"top_k", "mixtral: experts per token"}, c.top_k, between(1, C::most_heads));
  visit(Key{"capacity", "mixtral: slots per expert over the even share; 0: no token is dropped"}, c.capacity,
        between(0, largest_factor));
  visit(Key{"balance", "mixtral: weight of the penalty for uneven experts"}, c.balance, between(0, largest_factor));
  visit(Key{"balance_pooled", "mixtral: balance over a microbatch instead of per sequence"}, c.balance_pooled);
  visit(Key{"router_z", "mixtral: weight of the penalty for large router logits"}, c.router_z,
        between(0, largest_factor));
  router_of(c, visit);
  visit.table(Key{"rope_scaling", ""}, c.rope_scaling);
}

template <class Visit>
void keys_of(DataSection& s, Visit&& visit) {
  visit(Key{"path", "files to train on, or globs"}, s.path);
  visit(Key{"mixture", "instead of path: several, with weights", "none"}, s.mixture);
  visit(Key{"format", "format of the files; auto: as they look"}, s.format,
        Choices<DataFormat>{{"auto", DataFormat::automatic},
                            {"text", DataFormat::text},
                            {"nanogpt", DataFormat::nanogpt},
                            {"llmc", DataFormat::llmc},
                            {"megatron", DataFormat::megatron}});
  visit(Key{"tokenizer", "what makes tokens of text: bytes, or a tokenizer.json or .model"}, s.tokenizer,
        Words{"bytes, none, or a file or directory"});
  visit(Key{"field", "of .jsonl files: what holds the text; messages: conversations"}, s.field, Words{"text"});
  visit(Key{"template", "of conversations: a Jinja file", "the one beside the tokenizer"}, s.chat_template,
        Words{"file"});
  visit(Key{"date", "of conversations: for templates that ask for it", "the day the run starts"}, s.date,
        Words{"2026-11-18"});
  visit(Key{"hash", "of samples of the tokens: a run says when they are others than before", "set when the run starts"},
        s.hash, Words{"16 digits"});
  visit(Key{"documents", "attention stays within documents"}, s.documents);
  visit(Key{"validation", "the part of the data that is held out, or files of their own"},
        ShareOrFiles{s.validation, s.validation_path});
}

template <class Visit>
void keys_of(TrainSection& s, Visit&& visit) {
  visit(Key{"steps", "steps of the optimizer"}, s.steps, at_least(1));
  visit(Key{"batch", "sequences per step, all ranks together"}, s.batch, between(1, 1 << 24));
  visit(Key{"microbatches", "parts of the batch that go through the model one after the other"}, s.microbatches,
        between(1, TrainSection::most_microbatches));
  visit(Key{"segments", "parts of every sequence that go through the model one after the other, or how long each is"},
        s.segments, between(1, TrainSection::most_segments));
  visit(Key{"seed", "seed of first weights, dropout and the order of data"}, s.seed, at_least(0));
  visit(Key{"dtype",
            "type of parameters, activations and messages; bf16 is computed in f32, with f32 masters; fp8, fp4: "
            "products, to plan with"},
        s.dtype,
        Choices<RunType>{{"f32", f32},
                         {"f64", f64},
                         {"bf16", bf16},
                         {"fp8", {bf16, ProductType::fp8}},
                         {"fp4", {bf16, ProductType::fp4}}}
            .never({"f16", "fp16", "float16", "half"},
                   "it ends at 65504: losses would have to be scaled up and gradients down",
                   "use bf16: it has the range of f32"));
  visit(Key{"precision", "bf16: parameters that are kept in f32 all the same, by name or a part of it", "none"},
        s.precision);
  visit(Key{"clip", "largest norm of all gradients together; 0: any"}, s.clip, at_least(0));
  visit(Key{"clip_late", "updates do not wait for the norm; a step that had to be clipped or skipped is made again"},
        s.clip_late);
  visit(Key{"validate", "steps between validations; 0: only at the end"}, s.validate, at_least(0));
  visit(Key{"validate_batches", "batches per validation, at most"}, s.validate_batches, at_least(1));
  visit(Key{"patience", "validations without a better loss after which the run ends; 0: it goes on"}, s.patience,
        at_least(0));
  visit(Key{"ema", "decay of the running average of parameters, which exports have; 0: there is none"}, s.ema,
        from_below(0, 1));
  visit(Key{"nonfinite", "a loss or norm that is no finite number: stop, skip the step, or continue"}, s.nonfinite,
        Choices<Nonfinite>{{"stop", Nonfinite::stop}, {"skip", Nonfinite::skip}, {"continue", Nonfinite::carry_on}});
  visit(Key{"exact", "the same bits for every parallel.data and train.microbatches"}, s.exact);
  visit(Key{"leaf", "exact: sequences that kernels see at a time"}, s.leaf, between(1, 1 << 24));
}

// `name` and `schedule` come first: they decide about the rest.
template <class Visit>
void keys_of(OptimizerSection& s, Visit&& visit) {
  visit(Key{"name", "which optimizer"}, s.name, names({"adamw", "lion", "muon", "sgd"}));
  visit(Key{"schedule", "course of the learning rate after the warmup"}, s.schedule,
        names({"constant", "cosine", "linear", "wsd"}));
  const auto of = [&](Key key, bool known) { return std::move(key).only(known, "optimizer", s.name); };
  const auto over_time = [&](Key key, bool known) { return std::move(key).only(known, "schedule", s.schedule); };
  const bool sgd = s.name == "sgd", muon = s.name == "muon";
  const Muon m;
  const AdamW a;
  const Lion l;
  const Sgd g;
  visit(
      Key{"lr", "the largest learning rate", fmt::format("adamw {}, lion {}, muon {}, sgd {}", a.lr, l.lr, m.lr, g.lr)},
      s.lr, above_up_to(0, largest_factor));
  visit(Key{"decay", "decay of weights, as a part of the rate",
            fmt::format("adamw {}, lion {}, muon {}, sgd {}", a.decay, l.decay, m.decay, g.decay)},
        s.decay, between(0, largest_factor));
  visit(of({"betas", "adamw, muon (of numbers), lion: decay of the running averages",
            fmt::format("adamw and muon [{}, {}], lion [{}, {}]", a.beta1, a.beta2, l.beta1, l.beta2)},
           !sgd),
        s.betas, between(0, 1));
  visit(of({"eps", "adamw, muon (of numbers): added to the root of the second average"}, s.name == "adamw" || muon),
        s.eps, above_up_to(0, largest_factor));
  visit(of({"momentum", "sgd, muon (of matrices): momentum", fmt::format("muon {}, sgd {}", m.momentum, g.momentum)},
           sgd || muon),
        s.momentum, between(0, 1));
  visit(of({"nesterov", "sgd, muon: Nesterov's momentum", fmt::format("muon {}, sgd {}", m.nesterov, g.nesterov)},
           sgd || muon),
        s.nesterov);
  visit(of({"scale",
            "muon: updates of matrices are as large as adamw's, times 0.2 sqrt(max(rows, columns)), or, as first "
            "published, times sqrt(max(1, columns / rows))"},
           muon),
        s.scale, Choices<Muon::Scale>{{"rms", Muon::Scale::rms}, {"original", Muon::Scale::original}});
  visit(of({"newton_schulz", "muon: steps by which a momentum is made nearly orthogonal"}, muon), s.newton_schulz,
        between(1, 100));
  visit(of({"others_lr", "muon: the rate of what adamw updates, times lr"}, muon), s.others_lr,
        above_up_to(0, largest_factor));
  visit(of({"numbers", "muon: matrices that adamw updates all the same: names, parts of them or globs"}, muon),
        s.numbers);
  visit(Key{"state", "type in which its states are kept; bf16: half the memory, rounded at random to either side"},
        s.state, Choices<DType>{{"f32", f32}, {"bf16", bf16}});
  visit(Key{"warmup", "steps of linear rise from 0"}, s.warmup, at_least(0));
  visit(over_time({"floor", "the last rate, as a part of lr"}, s.schedule != "constant"), s.floor, between(0, 1));
  visit(over_time({"stable", "wsd: where the decay starts, as a part of the run"}, s.schedule == "wsd"), s.stable,
        between(0, 1));
}

template <class Visit>
void keys_of(LoraSection& s, Visit&& visit) {
  visit(Key{"rank", "numbers between the two matrices of an adapter"}, s.rank, between(1, Lora::most_rank));
  visit(Key{"alpha", "what an adapter adds is multiplied with alpha / rank"}, s.alpha, above_up_to(0, largest_factor));
  visit(Key{"dropout", "dropout of what adapters read"}, s.dropout, from_below(0, 1));
  visit(Key{"targets", "weights that have adapters: names or globs of ours, modules of PEFT's, all, or exportable"},
        s.targets);
}

template <class Visit>
void keys_of(FinetuneSection& s, Visit&& visit) {
  visit(Key{"freeze", "parameters that are not trained: names, parts of them or globs; ! before one takes it back",
            "none"},
        s.freeze);
  visit.table(Key{"lora", "with lora adapters are trained, and all else is frozen"}, s.lora);
  visit(Key{"adapter", "a directory of PEFT's: the adapters start from it", "none"}, s.adapter, Words{"directory"});
}

template <class Visit>
void keys_of(Link& s, Visit&& visit) {
  visit(Key{"latency", "seconds that every message takes"}, s.latency, between(0, 1e6));
  visit(Key{"bandwidth", "bytes per second"}, s.bandwidth, above(0));
}

template <class Visit>
void keys_of(Machine& s, Visit&& visit) {
  visit(Key{"flops", "of an emulated device: operations per second"}, s.flops, above_up_to(0, largest_factor));
  visit(Key{"flops_bf16", "of an emulated device: operations on bf16 per second; 0: as many"}, s.flops_bf16,
        between(0, largest_factor));
  visit(Key{"bandwidth", "of an emulated device: bytes of memory per second"}, s.memory_bandwidth,
        above_up_to(0, largest_factor));
}

inline Choices<DeviceKind> devices() {
  Choices<DeviceKind> all;
  for (const DeviceKind d : device_kinds()) all.emplace_back(type_of(d).name, d);
  return all;
}
inline std::string_view devices_meaning() {
  static const std::string text = [] {
    std::vector<std::string> all;
    for (const DeviceKind d : device_kinds()) all.push_back(fmt::format("{}: {}", type_of(d).name, type_of(d).about));
    return "what ranks run on; " + join(all, "; ");
  }();
  return text;
}

// Those of [parallel] that are axes of the mesh.
template <class Visit>
void axes_of(ParallelSection& s, Visit&& visit) {
  const Range ranks = between(1, ParallelSection::most_ranks);
  visit(Key{"pipe", "pipeline actors"}, s.pipe, ranks);
  visit(Key{"data", "ranks that share the batch"}, s.names.data, between(1, ParallelSection::most_data));
  visit(Key{"replicas", "groups of data ranks: they share the batch, and zero cuts within each"}, s.names.replicas,
        ranks);
  visit(Key{"tensor", "ranks that share heads, feed-forward width and vocabulary"}, s.names.tensor, ranks);
  visit(Key{"expert", "ranks that share experts, and the batch elsewhere"}, s.names.expert, ranks);
  visit(Key{"context", "ranks that share the positions of a sequence"}, s.names.context, ranks);
  visit(Key{"depth", "ranks that share the batch and the storage of parameters"}, s.names.depth, ranks);
}

template <class Visit>
void keys_of(ParallelSection& s, Visit&& visit) {
  axes_of(s, visit);
  visit(Key{"sequence", "between matrix products positions are split over the tensor ranks"}, s.names.sequence);
  visit(Key{"exchange", "context: attention exchanges positions for heads"}, s.names.exchange);
  visit(Key{"zero", "over the data ranks are cut: 1 optimizer state, 2 gradients too, 3 parameters too"}, s.names.zero,
        between(0, 3));
  visit(Key{"regather", "backward gathers again what forward gathered"}, s.regather);
  visit(Key{"expert_rows",
            "how tokens get to experts that ranks share; auto: the faster one on the cluster or link, where neither is "
            "known exchange with more ranks than top_k"},
        s.expert_rows,
        Choices<ExpertRows>{
            {"auto", ExpertRows::automatic}, {"gather", ExpertRows::gather}, {"exchange", ExpertRows::exchange}});
  visit(Key{"expert_room",
            "rows that a rank has room for in an exchange, times the mean; it grows when a step needs more"},
        s.expert_room, between(1, 1024));
  visit(Key{"reshard", "how long parameters that are cut stay gathered"}, s.reshard,
        Choices<Reshard>{{"microbatch", Reshard::microbatch}, {"step", Reshard::step}});
  visit(Key{"overlap",
            "what collectives inside of tasks go on beside: nothing, other calls of the action, or also parts "
            "of the products that read or make what they carry"},
        s.overlap, Choices<Overlap>{{"none", Overlap::none}, {"calls", Overlap::calls}, {"chunks", Overlap::chunks}});
  visit(Key{"reduce", "type in which gradients are added up over ranks; with bf16 not beside backward"}, s.reduce,
        Choices<DType>{{"f32", f32}, {"bf16", bf16}});
  visit(Key{"mesh", "axes of one's own, for layout", "none"}, s.mesh);
  visit(Key{"layout", "dims of the model that are split, over what the keys above say", "none"}, s.layout);
  visit(Key{"cluster", "machines and links that ranks are on, for what is chosen by prediction", "not known"},
        s.cluster, Words{"a cluster file"});
  visit(Key{"schedule", "schedule of the pipeline"}, s.schedule,
        Words{join(schedule_names(), ", ") + ", or a CSV file"});
  visit(Key{"chunks", "stages per actor; 0: the schedule's default"}, s.chunks,
        between(0, ParallelSection::most_ranks));
  visit(Key{"stages", "pieces of the model that each stage takes; auto: balanced by cost"}, s.stages,
        AutoOrList{between(1, ParallelSection::most_stages)});
  visit(Key{"times", "what pieces took in a run like this one, as log.profile writes it, for stages and zb-auto",
            "costs of ops"},
        s.times, Words{"file"});
  visit(Key{"recompute", "what backward makes again instead of keeping it, of all stages or of each"}, s.recompute,
        Choices<Recompute>{{"none", Recompute::none},
                           {"full", Recompute::full},
                           {"layer", Recompute::layer},
                           {"selective", Recompute::selective}});
  visit(Key{"threads",
            "threads of each rank, which share the work of its kernels; 0: the cores of this machine over its ranks"},
        s.threads, between(0, ParallelSection::most_threads));
  visit(Key{"device", devices_meaning()}, s.device, devices());
  visit.table(Key{"link", "messages take as long as over such a link"}, s.link);
  visit.table(Key{"machine", ""}, s.machine);
  visit(Key{"timeout", "seconds without any progress after which a run is stopped; 0: never"}, s.timeout,
        between(0, longest_time));
  visit(Key{"start_timeout", "of processes: seconds that they wait for each other before the first step; 0: for ever"},
        s.start_timeout, between(0, longest_time));
}

template <class Visit>
void keys_of(CheckpointSection& s, Visit&& visit) {
  visit(Key{"every", "steps between checkpoints; the end of a run has one in any case"}, s.every, at_least(0));
  visit(Key{"keep", "how many checkpoints are kept; 0: none are written"}, s.keep, between(0, 1 << 20));
  visit(Key{"best", "the checkpoint of the best validation is kept, in best/ of the run directory"}, s.best);
  visit(Key{"timeout", "of processes: seconds that they wait for each other while one is saved; 0: for ever"},
        s.timeout, between(0, longest_time));
  visit(Key{"export", "a Hugging Face directory that is written at the end", "none"}, s.export_to, Words{"directory"});
  visit(Key{"export_adapter", "a directory in PEFT's format that gets the adapters at the end", "none"},
        s.export_adapter, Words{"directory"});
  visit(Key{"export_dtype", "type of the exported weights", "that of the run, f32 for bf16"}, s.export_dtype,
        Choices<std::optional<FileType>>{
            {"f32", FileType::F32}, {"f64", FileType::F64}, {"bf16", FileType::BF16}, {"f16", FileType::F16}});
}

template <class Visit>
void keys_of(PlanSection& s, Visit&& visit) {
  const AutoOrList ranks{between(1, ParallelSection::most_ranks), "[1, 2, 4]", true};
  visit(Key{"pipe", "sizes of parallel.pipe that `stretto plan` may choose; auto: any"}, s.pipe, ranks);
  visit(Key{"data", "of parallel.data"}, s.data, ranks);
  visit(Key{"tensor", "of parallel.tensor"}, s.tensor, ranks);
  visit(Key{"context", "of parallel.context"}, s.context, ranks);
  visit(Key{"expert", "of parallel.expert"}, s.expert, ranks);
  visit(Key{"zero", "of parallel.zero"}, s.zero, AutoOrList{between(0, 3), "[0, 1]", true});
  visit(Key{"chunks", "of parallel.chunks"}, s.chunks, ranks);
  visit(Key{"microbatches", "of train.microbatches"}, s.microbatches,
        AutoOrList{between(1, TrainSection::most_microbatches), "[8, 16]", true});
  visit(Key{"schedules", "schedules that may be chosen", "any"}, s.schedules);
  visit(Key{"recompute", "of parallel.recompute: none, selective, layer, full", "any"}, s.recompute);
  visit(Key{"memory", "share of a rank's memory that may be planned"}, s.memory, above_up_to(0, 1));
  visit(Key{"margin", "what is slower by less is as good"}, s.margin, between(0, 1));
  visit(Key{"ranks", "how many ranks there are; several: the best for each; auto: as the cluster file says"}, s.ranks,
        AutoOrList{between(1, 1 << 20), "[8, 16, 32]", true});
  visit(Key{"objective", "what is to be small; rank_hours: of several plan.ranks"}, s.objective,
        names({"time", "memory", "rank_hours"}));
}

template <class Visit>
void keys_of(LogSection& s, Visit&& visit) {
  visit(Key{"name", "name of the run", "that of the file"}, s.name);
  visit(Key{"dir", "the run directory", "runs/<name>-<date and time>"}, s.dir, Words{"directory"});
  visit(Key{"every", "steps per line on the console"}, s.every, at_least(1));
  visit(Key{"sample", "a prompt that the model goes on with every train.validate steps", "none"}, s.sample);
  visit(Key{"timeline", "the step whose timeline is measured and drawn; 0: none"}, s.timeline);
  visit(Key{"profile", "a file that gets what each piece of the model took in the last steps, for parallel.times",
            "none"},
        s.profile, Words{"file"});
}

}  // namespace stretto
