// What the op table holds for one op. An op is a constant-initialised `const Op`, defined in ops/<op>.cpp:
//
//   constinit const Op gelu_op{
//       .name = "gelu", .infer = rules::float_unary, .vjp = ..., .spread = ..., .cost = ..., .examples = ...};
#pragma once
#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "stretto/ir/graph.h"
#include "stretto/ir/tensor.h"

namespace stretto {

// What a node's work is beside a pass over elements: devices have rates of their own for these (cost/kernel.h).
struct ProductShape {
  double batches = 1, m = 1, n = 1, k = 1;  // so many products of m x k by k x n
};
struct AttentionShape {
  double heads = 1, queries = 1, keys = 1, head = 1, value = 1;  // heads: of all rows together
  double seen = 1;                                               // the share of the keys that a query may see
  bool backward = false;
};
struct Cost {
  double flops = 0, read = 0, written = 0;  // operations, bytes
  std::variant<std::monostate, ProductShape, AttentionShape> shape = {};
  Cost& operator+=(const Cost& c) { return flops += c.flops, read += c.read, written += c.written, *this; }
};

struct CollectiveShape;
struct View;
enum class Reduce : std::uint8_t { sum, max };
enum class CollectiveKind : std::uint8_t { reduce, gather, scatter, exchange, rows };  // see ir/collective.h

// What a node stands for whose value comes from outside or is written in the program.
enum class Leaf : std::uint8_t { none, argument, param, constant };

// Is a value dear to make again for backward (selective recompute)? A product is, unless it is made of two activations
// and larger than both; what is put together of others is if those are.
enum class Costly : std::uint8_t { no, product, yes, as_operands };

// What an op does with rows that lie where the dim they are grouped by is (Dim::by): it finds out where each goes,
// takes them there, or back. Its operand and its result are two iteration spaces.
enum class Regroups : std::uint8_t { none, plan, there, back };

// How an op behaves under any layout (docs: sharding rules), as data: it needs no mesh and no layout.
struct Spread {
  std::vector<std::pair<DimId, Reduce>> reduce;  // dims of the iteration space that are reduced away
  DimSet serial;                                 // dims that must be whole
  DimSet extra;                                  // dims of the iteration space that no operand and no result has
  std::vector<int> linear;                       // operands the op is linear in
  bool jointly = false;                          // linear in all of them together (add)
  std::vector<int> zeros = {};                   // further operands of which a zero makes a zero
  // Ops whose rows each name one place along dims (choose): a rank that lacks the place adds zeros to the row.
  struct Rows {
    int which = 0;            // the operand that names it
    DimSet of;                // the dims
    std::vector<int> masked;  // operands that it does not read there
  };
  std::optional<Rows> rows = {};
};

// An op whose elements at a position along `at` see other operands at that position along `over` and before it only.
struct LooksBack {
  DimId at, over;
  std::vector<int> operands;  // that have `over`
};

// A node seen by the functions of its op. During type inference node.results is empty.
struct OpCall {
  const Graph& graph;
  const Node& node;
  const Type& in(int i) const { return graph.type(node.operands[i]); }
  const Type& out(int i = 0) const { return node.results[i]; }
  int inputs() const { return int(node.operands.size()); }
  std::string describe(int operand) const { return graph.str(node.operands[operand]); }
  i64 elements(const Type& t) const { return graph.elements(t); }
  template <class T>
  const T& attrs() const {
    return node.attrs.as<T>();
  }
  // Cost of reading all operands and writing all results once, with `per_element` operations per result element.
  Cost streaming(double per_element) const;
  std::size_t scratch() const;  // bytes of workspace that the op's kernels may use
};

struct Vjp {
  Builder& builder;
  NodeId node;
  std::span<const Tensor> in, out, grad;  // a grad whose builder is null: no gradient arrives there
  std::span<const bool> wanted;           // per operand: does anybody need its gradient?
  template <class T>
  T attrs() const {
    return builder.graph.node(node).attrs.as<T>();
  }  // by value: the graph grows while vjp runs
};

// Where a result (or operand) lies inside another value's memory: result dim j is dim `from[j]` of it, every
// `step[j]`-th element (missing ones are 1); `start` holds one element index per dim of it (missing ones are 0). No
// data moves.
struct ViewMap {
  std::vector<std::optional<int>> from;  // none: the values are the same all along it
  std::vector<i64> start;
  std::vector<i64> step = {};
  i64 step_of(std::size_t j) const { return j < step.size() ? step[j] : 1; }
};

// An operand and a result that may share memory.
struct InPlace {
  int operand = 0, result = 0;
  bool operator==(const InPlace&) const = default;
};

// Examples are calls of the user's own functions; tests take gradients, placements and kernels from them.
class Examples {
 public:
  struct Source {
    Value value;
    double lo, hi;
    i64 below;
  };  // below > 0: integers in [0, below)
  struct Case {
    std::vector<Value> results;
  };
  Tensor real(Dims dims, double lo = -1, double hi = 1);
  Tensor real_wide(Dims dims, double lo = -1, double hi = 1);  // a statistic: f32 beside bf16
  Tensor ids(Dims dims, i64 below);
  void add(Tensor result) { cases.push_back({{result.value}}); }
  void add(std::initializer_list<Tensor> results);
  DType dtype = f64;
  Builder builder;
  std::vector<Source> sources;
  std::vector<Case> cases;
};

// What a random node's numbers are drawn under: a name. In a task's body it is a run-time argument, so that equal
// stages stay equal: the name is empty there, and `number` says which of the task's keys it is.
struct RandomKey {
  std::string name;
  i64 number = 0;
};

// An operand that holds ids: from 0 to below `limit`, or `none`, which is no id.
struct IdOperand {
  int operand = 0;
  i64 limit = 0;
  std::optional<i64> none = {};
};

struct Op {
  std::string_view name;
  std::vector<Type> (*infer)(const OpCall&) = nullptr;
  std::vector<Tensor> (*vjp)(const Vjp&) =
      nullptr;  // one per operand, null Tensor where there is none; null only with no_gradient
  Spread (*spread)(const OpCall&) = nullptr;
  Cost (*cost)(const OpCall&) = nullptr;
  void (*examples)(Examples&) = nullptr;
  std::vector<Tensor> (*decompose)(const OpCall&, std::span<const Tensor>) = nullptr;  // when a serial dim is split
  std::size_t (*scratch)(const OpCall&) = nullptr;        // bytes of workspace its kernels may use
  ViewMap (*view)(const OpCall&, int result) = nullptr;   // results are views of operand 0
  ViewMap (*into)(const OpCall&, int operand) = nullptr;  // operands are views of result 0 (stack, concat)
  std::array<std::optional<InPlace>, 2> in_place{};
  bool pointwise = false;  // elementwise with broadcast by name: may become part of a fused group
  // Pointwise ops: one element of the result from those of the operands, by definition. Tests hold kernels against it.
  double (*value)(const double* x) = nullptr;
  bool accumulates = false;  // its kernels can add to result 0 instead of overwriting it
  // The same op where a dim is cut into stripes of so many rows, whose dims are `to` (ops/stripe.h): its attributes.
  // None where an element's bits could then be others, or the dim is not one of rows; null: it is pointwise, or cannot.
  std::optional<Attrs> (*in_stripes)(const OpCall&, DimId whole, const DimSet& to, i64 rows) = nullptr;
  Attrs (*widened)(const Attrs&) = nullptr;  // of bf16 operands: the same op with result 0 in f32, not rounded
  std::optional<LooksBack> (*looks_back)(const OpCall&) = nullptr;  // null or none: it may see all
  bool group = false;                                               // several pointwise nodes that became one
  bool retypes = false;     // the same numbers in another type: of parameters, every reader makes them anew
  bool own_memory = false;  // it is there to make memory of its own: no part of a group, not done in place
  Leaf leaf = Leaf::none;
  bool relocates = false;      // its result holds its operand's elements, and zeros
  bool layout_change = false;  // operand and result are two iteration spaces, and shards move from one to the other
  Regroups regroups = Regroups::none;
  bool starts_piece = false;    // its operand is of the piece before: the pipeline may be cut between the two
  Costly costly = Costly::no;   // its results
  bool keeps_operands = false;  // selective recompute keeps them as if they were costly
  RandomKey (*key)(const Attrs&) = nullptr;  // random ops: what their numbers are drawn under
  Attrs (*rekeyed)(const Attrs&, RandomKey) = nullptr;
  // Collectives: their kind, and what they do on such memory; everything but kind, dtype and members (see
  // ir/collective.h).
  std::optional<CollectiveKind> collective_kind{};
  CollectiveShape (*collective)(const OpCall&, const View& in, const View& out) = nullptr;
  bool no_gradient = false;
  // Which operand holds ids or labels, and which there are.
  IdOperand (*ids)(const OpCall&) = nullptr;
  // What is wrong with an id, a label or a position that its kernels, or who looked before them, found outside of
  // [0, limit).
  Error (*out_of_range)(const OpCall&, i64 value, i64 limit) = nullptr;

  bool elementwise() const { return pointwise || group; }
  bool given() const { return leaf == Leaf::argument || leaf == Leaf::param; }
};

// OP(x) in ops/ops.def for every op.
std::span<const Op* const> all_ops();

}  // namespace stretto
