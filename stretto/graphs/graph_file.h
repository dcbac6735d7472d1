// A model as data: a graph in a JSON file, as importers write it. Nothing in it is trusted; what is wrong is said with
// the node, where it came from, and what to do.
//
//   const GraphFile file = read_graph("llama.json");
//   Trainer trainer(compile(model_of(file), adamw({.lr = 1e-3}), {.microbatches = 4}));
//
//   {"version": 1,
//    "dims": [{"name": "batch", "size": 8, "batch": true}, {"name": "in", "size": 4}, {"name": "label", "size": 3}],
//    "nodes": [{"op": "input", "name": "x", "dims": ["batch", "in"]},
//              {"op": "ids", "name": "y", "dims": ["batch"]},
//              {"op": "param", "name": "w", "dims": ["in", "label"]},
//              {"op": "contract", "in": [0, 2], "over": ["in"], "scope": "head", "source": "model.py:12"}],
//    "loss": [{"kind": "cross_entropy", "name": "loss", "in": [3, 1], "over": "label"}]}
//
// Numbers that are many lie in a safetensors file beside it: "arrays": "llama.safetensors", and their name there
// instead of them.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "stretto/base/id.h"
#include "stretto/trace/trace.h"

namespace stretto {

struct GraphDim {
  enum class Kind { plain, batch, like, whole } kind = Kind::plain;
  std::string name;
  i64 size = 1;
  std::string like = {};   // of Kind::like: the dim whose axes it has; of Kind::whole: the one whose size it has
  std::string minus = {};  // of Kind::like: but for the axes of this one
};

using GraphDimIndex = Id<struct GraphDimTag>;
using GraphNodeIndex = Id<struct GraphNodeTag>;
using GraphOperand = std::variant<GraphNodeIndex, double>;
using GraphAttribute =
    std::variant<bool, i64, double, std::string, GraphDimIndex, std::vector<GraphDimIndex>, std::vector<double>>;
struct GraphNode {
  std::string op;
  std::vector<GraphOperand> operands;
  std::vector<std::pair<std::string_view, GraphAttribute>> attributes;  // names of the table of kinds
  std::string scope = {}, source = {};  // the module it stands in, the line it was made from
  int piece = 0;
};
struct GraphTerm : GraphNode {  // `op` is the kind of the term
  std::string name;
  double weight = 1;
};
struct GraphFile {
  std::string name;  // for messages
  std::vector<GraphDim> dims;
  std::vector<GraphNode> nodes;
  std::vector<GraphTerm> loss;
  std::string one_microbatch = {};    // why rows of a step cannot be cut into several; "": they can
  std::filesystem::path arrays = {};  // "arrays": first values of parameters, and numbers of `values`; "": none
};

GraphFile read_graph(const std::filesystem::path&);
// Without a folder there are no arrays.
GraphFile parse_graph(std::string_view json, std::string_view name, const std::filesystem::path& folder = {});

// How many places a row has: of the first input of ids, else of the first input.
i64 positions_of(const GraphFile&);
int pieces_of(const GraphFile&);
double parameter_count(const GraphFile&);

// `rows`: of a step, instead of those that the file says. The copy is shared by all traces of the model.
Model model_of(GraphFile, std::optional<i64> rows = {});

}  // namespace stretto
