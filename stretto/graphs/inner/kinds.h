// The table of what may stand in a graph's file: one line per kind of node, with its operands and attributes.
//
//   const NodeKind* k = kind_of("contract");     // none: the file is of a newer version
//   Tensor y = k->make(NodeValues{...});
#pragma once
#include <span>

#include "stretto/graphs/graph_file.h"

namespace stretto {

// One node while it is traced. Attributes have the types that the table says: reading a file has checked it.
class NodeValues {
 public:
  NodeValues(Trace& t, const GraphNode& node, std::span<const Dim> dims, std::span<const Tensor> made)
      : t(t), node_(node), dims_(dims), made_(made) {}

  i64 operands() const { return std::ssize(node_.operands); }
  bool is_number(int i) const { return std::holds_alternative<double>(node_.operands[i]); }
  double number(int i) const { return std::get<double>(node_.operands[i]); }
  Tensor in(int i) const { return made_[std::get<GraphNodeIndex>(node_.operands[i]).value]; }
  std::vector<Tensor> all() const;

  Dim dim(std::string_view name) const { return at(*find<GraphDimIndex>(name)); }
  std::optional<Dim> dim_if(std::string_view name) const;
  Dims dims(std::string_view name) const;  // none given: no dims
  template <class T>
  T value(std::string_view name, T otherwise) const {
    const T* v = find<T>(name);
    return v ? *v : otherwise;
  }
  i64 whole(std::string_view name, i64 otherwise = 0) const { return value(name, otherwise); }
  const std::string& text(std::string_view name) const { return *find<std::string>(name); }

  Trace& t;

 private:
  template <class T>
  const T* find(std::string_view name) const {
    for (const auto& [key, value] : node_.attributes)
      if (key == name) return &std::get<T>(value);
    return nullptr;
  }
  const Dim& at(GraphDimIndex i) const { return dims_[i.value]; }

  const GraphNode& node_;
  std::span<const Dim> dims_;
  std::span<const Tensor> made_;
};

struct AttributeRule {
  enum class Type { flag, whole, number, text, dim, dims, numbers } type;
  std::string_view name;
  bool needed = false;
};
struct NodeKind {
  std::string_view op;
  int least = 0, most = 0;  // operands
  std::vector<AttributeRule> attributes;
  Tensor (*make)(const NodeValues&) = nullptr;
  bool numbers = false;  // may operands be numbers? One at most
};
std::span<const NodeKind> node_kinds();
const NodeKind* kind_of(std::string_view op);

struct TermKind {
  std::string_view op;
  int operands = 1;
  std::vector<AttributeRule> attributes;
  Loss (*make)(const NodeValues&) = nullptr;
};
std::span<const TermKind> term_kinds();

}  // namespace stretto
