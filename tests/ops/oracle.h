// What an op computes, written from its definition in plain doubles: one element of one result, named by its dims.
//
//   double softmax(const Element& e) {
//     const DimId over = e.attrs<SoftmaxAttrs>().over;
//     return std::exp(e.in(0)) / e.sum({over}, [&](const At& j) { return std::exp(e.in(0, j)); });
//   }
//
// Pointwise ops have it in their own entry (Op::value); all others stand in the tables of oracles_*.cpp. Nothing here
// is fast, looks at strides or knows a kernel. Padding is never read.
#pragma once
#include <functional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "stretto/ir/op.h"
#include "stretto/kernels/kernel.h"
#include "support/buffer.h"

namespace stretto::test {

// An index per dim.
class At {
 public:
  i64 operator[](DimId) const;
  At with(DimId, i64 index) const;  // another index, or one more dim

 private:
  std::vector<std::pair<DimId, i64>> indices_;
};

struct Element {
  const Graph& graph;
  const Node& node;
  std::span<const Buffer> operands;  // contiguous
  Now now;
  int result = 0;
  At at;

  template <class T>
  const T& attrs() const {
    return node.attrs.as<T>();
  }
  const DimSet& dims(int operand) const { return graph.type(node.operands[operand]).dims; }
  const DimSet& result_dims() const { return node.results[result].dims; }
  i64 size(DimId d) const { return graph.dim(d).valid(); }
  double in(int operand) const { return in(operand, at); }
  double in(int operand, const At&) const;  // dims that the operand lacks are passed over

  // All indices of `over`, the other dims as `from` has them.
  void each(const DimSet& over, const At& from, const std::function<void(const At&)>&) const;
  double sum(const DimSet& over, const At& from, const std::function<double(const At&)>&) const;
  double sum(const DimSet& over, const std::function<double(const At&)>& f) const { return sum(over, at, f); }
};

using Oracle = double (*)(const Element&);
struct NamedOracle {
  std::string_view op;
  Oracle value;
};
std::span<const NamedOracle> oracles_of_shapes();
std::span<const NamedOracle> oracles_of_sums();
std::span<const NamedOracle> oracles_of_attention();
std::span<const NamedOracle> oracles_of_ids();

std::vector<NamedOracle> named_oracles();                    // all of them
std::function<double(const Element&)> oracle_of(const Op&);  // empty when there is none

}  // namespace stretto::test
