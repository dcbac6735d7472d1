#include "stretto/compile/inner/matrices.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "stretto/ir/op.h"

namespace stretto {
namespace {

struct Sides {  // in the parameter's own dims
  DimSet rows, columns, batch;
  bool operator==(const Sides&) const = default;
};

class MatrixFinder {
 public:
  explicit MatrixFinder(const Graph& g) : g_(g), readers_(g.nodes.size()) {
    for (std::size_t n = 0; n < g.nodes.size(); ++n)
      for (int k = 0; const Value& v : g.nodes[n].operands) readers_[v.node.value].push_back({NodeId(n), k++});
  }

  std::optional<MatrixDims> of(Value param) {
    const DimSet own = g_.type(param).dims;
    found_.reset();
    if (!look(param, own) || !found_ || found_->rows.empty() || found_->columns.empty()) return std::nullopt;
    const auto named = [&](const DimSet& set) { return g_.named(set); };
    return MatrixDims{.rows = named(found_->rows), .columns = named(found_->columns), .batch = named(found_->batch)};
  }

 private:
  struct Reader {
    NodeId node;
    int operand;
  };

  // `own`: what the value's dims are called in the parameter. False: it is no matrix.
  bool look(Value v, const DimSet& own) {
    for (const Reader& r : readers_[v.node.value]) {
      const Node& n = g_.node(r.node);
      if (n.op->retypes || n.op->layout_change) {
        if (!look({r.node, 0}, own)) return false;  // dims keep their order
      } else if (std::holds_alternative<ProductShape>(n.op->cost({g_, n}).shape)) {
        if (!add(sides(n, r.operand, v, own))) return false;
      } else {
        return false;
      }
    }
    return true;
  }

  Sides sides(const Node& n, int operand, Value v, const DimSet& own) const {
    const Spread spread = n.op->spread({g_, n});
    const DimSet& dims = g_.type(v).dims;
    Sides s;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      const bool summed = std::ranges::any_of(spread.reduce, [&](const auto& r) { return r.first == dims[i]; });
      bool shared = false;
      for (std::size_t k = 0; k < n.operands.size(); ++k)
        shared = shared || (int(k) != operand && contains(g_.type(n.operands[k]).dims, dims[i]));
      (summed ? s.rows : shared ? s.batch : s.columns).push_back(own[i]);
    }
    return s;
  }

  bool add(Sides s) {
    if (found_ && *found_ != s) return false;
    found_ = std::move(s);
    return true;
  }

  const Graph& g_;
  std::vector<std::vector<Reader>> readers_;
  std::optional<Sides> found_;
};

}  // namespace

IdVector<ParamId, std::optional<MatrixDims>> matrices_of(const StepGraph& s) {
  MatrixFinder finder(s.graph);
  IdVector<ParamId, std::optional<MatrixDims>> all;
  for (const Value param : s.params) all.push_back(finder.of(param));
  return all;
}

}  // namespace stretto
