#include "stretto/compile/inner/differentiated.h"

#include <algorithm>
#include <functional>
#include <map>

#include "stretto/autodiff/autodiff.h"
#include "stretto/ops/cast.h"
#include "stretto/ops/copy.h"

namespace stretto {

StepGraph differentiated(const Traced& t) {
  StepGraph out = t.step;
  Builder b(std::move(out.graph));
  const auto tensor = [&](Value v) { return Tensor(&b, v); };
  std::vector<Root> roots;
  for (const TracedTerm& term : t.terms) {
    const Tensor sum = tensor(t.step.outputs[term.sum].value), scale = tensor(t.step.scalars[term.scale]);
    roots.push_back({sum, sum.dtype() == f64 ? scale : cast(scale, sum.dtype())});
  }
  std::vector<Tensor> trained;
  std::map<Value, ParamId> param_of;
  for (ParamId i : t.params.ids()) {
    if (!t.params[i].options.trainable) continue;
    trained.push_back(tensor(t.step.params[i]));
    param_of[t.step.params[i]] = i;
  }
  IdVector<ParamId, char> reaches(t.params.size(), 0);
  for (const Gradient& g : differentiate(b, roots, trained)) {
    const ParamId param = param_of.at(g.of.value);
    reaches[param] = 1;
    out.gradients.push_back({param, PieceId(g.piece), g.grad.value});
  }
  // A state's sum is made where gradients are: beside backward, by the piece that has seen it.
  for (ParamId i : t.params.ids()) {
    if (!t.params[i].seen) continue;
    const std::uint16_t piece = b.graph.node(*t.params[i].seen).piece;
    b.scope = b.graph.node(*t.params[i].seen).scope;
    b.force_piece = piece;
    b.backward = true;
    out.gradients.push_back({i, PieceId(piece), copy(tensor(*t.params[i].seen)).value});
  }
  std::ranges::sort(out.gradients, std::less<>(), [](const StepGraph::Grad& g) { return std::pair(g.param, g.piece); });
  for (ParamId i : t.params.ids())
    if (t.params[i].options.trainable && !reaches[i])
      throw Error("model", "parameter '{}' does not reach the loss", t.params[i].name)
          .hint("remove it, use it, or make it not trainable");
  out.graph = std::move(b.graph);
  refuse(verify(out));
  return out;
}

}  // namespace stretto
