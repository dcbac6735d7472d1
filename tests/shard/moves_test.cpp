// Which moves bring a value from one layout to another, on lists of axes written by hand; and the nodes that a rank's
// graph gets for them.
#include "stretto/shard/inner/moves.h"

#include <gmock/gmock.h>

#include "stretto/ops/ops.h"
#include "stretto/ops/param.h"
#include "stretto/shard/inner/local.h"

namespace stretto {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Kind = Move::Kind;

constexpr AxisId a(0), b(1), c(2);

using Dims2 = std::vector<AxisList>;
std::vector<Move> moves(const Dims2& now, const Dims2& goal, AxisSet pending = {}, Gather how = Gather::now) {
  return moves_between(now, goal, pending, how).list;
}

TEST(Moves, NothingMovesWhereNothingChanges) {
  EXPECT_THAT(moves({{a}, {b}}, {{a}, {b}}), IsEmpty());
  EXPECT_EQ(moves_between({{a}}, {{a}}, AxisList{b}, Gather::now).pending, AxisSet(AxisList{b}));
}

TEST(Moves, AFreeAxisIsCut) {
  EXPECT_THAT(moves({{}, {}}, {{a}, {b}}), ElementsAre(Move{.over = {a}, .change = {0, {a}}},  //
                                                       Move{.over = {b}, .change = {1, {b}}}));
  EXPECT_THAT(moves({{a}}, {{a, b, c}}), ElementsAre(Move{.over = {b, c}, .change = {0, {a, b, c}}}));
}

TEST(Moves, APendingAxisIsScattered) {
  const Moves m = moves_between({{}}, {{a}}, AxisList{a, b}, Gather::now);
  EXPECT_THAT(m.list, ElementsAre(Move{.kind = Kind::scatter, .over = {a}, .change = {0, {a}}}));
  EXPECT_EQ(m.pending, AxisSet(AxisList{b})) << "b is not wanted as blocks";
}

TEST(Moves, FreeAndPendingAxesInTurn) {
  EXPECT_THAT(moves({{}}, {{a, b, c}}, AxisList{b}),
              ElementsAre(Move{.over = {a}, .change = {0, {a}}},
                          Move{.kind = Kind::scatter, .over = {b}, .change = {0, {a, b}}},
                          Move{.over = {c}, .change = {0, {a, b, c}}}));
}

TEST(Moves, AnAxisGoesFromOneDimToAnotherByAnExchange) {
  EXPECT_THAT(moves({{a}, {}}, {{}, {a}}),
              ElementsAre(Move{.kind = Kind::exchange, .over = {a}, .change = {1, {a}}, .from = Move::Change{0, {}}}));
  EXPECT_THAT(moves({{b, a}, {}}, {{b}, {a}}),
              ElementsAre(Move{.kind = Kind::exchange, .over = {a}, .change = {1, {a}}, .from = Move::Change{0, {b}}}));
}

TEST(Moves, WhatNobodyWantsIsGathered) {
  EXPECT_THAT(moves({{a, b}}, {{}}), ElementsAre(Move{.kind = Kind::gather, .over = {a, b}, .change = {0, {}}}));
  EXPECT_THAT(moves({{a, b}}, {{a}}), ElementsAre(Move{.kind = Kind::gather, .over = {b}, .change = {0, {a}}}));
}

// The axis stands before another one, which must be given away first and is wanted in its place again.
TEST(Moves, WhatNoExchangeCanHaveIsGatheredInVain) {
  const std::vector<Move> all = moves({{a, b}, {}}, {{b}, {a}});
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0], (Move{.kind = Kind::gather, .over = {b}, .change = {0, {a}}, .in_vain = true}));
  EXPECT_EQ(all[1], (Move{.kind = Kind::exchange, .over = {a}, .change = {1, {a}}, .from = Move::Change{0, {}}}));
  EXPECT_EQ(all[2], (Move{.kind = Kind::cut, .over = {b}, .change = {0, {b}}}));
}

TEST(Moves, AGatherThatCanWaitForASumIsOne) {
  const Moves m = moves_between({{a}}, {{}}, {}, Gather::by_later_sums);
  EXPECT_THAT(m.list, ElementsAre(Move{.kind = Kind::unblock, .over = {a}, .change = {0, {}}}));
  EXPECT_EQ(m.pending, AxisSet(AxisList{a}));
}

// Whatever the layouts, the value ends up where it is to lie, and no dim ever lies on an axis that another one has.
TEST(Moves, EveryPairOfLayoutsIsConnected) {
  const std::vector<AxisList> lists{{}, {a}, {b}, {c}, {a, b}, {b, a}, {c, a}, {a, b, c}, {c, b, a}};
  const auto apart = [](const AxisList& x, const AxisList& y) { return !(AxisSet(x) & AxisSet(y)); };
  int pairs = 0;
  for (const AxisList& p : lists)
    for (const AxisList& q : lists)
      for (const AxisList& r : lists)
        for (const AxisList& s : lists) {
          if (!apart(p, q) || !apart(r, s)) continue;
          ++pairs;
          Dims2 now{p, q};
          for (const Move& m : moves(now, {r, s})) {
            if (m.from) now[m.from->dim] = m.from->lies_on;
            now[m.change.dim] = m.change.lies_on;
            ASSERT_TRUE(apart(now[0], now[1]));
          }
          ASSERT_EQ(now, (Dims2{r, s}));
        }
  EXPECT_GT(pairs, 500);
}

// A graph of one value x{rows cols}, of which `to` are the names to be.
struct OneValue {
  Graph logical;
  DimAxes axes{.mesh = {{"a", 2}, {"b", 2}, {"c", 2}}};
  std::unique_ptr<LocalGraph> local;
  Tensor x;
  DimId rows, cols, rows_to, cols_to;

  OneValue(const Dims2& now, const Dims2& goal) {
    Builder builder;
    const Dim dims[] = {{.name = "rows", .size = 16},
                        {.name = "cols", .size = 16},
                        {.name = "rows_to", .size = 16},
                        {.name = "cols_to", .size = 16}};
    for (const Dim& d : dims) builder.intern(d);
    logical = builder.graph;
    for (const AxisList& list : {now[0], now[1], goal[0], goal[1]}) axes.of.push_back(list);
    local = std::make_unique<LocalGraph>(logical, axes);
    rows = DimId(0), cols = DimId(1), rows_to = DimId(2), cols_to = DimId(3);
    x = local->builder.emit(param_op, {}, ParamAttrs{"x", f32, {rows, cols}});
  }
  std::vector<std::string> ops() const {
    std::vector<std::string> names;
    for (const Node& n : local->builder.graph.nodes) names.emplace_back(n.op->name);
    return names;
  }
};

TEST(LocalGraph, EveryMoveIsANodeAndEveryCollectiveIsRecorded) {
  OneValue p({{a}, {b}}, {{c}, {}});
  const auto r = p.local->rename(p.x, {p.rows_to, p.cols_to}, AxisList{c}, "because");
  EXPECT_THAT(p.ops(), ElementsAre("param", "all_gather", "reduce_scatter", "all_gather"));
  EXPECT_EQ(r.tensor.type().dims, (DimSet{p.rows_to, p.cols_to}));
  EXPECT_TRUE(r.gathered);
  EXPECT_FALSE(bool(r.pending));
  ASSERT_EQ(p.local->collectives.size(), 3u);
  EXPECT_EQ(p.local->collectives[0].axes, AxisNames{"a"});
  EXPECT_EQ(p.local->collectives[0].elements, 64) << "a rank's operand";
  EXPECT_EQ(p.local->collectives[1].axes, AxisNames{"c"});
  EXPECT_EQ(p.local->collectives[1].elements, 128);
  EXPECT_EQ(p.local->collectives[2].cause, "because");
  EXPECT_THAT(verify(p.local->builder.graph), IsEmpty());
}

TEST(LocalGraph, AnExchangeOfRowsForColumns) {
  OneValue p({{a}, {}}, {{}, {a}});
  const auto r = p.local->rename(p.x, {p.rows_to, p.cols_to}, {}, "");
  EXPECT_THAT(p.ops(), ElementsAre("param", "all_to_all"));
  EXPECT_EQ(p.local->builder.graph.str(r.tensor.type()), "{rows_to=16 cols_to=8/a}");
  EXPECT_FALSE(r.gathered);
}

TEST(LocalGraph, NamesAloneAreAView) {
  OneValue p({{a}, {b}}, {{a}, {b}});
  const auto r = p.local->rename(p.x, {p.rows_to, p.cols_to}, {}, "");
  EXPECT_THAT(p.ops(), ElementsAre("param", "rename"));
  EXPECT_EQ(r.tensor.type().dims, (DimSet{p.rows_to, p.cols_to}));
}

// rows and cols swap their names, and one of them is split: no dim may get a name that the other still has.
TEST(LocalGraph, DimsThatSwapNamesStepAside) {
  OneValue p({{a}, {}}, {{}, {}});
  const auto r = p.local->rename(p.x, {p.cols, p.rows}, {}, "");
  EXPECT_THAT(p.ops(), ElementsAre("param", "rename", "all_to_all"));
  EXPECT_EQ(p.local->builder.graph.str(r.tensor.type()), "{cols=16 rows=8/a}");
  EXPECT_THAT(verify(p.local->builder.graph), IsEmpty());
}

TEST(LocalGraph, AGatherInVainIsWarnedOf) {
  OneValue p({{a, b}, {}}, {{b}, {a}});
  p.local->rename(p.x, {p.rows_to, p.cols_to}, {}, "h.0/rename");
  ASSERT_EQ(p.local->warnings.size(), 1u);
  EXPECT_THAT(p.local->warnings[0].str(), HasSubstr("h.0/rename: axis 'b' is gathered and cut again (512 bytes"));
}

TEST(LocalGraph, WhatIsOnlySummedIsNotGathered) {
  OneValue p({{a}, {}}, {{}, {}});
  const auto r = p.local->rename(p.x, {p.rows_to, p.cols_to}, {}, "", Gather::by_later_sums);
  EXPECT_THAT(p.ops(), ElementsAre("param", "unblock", "rename"));
  EXPECT_EQ(r.pending, AxisSet(AxisList{a}));
  EXPECT_THAT(p.local->collectives, IsEmpty());
}

TEST(LocalGraph, FlatStorageIsScatteredWhereAllOfItIsPending) {
  OneValue p({{}, {}}, {{}, {}});
  const DimId flat = p.local->flat_dim(256, {a, b}, 4);
  AxisSet all = AxisList{a, b, c}, some = AxisList{a, c};
  p.local->scatter_flat(p.x, flat, all, "");
  EXPECT_EQ(all, AxisSet(AxisList{c}));
  EXPECT_THAT(p.ops(), ElementsAre("param", "reduce_scatter"));
  p.local->scatter_flat(p.x, flat, some, "");
  EXPECT_EQ(some, AxisSet(AxisList{c}));
  EXPECT_THAT(p.ops(), ElementsAre("param", "reduce_scatter", "all_reduce", "block"));
  EXPECT_EQ(p.local->collectives[1].axes, AxisNames{"a"}) << "along b it is whole";
}

}  // namespace
}  // namespace stretto
