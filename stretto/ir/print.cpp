// Graphs as text: one node a line, with names, dims and scope.
#include "stretto/ir/graph.h"
#include "stretto/ir/op.h"

namespace stretto {

std::string attr_str(const Graph&, i64 v) { return fmt::format("{}", v); }
std::string attr_str(const Graph&, double v) { return fmt::format("{}", v); }
std::string attr_str(const Graph&, bool v) { return v ? "true" : "false"; }
std::string attr_str(const Graph&, DType v) { return std::string(name_of(v)); }
std::string attr_str(const Graph& g, DimId v) { return g.dim(v).name; }
std::string attr_str(const Graph&, const std::string& v) { return v; }

std::string Graph::str(const Type& t) const { return named(t.dims).str(); }

std::string Graph::str(Value v) const {
  const Node& n = node(v);
  if (const std::string name = n.attrs.name(); n.operands.empty() && !name.empty()) return name + str(type(v));
  const std::string& scope = scopes[n.scope];
  return fmt::format("{}{}{}{}{}", scope, scope.empty() ? "" : "/", n.op->name,
                     n.results.size() > 1 ? fmt::format(":{}", v.result) : "", str(type(v)));
}

std::string Graph::str() const {
  std::string s;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Node& n = nodes[i];
    std::string operands;
    for (Value v : n.operands)
      operands += fmt::format("{}%{}{}", operands.empty() ? "" : ", ", v.node.value,
                              node(v).results.size() > 1 ? fmt::format(":{}", v.result) : "");
    std::string results;
    for (const Type& t : n.results) results += fmt::format(" {} {}", name_of(t.dtype), str(t));
    const std::string attrs = n.attrs.str(*this);
    s += fmt::format("%{:<4} {}({}){}{} ->{}", i, n.op->name, operands, attrs.empty() ? "" : " ", attrs, results);
    s += fmt::format("  # piece {}{}{}{}\n", n.piece, n.backward ? ", backward" : "",
                     scopes[n.scope].empty() ? "" : ", ", scopes[n.scope]);
  }
  for (Value v : outputs) s += fmt::format("output %{}:{} {}\n", v.node.value, v.result, str(v));
  return s;
}

}  // namespace stretto
