#include "stretto/plan/inner/facts.h"

#include <algorithm>

#include "stretto/models/family.h"
#include "stretto/plan/inner/short_program.h"

namespace stretto {
namespace {

constexpr int longest_period = 4;  // of layers of different kinds that are measured one by one

template <class Function>
void for_all(PieceFacts& f, Function function) {
  for (double* x : {&f.F,      &f.I,           &f.B,         &f.R,        &f.placed_F, &f.placed_I, &f.placed_W,
                    &f.gather, &f.gather_back, &f.scatter,   &f.add,      &f.sums,     &f.update,   &f.kept_i,
                    &f.kept_w, &f.for_w,       &f.beside,    &f.beside_i, &f.beside_w, &f.params,   &f.gradients,
                    &f.state,  &f.products,    &f.attention, &f.elements})
    function(*x);
}

PieceFacts difference(PieceFacts a, const PieceFacts& b) {
  a += b * -1;
  return a;
}

// Of a layer one half: every number by the share that its own stage has of both.
PieceFacts share_of(const PieceFacts& layer, PieceFacts half, PieceFacts other) {
  PieceFacts r = layer;
  std::vector<double> mine, theirs;
  for_all(half, [&](double& x) { mine.push_back(x); });
  for_all(other, [&](double& x) { theirs.push_back(x); });
  std::size_t i = 0;
  for_all(r, [&](double& x) {
    const double both = mine[i] + theirs[i];
    x *= both > 0 ? mine[i] / both : 0.5;
    ++i;
  });
  return r;
}

PieceFacts with_bytes(PieceFacts f, const PieceOfShort& piece) {
  f.params = piece.params, f.gradients = piece.gradients, f.state = piece.state;
  return f;
}
// The mean of the halves of all layers.
PieceOfShort mean_half(const ShortProgram& p, bool attention) {
  PieceOfShort sum;
  double n = 0;
  for (const PieceOfShort& x : p.of_layers()) {
    if (x.attention != attention) continue;
    sum.params += x.params, sum.gradients += x.gradients, sum.state += x.state;
    ++n;
  }
  sum.params /= n, sum.gradients /= n, sum.state /= n;
  return sum;
}

// An end: its own stage, less what every stage takes.
PieceFacts end_of(const PieceFacts& measured, const PieceFacts& stage, const PieceOfShort& piece) {
  PieceFacts f = difference(measured, stage);
  for_all(f, [](double& x) { x = std::max(x, 0.0); });
  f.beside = measured.beside, f.beside_i = measured.beside_i, f.beside_w = measured.beside_w;
  return with_bytes(f, piece);
}

}  // namespace

PieceFacts& PieceFacts::operator+=(const PieceFacts& o) {
  F += o.F, I += o.I, B += o.B, R += o.R;
  placed_F += o.placed_F, placed_I += o.placed_I, placed_W += o.placed_W;
  products += o.products, attention += o.attention, elements += o.elements;
  gather += o.gather, gather_back += o.gather_back, scatter += o.scatter, add += o.add;
  sums += o.sums, update += o.update;
  kept_i += o.kept_i, kept_w += o.kept_w, for_w += o.for_w;
  beside += o.beside, beside_i += o.beside_i, beside_w += o.beside_w;
  params += o.params, gradients += o.gradients, state += o.state;
  return *this;
}

PieceFacts PieceFacts::operator*(double x) const {
  PieceFacts r = *this;
  for_all(r, [&](double& y) { y *= x; });
  return r;
}

Variant variant_of(const PlanProblem& p, const RunKeys& k) {
  return {.data = k.data,
          .tensor = k.tensor,
          .context = k.context,
          .expert = k.expert,
          .sequence = k.sequence,
          .zero = k.zero,
          .rows = k.rows(p.batch),
          .recompute = k.recompute};
}

Variant without_data(Variant v) {
  v.data = 1;
  v.zero = 0;
  return v;
}

ModelConfig shortened(const ModelConfig& model, int times) {
  ModelConfig m = model;
  const auto period = [](const std::string& kinds) { return std::max<i64>(1, std::ssize(kinds)); };
  i64 each = std::max(period(m.pattern), period(m.sparse));
  if (each > longest_period) {  // the kind that most layers have
    const auto keep_most = [](std::string& kinds) {
      const auto times = [&](char a) { return std::count(kinds.begin(), kinds.end(), a); };
      const auto most =
          std::max_element(kinds.begin(), kinds.end(), [&](char a, char b) { return times(a) < times(b); });
      if (most != kinds.end()) kinds = std::string(1, *most);
    };
    keep_most(m.pattern);
    keep_most(m.sparse);
    each = 1;
  }
  m.layers = each * times;
  return m;
}

StageFacts facts_of(const PlanProblem& problem, const Variant& v) {
  const ShortProgram p(problem, v);
  const double layers = shortened(problem.model, 1).layers;
  const PieceFacts layer = difference(p.two(), p.one()) * (1 / layers);
  StageFacts f;
  f.stage = difference(p.one(), layer * layers);
  f.stage.params = f.stage.gradients = f.stage.state = f.stage.sums = f.stage.update = 0;
  f.stage.gather = f.stage.gather_back = f.stage.scatter = f.stage.add = 0;
  const PieceFacts first = p.attention() * layers, second = difference(p.others(), p.attention() * (layers - 1));
  f.attention = with_bytes(share_of(layer, first, second), mean_half(p, true));
  f.mlp = with_bytes(share_of(layer, second, first), mean_half(p, false));
  f.embedding = end_of(p.embedding(), f.stage, p.pieces().front());
  f.head_parts = static_cast<int>(problem.model.head_parts);
  f.head = end_of(p.head(), f.stage, p.all_of_head()) * (1.0 / f.head_parts);
  f.message = p.message();
  f.before = p.before();
  f.tied = p.tied();
  f.scratch = p.scratch();
  f.kept = p.kept();
  return f;
}

}  // namespace stretto
