#include "stretto/compile/exact.h"

#include <algorithm>
#include <bit>
#include <set>

#include "stretto/base/text.h"
#include "stretto/ops/add.h"
#include "stretto/ops/input.h"
#include "stretto/ops/sum.h"
#include "stretto/stage/split.h"

namespace stretto {
namespace {

bool power_of_two(i64 n) { return n > 0 && std::has_single_bit(u64(n)); }

bool lists(const AxisNames& list, const std::string& axis) {
  return std::find(list.begin(), list.end(), axis) != list.end();
}

}  // namespace

Leaves leaves_of(i64 rows, int ranks, const Training& t) {
  const i64 leaf = t.leaf;
  if (leaf < 1) throw Error("exact", "a leaf of {} rows", leaf).hint("use train.leaf = 1 or more");
  if (rows % leaf != 0 || !power_of_two(rows / leaf)) {
    const i64 less = leaf * i64(std::bit_floor(u64(std::max<i64>(1, rows / leaf))));
    throw Error("exact", "{} rows per step are not a power of two of leaves of {}", rows, leaf)
        .hint("the nearest batch sizes are {} and {}; or change train.leaf", less, 2 * less);
  }
  const i64 leaves = rows / leaf;
  if (leaves % ranks != 0)
    throw Error("exact", "{} ranks cannot share the batch's {} leaves of {} rows", ranks, leaves, leaf)
        .hint("use a power of two up to {}, or a smaller train.leaf", leaves);
  const i64 own = leaves / ranks;
  if (own % t.microbatches != 0)
    throw Error("exact", "{} microbatches and {} leaves of {} rows on every rank: a microbatch is whole leaves",
                t.microbatches, own, leaf)
        .hint("use a power of two up to {} for train.microbatches, or a smaller train.leaf", own);
  return {.per_rank = int(own), .per_microbatch = int(own / t.microbatches)};
}

Schedule on_leaves(Schedule s, int leaves) {
  if (leaves == 1) return s;
  for (Row& row : s.rows) {
    Row all;
    for (std::size_t from = 0, to = 0; from < row.size(); from = to) {
      to = from + 1;  // members of an overlap group stay side by side
      while (row[from].overlap != 0 && to < row.size() && row[to].overlap == row[from].overlap) ++to;
      for (std::uint32_t leaf = 0; leaf < std::uint32_t(leaves); ++leaf)
        for (std::size_t i = from; i < to; ++i) {
          Action a = row[i];
          a.microbatch = a.microbatch * std::uint32_t(leaves) + leaf;
          if (a.overlap != 0) a.overlap = (a.overlap - 1) * std::uint32_t(leaves) + leaf + 1;
          all.push_back(a);
        }
    }
    row = std::move(all);
  }
  s.microbatches *= leaves;
  return s;
}

void add_levels(Step& s, int leaves) {
  const std::uint32_t own = std::uint32_t(s.accumulators.size());
  s.levels = std::bit_width(unsigned(leaves)) - 1;
  for (int level = 1; level <= s.levels; ++level)
    for (std::uint32_t a = 0; a < own; ++a) {
      Accumulator more = s.accumulators[a];
      more.level = std::uint8_t(level);
      more.summed.clear();
      s.accumulators.push_back(std::move(more));
    }
  BodyPool pool;
  for (int piece = 0; piece < s.pieces; ++piece)
    for (int level = 1; level <= s.levels; ++level) {
      Task t{.part = Part::carry, .piece = std::uint16_t(piece), .subject = std::uint32_t(level)};
      Builder b;
      for (std::uint32_t a = 0; a < own; ++a) {
        if (s.accumulators[a].piece != piece) continue;
        const Type& type = s.accumulators[a].type;
        const i64 n = i64(s.bytes(type) / size_of(type.dtype));
        const auto argument = [&](int at) {
          t.inputs.push_back({Place::gradient, a + std::uint32_t(at) * own});
          return input(b, std::to_string(t.inputs.size() - 1), type.dtype, Dim{fmt::format("flat{}", n), n});
        };
        const Tensor below = argument(level - 1), above = argument(level);
        b.graph.outputs.push_back((below + above).value);
        t.outputs.push_back(t.inputs[t.inputs.size() - 2]);
      }
      if (t.outputs.empty()) continue;
      t.body = pool.share(std::move(b.graph));
      s.tasks.push_back(std::move(t));
    }
}

Dims tree_dims(int elements) {
  Dims dims;
  for (int n = 1; n < elements; n *= 2) dims.push_back({fmt::format("level{}", dims.size()), 2});
  return dims;
}

Tensor tree_sum_of(Tensor x) {
  while (!x.dims().empty()) x = sum(x, x.dims().back());
  return x;
}

void check_exact(const Compiled& c, const StepGraph& alone) {
  // Would ranks that share the batch have to talk within a microbatch?
  i64 ranks = 2;
  while (ranks <= c.rows_per_step && c.rows_per_step % ranks != 0) ++ranks;
  if (ranks > c.rows_per_step) return;
  Sharded s;
  try {
    s = shard(alone, {{"rows", int(ranks)}}, {{c.batch, "rows"}});
  } catch (const Error& e) {
    throw Error("exact", "rows of a microbatch depend on each other. {}", e.what())
        .hint("train without train.exact, or make the model's values per row");
  }
  const Graph& g = s.graph.graph;
  std::set<Value> read;
  for (const Node& n : g.nodes) read.insert(n.operands.begin(), n.operands.end());
  std::vector<Fault> faults;
  for (std::uint32_t i = 0; i < g.nodes.size(); ++i)
    if (const Node& n = g.nodes[i]; n.op->collective && read.contains({NodeId{i}, 0}))
      faults.push_back(fault("exact", "make it per row, or train without train.exact",
                             "rows of a microbatch depend on each other: {} adds up or gathers over '{}'",
                             g.str(n.operands[0]), c.batch));
  refuse(std::move(faults));
}

void check_exact_sums(const Compiled& c, const AxisNames& batch) {
  std::vector<Fault> faults;
  const Parallel& p = c.parallel;
  if (!p.storage.state.empty())
    faults.push_back(fault("exact", "leave out zero and depth",
                           "optimizer state is cut over '{}': norms would be added up in another order for every "
                           "number of ranks",
                           join(p.storage.state, ",")));
  if (!c.sharded) return refuse(std::move(faults));
  AxisNames in_order;
  for (const Axis& a : p.mesh)
    if (lists(batch, a.name)) in_order.push_back(a.name);
  if (in_order != batch)
    faults.push_back(fault("exact", fmt::format("map it to '{}'", join(in_order, ",")),
                           "dim '{}' lies on '{}', and the mesh has these axes in another order", c.batch,
                           join(batch, ",")));
  for (const LayoutEntry& e : p.layout)
    for (const std::string& axis : e.axes)
      if (e.dim != c.batch && lists(batch, axis))
        faults.push_back(fault(
            "exact", "map it to another axis, or leave it out",
            "dim '{}' lies on axis '{}', as the rows do: what a kernel sees would depend on its size", e.dim, axis));
  const auto beside = [&](const AxisNames& pending) {
    return std::any_of(pending.begin(), pending.end(), [&](const auto& a) { return !lists(batch, a); });
  };
  std::set<std::string> names;
  for (const ShardedGradient& g : c.sharded->gradients)
    if (beside(g.pending) && names.insert(join(g.pending, ",")).second)
      faults.push_back(fault("exact", "leave out sequence and context",
                             "the gradient of '{}' is added up over {} at once: its order would depend on the number "
                             "of ranks along the batch",
                             c.sharded->params[g.param].name, join(g.pending, ",")));
  refuse(std::move(faults));
}

}  // namespace stretto
