// A model's step as a graph, before any layout: what compile() makes of it first.
#pragma once
#include <algorithm>
#include <functional>

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
    OutputId sum, count;
    ScalarId scale;
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
    const OutputId sum = s.outputs.push_back({term.name + ".sum", term.sum.value, false});
    const OutputId count = s.outputs.push_back({term.name + ".count", term.count.value, true});
    r.terms.push_back({sum, count, s.scalars.push_back(term.scale.value), term.weight});
    roots.push_back({term.sum, term.sum.dtype() == f64 ? term.scale : cast(term.scale, term.sum.dtype())});
  }
  for (const Metric& m : t.metrics) s.outputs.push_back({m.name, m.value.value, false});
  std::vector<Tensor> trained;
  for (const ParamInfo& p : t.params)
    if (p.options.trainable) trained.push_back(p.tensor);
  for (const Gradient& g : differentiate(t.builder, roots, trained))
    for (ParamId p : s.params.ids())
      if (s.params[p] == g.of.value) s.gradients.push_back({p, PieceId(g.piece), g.grad.value});
  std::ranges::sort(s.gradients, std::less<>(), [](const StepGraph::Grad& g) { return std::pair(g.param, g.piece); });
  s.graph = std::move(t.builder.graph);
  return r;
}

}  // namespace stretto::test
