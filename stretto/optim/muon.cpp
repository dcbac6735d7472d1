#include "stretto/optim/muon.h"

#include <algorithm>
#include <cmath>

#include "stretto/base/error.h"
#include "stretto/ops/add.h"
#include "stretto/ops/cast.h"
#include "stretto/ops/contract.h"
#include "stretto/ops/div.h"
#include "stretto/ops/extremum.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/rename.h"
#include "stretto/ops/sqrt.h"
#include "stretto/ops/square.h"
#include "stretto/ops/sub.h"
#include "stretto/ops/sum.h"

namespace stretto {
namespace {

// A quintic that pushes singular values towards 1: x -> a x + b x^3 + c x^5.
constexpr double quintic_a = 3.4445, quintic_b = -4.7750, quintic_c = 2.0315;

i64 valid_elements(const Dims& dims) {
  i64 n = 1;
  for (const Dim& d : dims) n *= d.valid();
  return n;
}

// The same dims under names with so many strokes more.
Dims stroked(Dims dims, const std::string& strokes) {
  for (Dim& d : dims) d.name += strokes;
  return dims;
}
Tensor renamed(Tensor x, const Dims& from, const Dims& to) {
  std::vector<Rename> pairs;
  for (std::size_t i = 0; i < from.size(); ++i) pairs.push_back({from[i], to[i]});
  return rename(x, pairs);
}

Dims joined_dims(Dims a, const Dims& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Newton and Schulz's iteration on the smaller side: U S V' becomes U S' V' with S' near 1.
Tensor nearly_orthogonal(Tensor x, const MatrixDims& m, const Muon& o) {
  const bool by_rows = valid_elements(m.rows) <= valid_elements(m.columns);
  const Dims &small = by_rows ? m.rows : m.columns, &large = by_rows ? m.columns : m.rows;
  const Dims other = stroked(small, "'"), third = stroked(small, "''");
  x = x / maximum(sqrt(sum(square(x), joined_dims(small, large))), o.eps);
  for (int step = 0; step < o.steps; ++step) {
    const Tensor gram = contract(x, renamed(x, small, other), large, along(m.batch));
    const Tensor next = renamed(gram, joined_dims(small, other), joined_dims(other, third));
    const Tensor squared = renamed(contract(gram, next, other, along(m.batch)), third, other);
    const Tensor turned =
        contract(gram * quintic_b + squared * quintic_c, renamed(x, small, other), other, along(m.batch));
    x = x * quintic_a + turned;
  }
  return x;
}

double scale_of(const MatrixDims& m, Muon::Scale scale) {
  const double in = valid_elements(m.rows), out = valid_elements(m.columns);
  return scale == Muon::Scale::rms ? 0.2 * std::sqrt(std::max(in, out)) : std::sqrt(std::max(1.0, out / in));
}

Slice by_matrix(Trace& t, Slice s, const Muon& o) {
  const Tensor lr = cast(t.scalar(s.rate) * s.lr_scale, s.param.dtype());
  const Tensor m = s.state.at("m") * o.momentum + s.grad * (1 - o.momentum);
  const Tensor direction = o.nesterov ? m * o.momentum + s.grad * (1 - o.momentum) : m;
  const Tensor step = s.part(nearly_orthogonal(s.whole(direction), *s.matrix, o));
  s.param = s.param * (1.0 - lr * (o.decay * s.decay)) - step * (lr * scale_of(*s.matrix, o.scale));
  s.state["m"] = m;
  return s;
}

void check_muon(const Muon& o) {
  if (o.steps < 1 || o.steps > 100)
    throw Error("optimizer", "muon with {} steps of Newton and Schulz", o.steps).hint("use 5, or from 1 to 100");
}

}  // namespace

Optimizer muon(Muon o) {
  check_muon(o);
  AdamW others = o.others;
  others.decay = o.decay;
  Optimizer opt{.name = "muon", .state = {"m", "v"}, .lr = constant_lr(o.lr)};
  opt.matrices = true, opt.numbers = o.numbers, opt.matrix_states = 1;
  opt.update = [o, rest = adamw(others).update](Trace& t, Slice s) {
    if (s.matrix) return by_matrix(t, std::move(s), o);
    s.lr_scale *= o.others_lr;
    return rest(t, std::move(s));
  };
  return opt;
}

}  // namespace stretto
