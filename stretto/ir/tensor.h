// A handle: a builder and a value. Free functions (ops/*.h) make more of them.
//
//   Builder b;
//   Tensor x = input(b, "x", f32, {{"batch", 8}, {"model", 64}});
//   Tensor y = gelu(x) + x;
//   fmt::print("{}", b.graph.str());
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "stretto/ir/graph.h"

namespace stretto {

class Builder;

struct Tensor {
  Tensor() = default;
  Tensor(Builder* b, Value v) : builder(b), value(v) {}
  explicit operator bool() const { return builder != nullptr; }
  Dims dims() const;
  Dim dim(std::string_view name) const;  // an unknown name is an Error that lists the known ones
  const Type& type() const;
  DType dtype() const { return type().dtype; }
  std::string str() const;

  Builder* builder = nullptr;
  Value value;
};

// The only way to append to a graph: interns dims, runs the type rule.
class Builder {
 public:
  Builder() = default;
  explicit Builder(Graph g) : graph(std::move(g)) {}
  Builder(const Builder&) = delete;  // Tensors point here
  Builder& operator=(const Builder&) = delete;

  // The first result; the others are {value.node, 1}, ...
  Tensor emit(const Op&, std::vector<Tensor> operands, Attrs attrs = {});
  Tensor result(Tensor first, int index) { return {this, {first.value.node, std::uint8_t(index)}}; }
  DimId intern(const Dim&);  // same name, other size or origin: Error
  DimSet intern(const Dims&);
  std::uint32_t intern_scope(const std::string& scope);

  Graph graph;
  std::uint32_t scope = 0;
  // Set while gradients are being built: nodes then belong to this piece instead of the largest of their operands'.
  std::optional<std::uint16_t> force_piece;
  bool backward = false;
};

// The builder of the first tensor that has one; an Error naming `where` if there is none or they differ.
Builder& builder_of(std::string_view where, std::initializer_list<Tensor> tensors);

}  // namespace stretto
