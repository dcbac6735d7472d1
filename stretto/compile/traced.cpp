#include "stretto/compile/traced.h"

#include <algorithm>

#include "stretto/base/text.h"
#include "stretto/compile/inner/at_readers.h"
#include "stretto/compile/inner/matrices.h"
#include "stretto/compile/inner/unroll.h"
#include "stretto/ops/input.h"

namespace stretto {
namespace {

std::string input_name(const Tensor& t) { return t.builder->graph.node(t.value).attrs.as<InputAttrs>().name; }

template <class Moved>
void take_over(Moved& moved, Trace& t, Loss& loss) {
  const auto move = [&](Tensor& x) { x.value = moved(x.value); };
  for (ParamInfo& p : t.params) {
    move(p.tensor);
    if (p.seen) move(p.seen);
  }
  for (Tensor& x : t.inputs) move(x);
  for (Tensor& x : t.scalars) move(x);
  for (LossTerm& term : loss.terms) move(term.sum), move(term.count), move(term.scale);
  for (Metric& m : t.metrics) move(m.value);
  for (RowExchange& x : t.exchanges) move(x.lost);
  t.builder.graph = std::move(moved).graph();
}

void cut_sequences(Trace& t, Loss& loss) {
  const SegmentSizes& segments = t.options().segments;
  if (segments.number() == 1 && segments.sizes.empty()) return;
  constexpr std::string_view dim = "seq";
  Unroll unrolled(t.builder.graph, dim, sizes_of(segments, t.builder.graph, dim));
  take_over(unrolled, t, loss);
}

void place_at_readers(Trace& t, Loss& loss) {
  AtReaders moved(t.builder.graph);
  if (moved.needed()) take_over(moved, t, loss);
}

void check(const Trace& t, const Loss& loss) {
  if (loss.terms.empty())
    throw Error("model", "the loss has no terms").hint("return cross_entropy(...) or mean_of(...)");
  if (t.batch_name.empty())
    throw Error("model", "no batch dim was declared").hint("make it with t.batch(\"batch\", rows per step)");
  for (const LossTerm& term : loss.terms)
    if (!term.sum.dims().empty())
      throw Error("model", "the sum of loss term '{}' still has dims: {}", term.name, term.sum.str())
          .hint("sum over them: mean_of(x) or sum(x, x.dims())");
}

// Names of parameters and the parts between their dots.
std::vector<std::string> names_and_parts(const Trace& t) {
  std::vector<std::string> known;
  for (const ParamInfo& p : t.params) {
    known.push_back(p.name);
    for (std::string_view rest = p.name; !rest.empty();) {
      const std::size_t dot = std::min(rest.find('.'), rest.size());
      known.emplace_back(rest.substr(0, dot));
      rest.remove_prefix(std::min(dot + 1, rest.size()));
    }
  }
  return known;
}

// A name that no parameter has was misspelt.
struct Mention {
  const std::vector<std::string>& patterns;
  bool (*is)(const std::string& pattern, const std::string& name);
  std::string_view where, key;
};
void check_mention(const Trace& t, const Mention& m) {
  for (const std::string& said : m.patterns) {
    const std::string pattern = said.starts_with('!') ? said.substr(1) : said;
    if (std::any_of(t.params.begin(), t.params.end(), [&](const ParamInfo& p) { return m.is(pattern, p.name); }))
      continue;
    const auto near = nearest(pattern, names_and_parts(t));
    throw Error(std::string(m.where), "no parameter is called '{}'", pattern)
        .hint("{}", near ? fmt::format("did you mean '{}'?", *near)
                         : fmt::format("names are those of parameters, or parts of them: '{}'", t.params[0].name))
        .about({std::string(m.key)});
  }
}

void check_names(const Trace& t) {
  const TraceOptions& o = t.options();
  check_mention(t, {o.in_f32, [](const std::string& a, const std::string& b) { return is_name_or_part(a, b); },
                    "precision", "train.precision"});
  check_mention(t, {o.frozen, is_name_or_glob, "freeze", "finetune.freeze"});
  if (!o.frozen.empty() && t.training() &&
      std::none_of(t.params.begin(), t.params.end(), [](const ParamInfo& p) { return p.options.trainable; }))
    throw Error("freeze", "all of the {} parameters are frozen", t.params.size())
        .hint("take some back: freeze = [\"*\", \"!{}\"]", t.params.back().name)
        .about({"finetune.freeze"});
  if (o.frozen_dtype && t.training() &&
      std::all_of(t.params.begin(), t.params.end(), [](const ParamInfo& p) { return p.options.trainable; }))
    throw Error("frozen_dtype", "nothing is frozen: all of the {} parameters are trained", t.params.size())
        .hint("freeze some (finetune.lora, finetune.freeze), or leave it out")
        .about({"model.frozen_dtype"});
}

void take_sources(const Trace& t, Traced& out) {
  for (const ParamInfo& p : t.params) {
    out.step.params.push_back(p.tensor.value);
    out.params.push_back({.name = p.name, .dims = p.tensor.dims(), .dtype = p.tensor.dtype(), .options = p.options});
    if (p.seen) out.params.back().seen = p.seen.value;
  }
  for (const Tensor& in : t.inputs) {
    out.step.inputs.push_back(in.value);
    out.inputs.push_back({input_name(in), in.dims(), in.dtype()});
  }
  for (const Tensor& s : t.scalars) {
    out.step.scalars.push_back(s.value);
    out.scalars.push_back(input_name(s));
  }
}

OutputId add_output(StepGraph& step, std::string name, const Tensor& value, bool count) {
  return step.outputs.push_back({std::move(name), value.value, count});
}

void take_outputs(const Trace& t, const Loss& loss, Traced& out) {
  out.experts = t.experts;
  for (const LossTerm& term : loss.terms) {
    out.terms.push_back({.name = term.name,
                         .sum = add_output(out.step, term.name + ".sum", term.sum, false),
                         .count = add_output(out.step, term.name + ".count", term.count, true),
                         .scale = out.scalars.next_id(),
                         .weight = term.weight});
    out.step.scalars.push_back(term.scale.value);
    out.scalars.push_back(input_name(term.scale));
  }
  for (const Metric& m : t.metrics)
    out.metrics.push_back({m.name, add_output(out.step, m.name, m.value, false), m.how, m.value.dtype(),
                           t.builder.graph.elements(m.value.type()), m.value.dims().size()});
  for (const RowExchange& x : t.exchanges)
    out.exchanges.push_back({x.layer, add_output(out.step, x.layer + ".lost", x.lost, false)});
}

}  // namespace

Traced trace_step(const Model& model, const TraceOptions& options) {
  Trace t(options);
  Loss loss = model(t);
  check(t, loss);
  check_names(t);
  cut_sequences(t, loss);
  place_at_readers(t, loss);
  Traced out{.batch = t.batch_name, .rows_per_step = t.rows_per_step};
  take_sources(t, out);
  take_outputs(t, loss, out);
  out.step.graph = std::move(t.builder.graph);
  out.step.segments = options.segments.number();
  refuse(verify(out));
  const IdVector<ParamId, std::optional<MatrixDims>> matrices = matrices_of(out.step);
  for (ParamId i : matrices.ids()) out.params[i].matrix = matrices[i];
  return out;
}

std::vector<Fault> verify(const Traced& t) {
  std::vector<Fault> faults = verify(t.step);
  const auto bad = [&](std::string what) { faults.push_back({"traced step", std::move(what), ""}); };
  const auto as_many = [&](std::string_view what, std::size_t described, std::size_t made) {
    if (described != made) bad(fmt::format("{} {} are described and the graph has {}", described, what, made));
  };
  as_many("parameters", t.params.size(), t.step.params.size());
  as_many("inputs", t.inputs.size(), t.step.inputs.size());
  as_many("scalars", t.scalars.size(), t.step.scalars.size());
  as_many("outputs", 2 * t.terms.size() + t.metrics.size() + t.exchanges.size(), t.step.outputs.size());
  const auto made = [&](OutputId o) { return t.step.outputs.has(o); };
  for (const TracedTerm& x : t.terms) {
    if (!made(x.sum) || !made(x.count) || !t.step.outputs[x.count].count)
      bad(fmt::format("loss term '{}' has no sum and count among the outputs", x.name));
    if (!t.scalars.has(x.scale)) bad(fmt::format("loss term '{}' has no scale among the scalars", x.name));
  }
  for (const TracedMetric& m : t.metrics)
    if (!made(m.output)) bad(fmt::format("metric '{}' is not among the outputs", m.name));
  for (const TracedExchange& x : t.exchanges)
    if (!made(x.lost)) bad(fmt::format("what layer '{}' lost is not among the outputs", x.layer));
  if (!t.step.gradients.empty()) bad("it has gradients already");
  return faults;
}

}  // namespace stretto
