// A model's step as a graph, before any layout: what compile() makes of it first.
#pragma once
#include "stretto/autodiff/autodiff.h"
#include "stretto/ir/step_graph.h"
#include "stretto/models/family.h"
#include "stretto/ops/cast.h"
#include "stretto/ops/input.h"

namespace stretto::test {

struct Traced {
  StepGraph step;
  std::vector<std::string> params, inputs;
  std::vector<ParamOptions> options;
  struct Term {
    std::uint32_t sum, count, scale;  // outputs, outputs, scalars
    double weight;
  };
  std::vector<Term> terms;
  i64 rows = 0;  // per microbatch
};

inline Traced traced(const Model& model, DType dtype = f64, i64 microbatches = 1,
                     ExpertRows rows = ExpertRows::automatic) {
  Trace t({.dtype = dtype, .microbatches = microbatches, .expert_rows = rows});
  const Loss loss = model(t);
  Traced r;
  r.rows = t.rows_per_step / microbatches;
  StepGraph& s = r.step;
  for (const ParamInfo& p : t.params) {
    s.params.push_back(p.tensor.value);
    r.params.push_back(p.name);
    r.options.push_back(p.options);
  }
  for (const Tensor& in : t.inputs) {
    s.inputs.push_back(in.value);
    r.inputs.push_back(t.builder.graph.node(in.value).attrs.as<InputAttrs>().name);
  }
  for (const Tensor& x : t.scalars) s.scalars.push_back(x.value);
  std::vector<Root> roots;
  for (const LossTerm& term : loss.terms) {
    r.terms.push_back({std::uint32_t(s.outputs.size()), std::uint32_t(s.outputs.size() + 1),
                       std::uint32_t(s.scalars.size()), term.weight});
    s.outputs.push_back({term.name + ".sum", term.sum.value, false});
    s.outputs.push_back({term.name + ".count", term.count.value, true});
    s.scalars.push_back(term.scale.value);
    roots.push_back({term.sum, term.sum.dtype() == f64 ? term.scale : cast(term.scale, term.sum.dtype())});
  }
  for (const Metric& m : t.metrics) s.outputs.push_back({m.name, m.value.value, false});
  std::vector<Tensor> trained;
  std::vector<std::uint32_t> which;
  for (std::uint32_t i = 0; i < t.params.size(); ++i)
    if (t.params[i].options.trainable) trained.push_back(t.params[i].tensor), which.push_back(i);
  for (const Gradient& g : differentiate(t.builder, roots, trained))
    for (std::size_t k = 0; k < trained.size(); ++k)
      if (trained[k].value == g.of.value) s.gradients.push_back({which[k], g.piece, g.grad.value});
  s.graph = std::move(t.builder.graph);
  return r;
}

}  // namespace stretto::test
