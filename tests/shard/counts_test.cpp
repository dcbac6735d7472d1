// What has to go over the wire, exactly: kind, axes, elements of a rank's operand, and how often.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <set>

#include "shard/traced.h"
#include "stretto/shard/epilogue.h"
#include "stretto/shard/layout_of.h"
#include "stretto/shard/shard.h"
#include "stretto/step/split.h"

namespace stretto {
namespace {
using test::traced;
using testing::IsEmpty;

constexpr i64 L = 3, B = 8, S = 16, M = 32, N = 4, H = 32, F = 128, V = 48;  // H: heads times head

ModelConfig config(std::string family) {
  ModelConfig c{.family = std::move(family), .layers = L, .width = M, .heads = N, .ff = F, .context = S, .vocab = V};
  if (c.family == "llama") c.kv_heads = 2;
  return c;
}

enum class When { forward, backward };
// "AR(tensor) 512" -> how many
using Counts = std::map<std::string, int>;

std::string short_name(const std::string& kind) {
  return kind == "exchange_rows"    ? "XR"
         : kind == "all_reduce"     ? "AR"
         : kind == "all_gather"     ? "AG"
         : kind == "reduce_scatter" ? "RS"
                                    : "A2A";
}

void count(Counts& to, const Collective& c) {
  std::string axes;
  for (const std::string& a : c.axes) axes += (axes.empty() ? "" : ",") + a;
  ++to[fmt::format("{}({}) {}", short_name(c.kind), axes, c.elements)];
}

// Pieces 2 i + 1 and 2 i + 2 are layer i; 0 is the embedding, the last one the head.
Counts layer(const Sharded& s, When when, int i) {
  Counts all;
  for (const Collective& c : s.collectives)
    if ((c.piece == 2 * i + 1 || c.piece == 2 * i + 2) && c.backward == (when == When::backward)) count(all, c);
  return all;
}
Counts piece(const Sharded& s, When when, int p) {
  Counts all;
  for (const Collective& c : s.collectives)
    if (c.piece == p && c.backward == (when == When::backward)) count(all, c);
  return all;
}
constexpr int head_piece = 2 * L + 1;

// Every layer has the same; bytes are 8 per element in f64.
void expect_layers(const Sharded& s, const Counts& forward, const Counts& backward) {
  for (int i = 0; i < L; ++i) {
    EXPECT_EQ(layer(s, When::forward, i), forward) << "layer " << i;
    EXPECT_EQ(layer(s, When::backward, i), backward) << "layer " << i;
  }
  for (const Collective& c : s.collectives) EXPECT_EQ(c.bytes, std::size_t(c.elements) * 8);
  EXPECT_THAT(s.warnings, IsEmpty());
  split(s.graph);  // tasks can be made of it
}

Sharded named(const std::string& family, const ParallelNames& names, ShardOptions o = {}) {
  const test::Traced t = traced(make_model(config(family), B));
  const NamedLayout n = layout_of(names, t.step.graph.dims);
  o.storage = n.storage;
  return shard(t.step, n.mesh, n.layout, o);
}
Sharded explicitly(const std::string& family, const Mesh& mesh, const Layout& layout, const ShardOptions& o = {}) {
  return shard(traced(make_model(config(family), B)).step, mesh, layout, o);
}

std::string of(std::string_view what, i64 elements) { return fmt::format("{} {}", what, elements); }

Counts per_step(const Sharded& s, std::string_view of_what) {
  Counts all;
  for (const Collective& c : per_step_collectives(s))
    if (c.cause.starts_with(of_what)) count(all, c);
  return all;
}
int total(const Counts& c) {
  int n = 0;
  for (const auto& [what, k] : c) n += k;
  return n;
}

TEST(Counts, Data) {
  for (const char* family : {"gpt2", "llama", "mlp"}) {
    const Sharded s = named(family, {.data = 4});
    EXPECT_THAT(s.collectives, IsEmpty());
    EXPECT_EQ(total(per_step(s, "gradient")), int(s.params.size()));
    for (const auto& [what, n] : per_step(s, "gradient")) EXPECT_TRUE(what.starts_with("AR(data)")) << what;
    EXPECT_EQ(per_step(s, "output"), (Counts{{"AR(data) 1", 2}}));  // the sum and the count of the loss
    EXPECT_EQ(per_step(s, "squared"), Counts{});                    // every rank holds all of every gradient
  }
}

TEST(Counts, Tensor) {
  const i64 b = B / 2;
  for (const char* family : {"gpt2", "llama"}) {
    const Sharded s = named(family, {.data = 2, .tensor = 2});
    const Counts two{{of("AR(tensor)", b * S * M), 2}};
    expect_layers(s, two, two);
    EXPECT_EQ(piece(s, When::forward, 0), (Counts{{of("AR(tensor)", b * S * M), 1}}));
    EXPECT_EQ(piece(s, When::backward, 0), Counts{});
    // 1 maximum and 2 sums per position; logits never cross the wire
    EXPECT_EQ(piece(s, When::forward, head_piece), (Counts{{of("AR(tensor)", b * S), 3}}));
    EXPECT_EQ(piece(s, When::backward, head_piece), (Counts{{of("AR(tensor)", b * S * M), 1}}));
    for (const auto& [what, n] : per_step(s, "gradient")) EXPECT_TRUE(what.starts_with("AR(data)")) << what;
    EXPECT_EQ(per_step(s, "squared"), (Counts{{of("AR(tensor)", i64(s.params.size())), 1}}));
  }
}

TEST(Counts, Mlp) {
  const Sharded s = named("mlp", {.data = 2, .tensor = 2});
  for (int i = 0; i < L; ++i) {
    EXPECT_EQ(piece(s, When::forward, i + 1), (Counts{{of("AR(tensor)", B / 2 * S * M), 1}}));
    EXPECT_EQ(piece(s, When::backward, i + 1), (Counts{{of("AR(tensor)", B / 2 * S * M), 1}}));
  }
}

TEST(Counts, Sequence) {
  const i64 b = B / 2, t = 2;
  const std::string ag = of("AG(tensor)", b * S * M / t), rs = of("RS(tensor)", b * S * M);
  for (const char* family : {"gpt2", "llama"}) {
    Sharded s = named(family, {.data = 2, .tensor = 2, .sequence = true});
    expect_layers(s, {{ag, 2}, {rs, 2}}, {{ag, 2}, {rs, 2}});
    EXPECT_EQ(piece(s, When::forward, 0), (Counts{{rs, 1}}));
    EXPECT_EQ(piece(s, When::backward, 0), (Counts{{ag, 1}}));
    EXPECT_EQ(piece(s, When::forward, head_piece), (Counts{{ag, 1}, {of("AR(tensor)", b * S), 3}}));
    EXPECT_EQ(piece(s, When::backward, head_piece), (Counts{{rs, 1}}));
    // Norms, biases after a row-parallel product and positions see a part of the sequence only.
    for (const ShardedGradient& g : s.gradients) {
      const std::string& name = s.params[g.param].name;
      const bool norm = name.find("ln_") != std::string::npos || name.find("norm") != std::string::npos;
      const bool part = norm || name.ends_with("o.bias") || name.ends_with("down.bias") || name == "wpe";
      EXPECT_EQ(g.pending, part ? (AxisNames{"data", "tensor"}) : (AxisNames{"data"})) << name;
    }
    s = named(family, {.data = 2, .tensor = 2, .sequence = true}, {.regather = true});
    expect_layers(s, {{ag, 2}, {rs, 2}}, {{ag, 4}, {rs, 2}});
  }
}

// Bytes that forward keeps for backward in the pieces of one layer, on one rank.
std::size_t kept(const StepGraph& g, int layer) {
  const Step step = split(g);
  std::size_t bytes = 0;
  for (const CrossValue& v : step.values) {
    const Task& made = step.tasks[v.producer];
    if (made.part != Part::F) continue;
    // What a layer gets from the one before is counted there.
    const bool here = made.piece == PieceId(2 * layer + 1) || made.piece == PieceId(2 * layer + 2);
    const bool read = std::any_of(v.consumers.begin(), v.consumers.end(), [&](TaskId c) {
      return step.tasks[c].part == Part::I || step.tasks[c].part == Part::W;
    });
    if (here && read) bytes += v.bytes;
  }
  return bytes;
}

// Of t ranks each keeps 1/t of what one would keep: norms, dropout and the residual stream with `sequence` alone, the
// inputs of the column-parallel products too when they are gathered again.
TEST(Counts, ActivationsWithSequence) {
  for (const char* family : {"gpt2", "llama"})
    for (const int t : {2, 4}) {
      ModelConfig c = config(family);
      c.dropout = 0.1, c.kv_heads = family == std::string("llama") ? 4 : 0;
      const StepGraph step = traced(make_model(c, B)).step;
      const auto sharded = [&](bool sequence, bool regather) {
        const NamedLayout n = layout_of({.tensor = t, .sequence = sequence}, step.graph.dims);
        return kept(shard(step, n.mesh, n.layout, {.regather = regather}).graph, 1);
      };
      const std::size_t alone = kept(step, 1), gathered = 2 * std::size_t(B * S * M) * 8;
      EXPECT_EQ(sharded(true, true) * std::size_t(t), alone) << family << " over " << t;
      EXPECT_EQ(sharded(true, false), sharded(true, true) + gathered - gathered / std::size_t(t)) << family;
      EXPECT_GT(sharded(false, false), sharded(true, false)) << family;
    }
}

const Layout rows_columns{{"model", "x"}, {"heads", "y"}, {"ff", "y"}, {"vocab", "y"}};

TEST(Counts, RowsAndColumns) {
  const i64 x = 2, y = 2;
  const Sharded s = explicitly("gpt2", {{"x", 2}, {"y", 2}}, rows_columns);
  expect_layers(s,
                {{of("AR(x)", B * S), 4},
                 {of("AR(x)", B * S * H / y), 3},
                 {of("AR(x)", B * S * F / y), 1},
                 {of("AR(y)", B * S * M / x), 2}},
                {{of("AR(x)", B * S), 4},
                 {of("AR(x)", B * S * H / y), 1},
                 {of("AR(x)", B * S * F / y), 1},
                 {of("AR(y)", B * S * M / x), 2}});
}

TEST(Counts, RowsColumnsAndDepth) {
  const i64 x = 2, y = 2, z = 2, b = B / z;
  Layout layout = rows_columns;
  layout.push_back({"batch", "z"});
  const Sharded s =
      explicitly("gpt2", {{"x", 2}, {"y", 2}, {"z", 2}}, layout, {.storage = {.state = "z", .params = "z"}});
  Counts forward = layer(s, When::forward, 1), backward = layer(s, When::backward, 1);
  Counts gathers_forward, gathers_backward;
  for (auto [all, gathers] : {std::pair{&forward, &gathers_forward}, {&backward, &gathers_backward}})
    for (auto it = all->begin(); it != all->end();) {
      if (it->first.starts_with("AG(z)"))
        gathers->insert(*it), it = all->erase(it);
      else
        ++it;
    }
  EXPECT_EQ(forward, (Counts{{of("AR(x)", b * S), 4},
                             {of("AR(x)", b * S * H / y), 3},
                             {of("AR(x)", b * S * F / y), 1},
                             {of("AR(y)", b * S * M / x), 2}}));
  EXPECT_EQ(backward, (Counts{{of("AR(x)", b * S), 4},
                              {of("AR(x)", b * S * H / y), 1},
                              {of("AR(x)", b * S * F / y), 1},
                              {of("AR(y)", b * S * M / x), 2}}));
  EXPECT_EQ(total(gathers_forward), 12);  // every parameter of the layer
  EXPECT_EQ(total(gathers_backward), 6);  // those that backward needs: four matrices, two gains
  int scattered = 0;
  for (const auto& [what, n] : per_step(s, "gradient")) scattered += what.starts_with("RS(z)") ? n : 0;
  EXPECT_EQ(scattered, int(s.params.size()));
}

TEST(Counts, ContextGathered) {
  const i64 c = 2;
  const Sharded s = named("gpt2", {.context = 2});
  expect_layers(s, {{of("AG(context)", B * S * H / c), 2}}, {{of("RS(context)", B * S * H), 2}});
  for (const auto& [what, n] : per_step(s, "gradient")) EXPECT_TRUE(what.starts_with("AR(context)")) << what;
  const Sharded grouped = named("llama", {.context = 2});  // half as many keys and values
  expect_layers(grouped, {{of("AG(context)", B * S * H / 2 / c), 2}}, {{of("RS(context)", B * S * H / 2), 2}});
}

TEST(Counts, ContextExchanged) {
  const i64 c = 2;
  const Counts four{{of("A2A(context)", B * S * H / c), 4}};
  expect_layers(named("gpt2", {.context = 2, .exchange = true}), four, four);
  const Counts grouped{{of("A2A(context)", B * S * H / c), 2}, {of("A2A(context)", B * S * H / 2 / c), 2}};
  expect_layers(named("llama", {.context = 2, .exchange = true}), grouped, grouped);
  // Beside tensor parallelism heads are split twice.
  const Counts both{{of("A2A(context)", B * S * H / c / 2), 4}, {of("AR(tensor)", B * S * M / c), 2}};
  expect_layers(named("gpt2", {.tensor = 2, .context = 2, .exchange = true}), both, both);
}

TEST(Counts, Experts) {
  ModelConfig c = config("llama");
  c.family = "mixtral", c.experts = 4, c.capacity = 1, c.ff = 64;
  const i64 E = 4, C = 2 * S / E;
  const StepGraph step = traced(make_model(c, B)).step;
  const auto check = [&](const Mesh& mesh, const Layout& layout, int ranks, const AxisNames& experts,
                         const AxisNames& dense) {
    const Sharded s = shard(step, mesh, layout);
    const std::string exchange = "A2A(" + mesh.back().name + ")";
    const i64 slots = E * B / ranks * C;  // rows there and back, and what they count
    const Counts three{{of(exchange, slots * M), 2}, {of(exchange, slots), 1}};
    expect_layers(s, three, three);
    for (const ShardedGradient& g : s.gradients) {
      const Dims dims = s.graph.graph.named(s.params[g.param].type.dims);
      EXPECT_EQ(g.pending, dims[0].name == "experts" ? experts : dense) << s.params[g.param].name;
    }
  };
  check({{"data", 2}}, {{"batch", "data"}, {"experts", "data"}}, 2, {}, {"data"});
  check({{"data", 2}, {"expert", 2}}, {{"batch", {"data", "expert"}}, {"experts", "expert"}}, 4, {"data"},
        {"data", "expert"});
}

// The gradients of the router's weights are one number per slot.
TEST(Counts, ExpertsAndTensor) {
  ModelConfig c = config("llama");
  c.family = "mixtral", c.experts = 4, c.capacity = 1, c.ff = 64;
  const i64 E = 4, C = 2 * S / E, b = B / 4;
  const test::Traced t = traced(make_model(c, B));
  const NamedLayout n = layout_of({.data = 2, .tensor = 2, .expert = 2}, t.step.graph.dims);
  const Sharded s = shard(t.step, n.mesh, n.layout);
  const std::string exchange = of("A2A(expert)", E * b * C * M), sum = of("AR(tensor)", b * S * M);
  const std::string counts = of("A2A(expert)", E * b * C);
  expect_layers(s, {{exchange, 2}, {counts, 1}, {sum, 2}},
                {{exchange, 2}, {counts, 1}, {sum, 2}, {of("AR(tensor)", E * b * C), 1}});
}

// Without a capacity rows stay with their tokens: these are gathered once and their results added up once, each way.
// The hidden rows of a token's experts lie on different ranks, and nobody adds them up.
TEST(Counts, ExpertsWithoutDrops) {
  ModelConfig c = config("llama");
  c.family = "mixtral", c.experts = 4, c.ff = 64;
  const i64 k = c.top_k, b = B / 2;
  const test::Traced t = traced(make_model(c, B));
  const auto counted = [&](const ParallelNames& names, const Counts& forward, const Counts& backward) {
    const NamedLayout n = layout_of(names, t.step.graph.dims);
    const Sharded s = shard(t.step, n.mesh, n.layout);
    for (int i = 0; i < L; ++i) {
      EXPECT_EQ(layer(s, When::forward, i), forward) << "layer " << i;
      EXPECT_EQ(layer(s, When::backward, i), backward) << "layer " << i;
    }
    EXPECT_THAT(s.warnings, IsEmpty());
    split(s.graph);
  };
  const std::string tokens = of("AG(expert)", b * S * M), sums = of("RS(expert)", B * S * M);
  const std::string choices = of("AG(expert)", b * S * k);
  counted({.expert = 2}, {{tokens, 1}, {choices, 2}, {sums, 1}},
          {{tokens, 1}, {sums, 1}, {of("RS(expert)", B * S * k), 1}});
}

// With more ranks than experts per token rows travel: choices are gathered, then every row goes to its expert and back,
// with its weight, each way once. What comes has room of its own.
TEST(Counts, ExchangedRows) {
  ModelConfig c = config("llama");
  c.family = "mixtral", c.experts = 4, c.ff = 64;
  const i64 k = c.top_k, b = B / 2, sent = b * S * k, came = sent * 3 / 2;
  const test::Traced t = traced(make_model(c, B), f64, 1, ExpertRows::exchange);
  const NamedLayout n = layout_of({.expert = 2}, t.step.graph.dims);
  const Sharded s = shard(t.step, n.mesh, n.layout, {.room = 1.5});
  for (int i = 0; i < L; ++i) {
    EXPECT_EQ(layer(s, When::forward, i), (Counts{{of("AG(expert)", b * S * k), 1},
                                                  {of("XR(expert)", sent * M), 1},
                                                  {of("XR(expert)", sent), 1},
                                                  {of("XR(expert)", came * M), 1}}));
    EXPECT_EQ(layer(s, When::backward, i),
              (Counts{{of("XR(expert)", sent * M), 1}, {of("XR(expert)", came), 1}, {of("XR(expert)", came * M), 1}}));
  }
  EXPECT_THAT(s.warnings, IsEmpty());
  split(s.graph);
}

TEST(Counts, Zero) {
  const int d = 2;
  for (int stage = 1; stage <= 3; ++stage) {
    const Sharded s = named("gpt2", {.data = d, .zero = stage});
    const int params = int(s.params.size()), accumulators = int(s.gradients.size());
    int gathers = 0, scatters = 0;
    for (const Collective& c : s.collectives) gathers += c.kind == "all_gather", scatters += c.kind == "reduce_scatter";
    EXPECT_EQ(scatters, stage >= 2 ? accumulators : 0) << stage;
    EXPECT_EQ(gathers > 0, stage == 3) << stage;
    EXPECT_EQ(std::size_t(gathers + scatters), s.collectives.size());
    int per_step_scatters = 0;
    for (const auto& [what, n] : per_step(s, "gradient")) per_step_scatters += what.starts_with("RS(data)") ? n : 0;
    EXPECT_EQ(per_step_scatters, stage == 1 ? params : 0);
    EXPECT_EQ(total(per_step(s, "new values")), stage == 3 ? 0 : params);
    const Graph& g = s.graph.graph;
    for (const ShardedParam& p : s.params) {
      EXPECT_EQ(g.elements(p.updated), (p.elements + d - 1) / d) << p.name;
      EXPECT_EQ(g.elements(p.stored), stage == 3 ? (p.elements + d - 1) / d : p.elements) << p.name;
    }
    for (const ShardedGradient& a : s.gradients) {
      EXPECT_EQ(a.accumulated, stage >= 2 ? s.params[a.param].updated : s.params[a.param].type);
      EXPECT_EQ(a.pending, stage >= 2 ? AxisNames{} : AxisNames{"data"});
    }
    EXPECT_EQ(per_step(s, "squared"), (Counts{{of("AR(data)", params), 1}}));
  }
}

TEST(Counts, EqualLayersShareTheirBodies) {
  const Sharded s = named("gpt2", {.data = 2, .tensor = 2, .depth = 2, .sequence = true, .zero = 3});
  const Step step = split(s.graph);
  for (Part part : {Part::F, Part::I, Part::W})
    for (int p = 5; p < step.pieces - 1; ++p)
      EXPECT_EQ(step.find(part, PieceId(p))->body, step.find(part, PieceId(p - 2))->body) << name_of(part) << p;
}

// 96 layers: equal layers give equal bodies, whatever their number.
TEST(Counts, ManyLayers) {
  const test::Traced t = traced(
      make_model({.family = "gpt2", .layers = 96, .width = 1024, .heads = 16, .context = 1024, .vocab = 50304}, 1024),
      f32, 64);
  const NamedLayout n = layout_of({.data = 8, .tensor = 8, .sequence = true, .zero = 1}, t.step.graph.dims);
  Mesh mesh = n.mesh;
  mesh.insert(mesh.begin(), {"pipe", 16});
  const Sharded s = shard(t.step, mesh, n.layout, {.storage = n.storage});
  EXPECT_EQ(s.mesh, n.mesh);
  EXPECT_EQ(s.collectives.size(), 96 * 8 + 1 + 1 + 4 + 1u);
  std::set<const Graph*> bodies;
  for (const Task& task : split(s.graph).tasks) bodies.insert(task.body.get());
  EXPECT_LT(bodies.size(), 20u);
}

TEST(Counts, TextNamesEveryParameterAndCollective) {
  const Sharded s = named("gpt2", {.data = 2, .tensor = 2, .sequence = true, .zero = 1});
  const std::string text = s.str();
  for (const ShardedParam& p : s.params) EXPECT_NE(text.find(p.name), std::string::npos) << p.name;
  for (const char* part :
       {"mesh data=2 tensor=2, 4 ranks", "{vocab=24/tensor model=32}", "{batch=4/data seq_r=8/tensor model=32}",
        "h.*.ln_1/rename seq_r -> seq", "squared norms", "sum over data,tensor", "new values of wte"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

}  // namespace
}  // namespace stretto
