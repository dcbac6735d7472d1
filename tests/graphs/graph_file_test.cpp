#include "stretto/graphs/graph_file.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

#include "stretto/graphs/inner/kinds.h"
#include "support/message.h"
#include "support/small_models.h"

namespace stretto {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* two_layers = R"({"version": 1,
 "dims": [{"name": "batch", "size": 8, "batch": true}, {"name": "in", "size": 4}, {"name": "hidden", "size": 6},
          {"name": "label", "size": 3}],
 "nodes": [{"op": "input", "name": "x", "dims": ["batch", "in"]},
           {"op": "ids", "name": "y", "dims": ["batch"]},
           {"op": "param", "name": "up", "dims": ["in", "hidden"]},
           {"op": "param", "name": "up.bias", "dims": ["hidden"], "decay": 0},
           {"op": "param", "name": "down", "dims": ["hidden", "label"]},
           {"op": "contract", "in": [0, 2], "over": ["in"]},
           {"op": "add", "in": [5, 3]},
           {"op": "gelu", "in": [6], "scope": "mlp", "source": "model.py:12"},
           {"op": "boundary", "in": [7]},
           {"op": "contract", "in": [8, 4], "over": ["hidden"]}],
 "loss": [{"kind": "cross_entropy", "name": "loss", "in": [9, 1], "over": "label", "weight": 0.5}]})";

Loss by_hand(Trace& t) {
  const Dim batch = t.batch("batch", 8), in{"in", 4}, hidden{"hidden", 6}, label{"label", 3};
  const Tensor x = t.input("x", {batch, in}), y = t.ids("y", {batch});
  const Tensor h =
      boundary(gelu(contract(x, t.param("up", {in, hidden}, {.init = zeros}), in) + t.bias("up.bias", hidden)));
  const Tensor down = t.param("down", {hidden, label}, {.init = zeros});
  return named("loss", 0.5 * cross_entropy(contract(h, down, hidden), y, label));
}

struct Trained {
  std::vector<double> losses;
  u64 hash = 0;
  bool operator==(const Trained&) const = default;
};
Trained trained(const Model& model, const Parallel& parallel = {}) {
  Trainer trainer(compile(model, adamw({.lr = 1e-2}), {.microbatches = 4, .dtype = f64}, parallel));
  for (const CompiledParam& p : trainer.compiled().params) {
    Array a = trainer.parameter(p.name);
    double* values = reinterpret_cast<double*>(a.bytes.data());
    for (std::size_t i = 0; i < a.bytes.size() / sizeof(double); ++i)
      values[i] = uniform_at(philox_key(3, p.name), i) - 0.5;
    trainer.set_parameter(p.name, a);
  }
  Trained t;
  for (u64 step = 0; step < 3; ++step) t.losses.push_back(trainer.step(random_batch(trainer.compiled(), 3, step)).loss);
  t.hash = trainer.parameters_hash();
  return t;
}

TEST(Graph, TrainsToTheBitsOfTheModelWrittenByHand) {
  const Model model = model_of(parse_graph(two_layers, "two.json"));
  const Trained serial = trained(by_hand);
  EXPECT_GT(serial.losses.front(), 0);
  EXPECT_EQ(trained(model), serial);
  EXPECT_EQ(trained(model, {.mesh = {{"pipe", 2}}, .schedule = "zb-h1"}), serial);
}

TEST(Graph, RowsOfAStepMayBeOthers) {
  const Compiled c = compile(model_of(parse_graph(two_layers, "two.json"), 24), sgd(), {.microbatches = 4});
  EXPECT_EQ(c.rows_per_step, 24);
}

TEST(Graph, MistakesOfShapeNameTheNodeAndItsSource) {
  std::string text = two_layers;
  const std::string right = R"("in": [8, 4], "over": ["hidden"])";
  text.replace(text.find(right), right.size(), R"("in": [8, 4], "over": ["in"], "scope": "head", "source": "m.py:7")");
  const Model model = model_of(parse_graph(text, "two.json"));
  EXPECT_THAT(input_refusal_of([&] { compile(model, sgd()); }),
              AllOf(HasSubstr("[contract]"), HasSubstr("'in'"), HasSubstr("(two.json: nodes[9], head, m.py:7)")));
}

// The text with one place changed, and what is said of it.
struct Wrong {
  std::string from, to, said;
};
class WrongGraph : public testing::TestWithParam<Wrong> {};
TEST_P(WrongGraph, IsRefusedWithItsPlace) {
  std::string text = two_layers;
  const auto at = text.find(GetParam().from);
  ASSERT_NE(at, std::string::npos);
  text.replace(at, GetParam().from.size(), GetParam().to);
  EXPECT_THAT(input_refusal_of([&] { parse_graph(text, "two.json"); }),
              AllOf(HasSubstr("[two.json"), HasSubstr(GetParam().said)));
}
INSTANTIATE_TEST_SUITE_P(
    Graph, WrongGraph,
    testing::Values(
        Wrong{R"("version": 1)", R"("version": 2)", "it reads version 1"},
        Wrong{R"("size": 4)", R"("size": 0)", "size"}, Wrong{R"("size": 4)", R"("size": 1e30)", "size"},
        Wrong{R"("name": "in")", R"("name": "batch")", "a name has one size"},
        Wrong{R"("op": "gelu")", R"("op": "gelo")", "did you mean 'gelu'?"},
        Wrong{R"("op": "gelu")", R"("op": "flash_attention_9")", "newer version"},
        Wrong{R"("in": [6])", R"("in": [7])", "reads node 7"}, Wrong{R"("in": [6])", R"("in": [-1])", "reads node -1"},
        Wrong{R"("in": [6])", R"("in": [6, 5])", "'gelu' takes 1"},
        Wrong{R"("in": [6])", R"("in": [{"number": 2}])", "a node's number"},
        Wrong{R"("in": [5, 3])", R"("in": [{"number": 2}, {"number": 1}])", "at least one operand is a tensor"},
        Wrong{R"("in": [6])", R"("in": "x")", "is no list"},
        Wrong{R"("over": ["in"])", R"("over": ["inn"])", "did you mean 'in'?"},
        Wrong{R"("over": ["in"])", R"("ovre": ["in"])", "over"},
        Wrong{R"("name": "down")", R"("name": "up")", "is taken by a node before it"},
        Wrong{R"({"op": "boundary", "in": [7]})", R"({"op": "boundary", "in": [7], "piece": 0})",
              "comes before piece 1"},
        Wrong{R"({"op": "boundary", "in": [7]})", R"({"op": "boundary", "in": [7], "piece": 99999})", "piece"},
        Wrong{R"("kind": "cross_entropy")", R"("kind": "hinge")", "kind"},
        Wrong{R"("in": [9, 1])", R"("in": [9])", "takes 2"}, Wrong{R"("batch": true)", R"("batch": 3)", "batch"},
        Wrong{R"("loss": [{)", R"("loss": [], "x": [{)", "no terms"}));

// What the file of each kind looks like: values 0 {batch a b}, 1 {batch a}, 2 ids {batch}, 3 {a b}, 4 {b}, 5 {e a c},
// 6 {batch e}, 7 {batch k} of ids, 8 a state.
constexpr const char* dims_and_inputs = R"({"version": 1,
 "dims": [{"name": "batch", "size": 4, "batch": true}, {"name": "a", "size": 4}, {"name": "b", "size": 6},
          {"name": "b2", "size": 2}, {"name": "bb", "size": 12}, {"name": "c", "size": 3}, {"name": "e", "size": 5},
          {"name": "k", "size": 2}, {"name": "n", "size": 2}, {"name": "q", "size": 4, "whole": true},
          {"name": "z", "size": 4, "like": "a"}],
 "nodes": [{"op": "input", "name": "x", "dims": ["batch", "a", "b"]}, {"op": "input", "name": "y", "dims": ["batch", "a"]},
           {"op": "ids", "name": "i", "dims": ["batch"]}, {"op": "param", "name": "w", "dims": ["a", "b"]},
           {"op": "param", "name": "v", "dims": ["b"]}, {"op": "param", "name": "experts", "dims": ["e", "a", "c"]},
           {"op": "input", "name": "s", "dims": ["batch", "e"]},
           {"op": "top_k", "in": [6], "over": "e", "choice": "k"}, {"op": "state", "name": "seen", "dims": ["a"]},
           )";
const std::map<std::string, std::string> example{
    {"abs", R"("in": [0])"},
    {"add", R"("in": [0, {"number": 2}])"},
    {"attention", R"("in": [0, 10, 10], "query": "a", "key": "q", "head": "b", "causal": true, "scale": 0.5)"},
    {"boundary", R"("in": [0])"},
    {"broadcast", R"("in": [1], "dims": ["batch", "a", "b"])"},
    {"cast", R"("in": [2], "to": "run")"},
    {"choose", R"("in": [1, 5, 7], "expert": "e", "out": ["batch", "c"])"},
    {"concat", R"("in": [0, 0], "along": ["b"], "to": "bb")"},
    {"contract", R"("in": [0, 3], "over": ["b"], "along": ["a"])"},
    {"cos", R"("in": [0])"},
    {"div", R"("in": [{"number": 1.5}, 0])"},
    {"dropout", R"("in": [0], "rate": 0.1, "name": "drop")"},
    {"embedding", R"("in": [3, 2], "vocab": "a")"},
    {"equal", R"("in": [0, {"number": 0}])"},
    {"erf", R"("in": [0])"},
    {"exp", R"("in": [0])"},
    {"fold", R"("in": [0], "from": ["a", "b"], "to": "bb", "steps": [2, 1])"},
    {"gelu", R"("in": [0])"},
    {"gelu_erf", R"("in": [0])"},
    {"greater", R"("in": [0, 3])"},
    {"greater_equal", R"("in": [0, 3])"},
    {"ids", R"("name": "more", "dims": ["batch"])"},
    {"index", R"("in": [0], "dim": "a", "at": 3)"},
    {"input", R"("name": "more", "dims": ["batch"])"},
    {"iota", R"("dim": "a")"},
    {"layer_norm", R"("in": [0, 4, 4], "over": "b", "eps": 1e-6)"},
    {"less", R"("in": [0, 3])"},
    {"less_equal", R"("in": [0, 3])"},
    {"log", R"("in": [0])"},
    {"max", R"("in": [0], "over": ["b"])"},
    {"maximum", R"("in": [0, {"number": 0}])"},
    {"mean", R"("in": [0], "over": ["b"])"},
    {"minimum", R"("in": [0, 3])"},
    {"mul", R"("in": [0, 1])"},
    {"neg", R"("in": [0])"},
    {"not_equal", R"("in": [0, 3])"},
    {"observe", R"("in": [8, 11], "momentum": 0.2)"},
    {"outer", R"("in": [1, 6])"},
    {"pad", R"("in": [9], "from": "b2", "to": "b", "start": 3)"},
    {"param", R"("name": "more", "dims": ["a"], "decay": 0, "train": true, "rate": "lr.1")"},
    {"pick", R"("in": [6, 7], "over": ["e"], "out": ["batch", "k"])"},
    {"refold", R"("in": [0], "from": ["a", "b"], "to": ["bb", "n"])"},
    {"relu", R"("in": [0])"},
    {"rename", R"("in": [0], "from": ["a"], "to": ["z"])"},
    {"rms_norm", R"("in": [0, 4], "over": "b")"},
    {"rotary", R"("in": [0], "seq": "a", "head": "b", "frequencies": [1, 0.1, 0.01])"},
    {"rsqrt", R"("in": [0])"},
    {"sigmoid", R"("in": [0])"},
    {"sign", R"("in": [0])"},
    {"silu", R"("in": [0])"},
    {"sin", R"("in": [0])"},
    {"slice", R"("in": [0], "from": "b", "to": "b2", "start": 1, "step": 4)"},
    {"softmax", R"("in": [0], "over": "b")"},
    {"sqrt", R"("in": [0])"},
    {"square", R"("in": [0])"},
    {"stack", R"("in": [0, 0], "dim": "n")"},
    {"state", R"("name": "more", "dims": ["a"])"},
    {"stop_gradient", R"("in": [0])"},
    {"sub", R"("in": [0, 1])"},
    {"sum", R"("in": [0], "over": ["a", "b"])"},
    {"tanh", R"("in": [0])"},
    {"top_k", R"("in": [6], "over": "e", "choice": "k")"},
    {"unfold", R"("in": [0], "from": "b", "to": ["c", "n"], "steps": [2, 1])"},
    {"unpick", R"("in": [12, 7], "over": ["e"], "out": ["batch", "e"])"},
    {"values", R"("dims": ["n"], "numbers": [1, -2], "whole": true)"},
    {"where", R"("in": [13, 0, {"number": 0}])"},
};

TEST(GraphKinds, EachIsTracedFromItsExample) {
  const std::string more = R"({"op": "slice", "in": [0], "from": "b", "to": "b2"},
    {"op": "rename", "in": [0], "from": ["a"], "to": ["q"]}, {"op": "mean", "in": [1], "over": ["batch"]},
    {"op": "pick", "in": [6, 7], "over": ["e"], "out": ["batch", "k"]}, {"op": "greater", "in": [0, 3]},
    {"op": "rename", "in": [0], "from": ["a"], "to": ["q"]}, )";
  for (const NodeKind& k : node_kinds()) {
    const auto at = example.find(std::string(k.op));
    ASSERT_NE(at, example.end()) << "no example of " << k.op;
    const std::string text = std::string(dims_and_inputs) + more + R"({"op": ")" + at->first + "\", " + at->second +
                             R"(}], "loss": [{"kind": "mean", "name": "loss", "in": [1]}]})";
    EXPECT_NO_THROW({
      Trace t;
      model_of(parse_graph(text, "example.json"))(t);
    }) << k.op;
  }
}

TEST(GraphKinds, StandInTheOrderOfTheirNames) {
  std::string before;
  for (const NodeKind& k : node_kinds()) {
    EXPECT_LT(before, k.op);
    EXPECT_EQ(kind_of(k.op), &k);
    std::set<std::string_view> names;
    for (const AttributeRule& a : k.attributes) EXPECT_TRUE(names.insert(a.name).second) << k.op << " " << a.name;
    before = k.op;
  }
  EXPECT_EQ(kind_of("add "), nullptr);
}

}  // namespace
}  // namespace stretto
