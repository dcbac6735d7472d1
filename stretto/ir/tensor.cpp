#include "stretto/ir/tensor.h"

#include <algorithm>

#include "stretto/base/text.h"
#include "stretto/ir/op.h"

namespace stretto {
namespace {

// Far beyond any machine; sums of bytes over a whole program stay inside 64 bits.
constexpr i64 most_elements = i64(1) << 48;

void check_size(const Op& op, const Graph& graph, const Type& t) {
  i64 left = most_elements;
  for (const DimId d : t.dims) left /= graph.dim(d).size;
  if (left == 0)
    throw Error(op.name, "the result would have more than 2^48 elements: {}", graph.str(t))
        .hint("make one of its dims smaller");
}

}  // namespace

const Type& Tensor::type() const {
  if (!builder)
    throw Error("tensor", "this Tensor is empty").hint("make it with t.input, t.param or an operation first");
  return builder->graph.type(value);
}

Dims Tensor::dims() const {
  const DimSet& set = type().dims;  // refuses an empty Tensor
  return builder->graph.named(set);
}

Dim Tensor::dim(std::string_view name) const {
  std::vector<std::string> known;
  for (const Dim& d : dims()) {
    if (d.name == name) return d;
    known.push_back(d.name);
  }
  throw Error("dim", "{} has no dim '{}'", str(), name)
      .hint("its dims are {}", known.empty() ? "none" : join(known, ", "));
}

std::string Tensor::str() const { return builder ? builder->graph.str(value) : "(empty)"; }

Tensor Builder::emit(const Op& op, std::vector<Tensor> operands, Attrs attrs) {
  Node n{.op = &op, .attrs = std::move(attrs), .scope = scope, .backward = backward};
  n.operands.reserve(operands.size());
  for (const Tensor& t : operands) {
    if (!t.builder)
      throw Error(op.name, "operand {} is an empty Tensor", n.operands.size() + 1)
          .hint("make it with t.input, t.param or an operation first");
    if (t.builder != this)
      throw Error(op.name, "operand {} belongs to another traced program", n.operands.size() + 1)
          .hint("Tensors cannot be kept from one trace to the next");
    n.piece = std::max(n.piece, graph.node(t.value).piece);
    n.operands.push_back(t.value);
  }
  if (force_piece) n.piece = *force_piece;
  n.results = op.infer({graph, n});
  for (const Type& t : n.results)
    for (std::size_t i = 0; i < t.dims.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (t.dims[i] == t.dims[j])
          throw Error(op.name, "the result would have dim '{}' twice: {}", graph.dim(t.dims[i]).name, graph.str(t))
              .hint("rename one of the two first");
  for (const Type& t : n.results) check_size(op, graph, t);
  graph.nodes.push_back(std::move(n));
  return {this, {NodeId(graph.nodes.size() - 1), 0}};
}

DimId Builder::intern(const Dim& d) {
  if (d.name.empty()) throw Error("dim", "a dim needs a name").hint("Dim{{\"model\", 512}}");
  if (d.size < 1) throw Error("dim", "dim '{}' has size {}", d.name, d.size).hint("sizes are at least 1");
  for (std::size_t i = 0; i < graph.dims.size(); ++i) {
    const Dim& known = graph.dims[i];
    if (known.name != d.name) continue;
    if (known.size != d.size)
      throw Error("dim", "dim '{}' is {} here and was {} before", d.name, d.size, known.size)
          .hint("a name has one size in a program; give one of the two another name");
    if (known != d)
      throw Error("dim", "dim '{}' was made in two ways (like, whole or padded differ)", d.name)
          .hint("make it once and pass the Dim on, or use two names");
    return DimId(i);
  }
  graph.dims.push_back(d);
  STRETTO_ASSERT(graph.dims.size() < 65535);
  return DimId(graph.dims.size() - 1);
}

DimSet Builder::intern(const Dims& dims) {
  DimSet set;
  for (const Dim& d : dims) set.push_back(intern(d));
  return set;
}

std::uint32_t Builder::intern_scope(const std::string& s) {
  const auto it = std::find(graph.scopes.begin(), graph.scopes.end(), s);
  if (it != graph.scopes.end()) return it - graph.scopes.begin();
  graph.scopes.push_back(s);
  return graph.scopes.size() - 1;
}

Builder& builder_of(std::string_view where, std::initializer_list<Tensor> tensors) {
  Builder* found = nullptr;
  for (const Tensor& t : tensors)
    if (t.builder && !found) found = t.builder;
  if (!found)
    throw Error(where, "all operands are empty Tensors").hint("make them with t.input, t.param or an operation first");
  return *found;
}

}  // namespace stretto
