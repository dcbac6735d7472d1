#include "stretto/compile/inner/exact.h"

#include <algorithm>
#include <set>

#include "stretto/base/text.h"
#include "stretto/ops/add.h"
#include "stretto/ops/all_reduce.h"
#include "stretto/ops/compare.h"
#include "stretto/ops/iota.h"
#include "stretto/ops/sum.h"
#include "stretto/ops/where.h"
#include "stretto/schedule/validate.h"
#include "stretto/step/task_builder.h"

namespace stretto {
namespace {

constexpr i64 most_leaves = 1 << 16;  // each costs actions and instructions, as a microbatch does

// The largest power of two, times `unit`, that is not above n; at least `unit`.
i64 power_of_two_below(i64 n, i64 unit) {
  i64 power = unit;
  while (2 * power <= n) power *= 2;
  return power;
}

bool lists(const AxisNames& list, const std::string& axis) {
  return std::find(list.begin(), list.end(), axis) != list.end();
}

// Faults if ranks that share the rows, the fewest that can, would have to talk within a microbatch.
std::vector<Fault> rows_that_depend(const Traced& whole) {
  int ranks = 2;
  while (ranks <= whole.rows_per_step && whole.rows_per_step % ranks != 0) ++ranks;
  if (ranks > whole.rows_per_step) return {};
  Sharded s;
  try {
    s = shard(whole.step, {{"rows", ranks}}, {{whole.batch, "rows"}});
  } catch (const Error& e) {
    throw Error("exact", "rows of a microbatch depend on each other. {}", e.what())
        .hint("train without train.exact, or make the model's values per row");
  }
  const Graph& g = s.graph.graph;
  std::set<Value> read;
  for (const Node& n : g.nodes) read.insert(n.operands.begin(), n.operands.end());
  std::vector<Fault> faults;
  for (NodeId id : ids_until<NodeId>(g.nodes.size()))
    if (const Node& n = g.node(id); n.op->collective && read.contains({id, 0}))
      faults.push_back(fault("exact", "make it per row, or train without train.exact",
                             "rows of a microbatch depend on each other: {} adds up or gathers over '{}'",
                             g.str(n.operands[0]), whole.batch));
  return faults;
}

void check_order(const Schedule& s) {
  const std::vector<Finding> notes = validate(s).notes;
  if (s.pipes() > 1 ||
      std::any_of(notes.begin(), notes.end(), [](const Finding& f) { return f.kind == Finding::Kind::accumulation; }))
    throw Error("schedule", "'{}' does not add gradients in ascending microbatch order, as exact training does", s.name)
        .hint("use a schedule of one pipe that does, e.g. 1f1b, zb-h1, zb-v or dualpipe-v; or leave out train.exact")
        .about({"parallel.schedule"});
}

// The outputs of which only the sum over the step's rows is wanted, if it is one number. Others need not have the same
// bits.
IdVector<OutputId, char> added_up(const Traced& t) {
  IdVector<OutputId, char> yes(t.step.outputs.size(), 0);
  for (const TracedTerm& term : t.terms) yes[term.sum] = yes[term.count] = 1;
  for (const TracedMetric& m : t.metrics)
    yes[m.output] = m.dims == 0 && is_float(m.dtype) && (m.how == Accumulate::sum || m.how == Accumulate::mean);
  return yes;
}

// A rank's leaves are added up before its ranks are: the sum stands in place of the first leaf, zeros in place of the
// others.
void total_in_tree(Step& s, const Surroundings& around) {
  if (around.microbatches == 1) return;
  BodyPool pool;
  const IdVector<OutputId, char> wanted = added_up(around.traced);
  for (OutputId k : s.outputs.ids()) {
    if (!wanted[k]) continue;
    const StepOutput& o = s.outputs[k];
    TaskBuilder t({.part = Part::total, .piece = piece_of_output(s, k), .about = k});
    const Dim all{"all", s.elements(o.type) * around.microbatches};
    const Tensor leaves = t.argument(o.type.dtype, tree_dims(around.microbatches), AllMicrobatches{k});
    const Tensor total = all_reduce(tree_sum_of(leaves), around.sharded ? around.sharded->outputs[k] : AxisNames{});
    t.result(where(equal(iota(t.body(), all), 0), total, 0), AllMicrobatches{k});
    Task total_task = std::move(t).finish(pool);
    const auto of_ranks = std::find_if(s.tasks.begin(), s.tasks.end(),
                                       [&](const Task& x) { return x.part == Part::total && x.about == About(k); });
    if (of_ranks != s.tasks.end())
      *of_ranks = std::move(total_task);
    else
      s.tasks.push_back(std::move(total_task));
  }
}

// Sums over ranks come first, so that each piece's sum is that of a serial run.
void ranks_before_pieces(Step& s, const Surroundings& around) {
  if (!around.sharded) return;
  BodyPool pool;
  const auto accumulators = accumulators_of(s);
  for (Task& task : s.tasks) {
    if (task.part != Part::combine) continue;
    const ParamId param = task.param();
    TaskBuilder t({.part = Part::combine, .about = param});
    const i64 n = around.sharded->params[param].elements;
    Tensor total;
    for (AccumulatorId a : accumulators[param]) {
      const Tensor own = t.argument(wide(around.traced.params[param].dtype), Dim{fmt::format("flat{}", n), n}, a);
      const Tensor part = all_reduce(own, around.sharded->gradients[a].pending);
      total = total ? total + part : part;
    }
    t.result(total, accumulators[param][0]);
    task = std::move(t).finish(pool);
  }
}

}  // namespace

int leaves_of(i64 rows, int ranks, const Training& t) {
  const i64 leaf = t.leaf;
  if (leaf < 1) throw Error("exact", "a leaf of {} rows", leaf).hint("use train.leaf = 1 or more");
  if (const i64 less = power_of_two_below(rows, leaf); less != rows)
    throw Error("exact", "{} rows per step are not a power of two of leaves of {}", rows, leaf)
        .hint("the nearest batch sizes are {} and {}; or change train.leaf", less, 2 * less);
  const i64 leaves = rows / leaf;
  if (leaves % ranks != 0)
    throw Error("exact", "{} ranks cannot share the batch's {} leaves of {} rows", ranks, leaves, leaf)
        .hint("use a power of two up to {}, or a smaller train.leaf", leaves);
  if (const i64 own = leaves / ranks; own > most_leaves)
    throw Error("exact", "{} rows per step are {} leaves of {} rows on every rank, and a rank takes at most {}", rows,
                own, leaf, most_leaves)
        .hint("use train.leaf = {} or more, a batch of {} or less, or more ranks along it", leaf * (own / most_leaves),
              most_leaves * leaf * ranks)
        .about({"train.leaf", "train.batch", "train.exact"});
  const int own = leaves / ranks;
  if (own % t.microbatches != 0)
    throw Error("exact", "{} microbatches and {} leaves of {} rows on every rank: a microbatch is whole leaves",
                t.microbatches, own, leaf)
        .hint("use a power of two up to {} for train.microbatches, or a smaller train.leaf", own);
  return own;
}

TraceOptions exact_rows(const Model& model, TraceOptions o, const Parallel& p, const Training& t) {
  if (!t.exact) return o;
  o.expert_rows = ExpertRows::gather;
  o.microbatches = 1;
  const Traced whole = trace_step(model, o);
  const Parallel full = complete(p, whole);
  refuse(rows_that_depend(whole));
  o.microbatches = leaves_of(whole.rows_per_step, ranks_along(full.mesh, axes_of_rows(full, whole.batch)), t);
  return o;
}

ScheduledStep exact(ScheduledStep e, const Surroundings& around, const Parallel& complete, const Training& training) {
  if (!training.exact) return e;
  const bool trains = !e.step.accumulators.empty();
  if (trains) check_order(e.schedule);
  refuse(order_of_sums(around, complete));
  e.shared.neighbours = true;
  e.schedule = on_leaves(std::move(e.schedule), around.microbatches / e.schedule.microbatches);
  total_in_tree(e.step, around);
  ranks_before_pieces(e.step, around);
  if (trains) e.step = add_levels(std::move(e.step), around.microbatches);
  refuse(verify(e.step));
  return e;
}

Schedule on_leaves(Schedule s, int leaves) {
  s.marks.clear();  // positions in rows have changed
  if (leaves == 1) return s;
  for (Row& row : s.rows) {
    Row all;
    for (std::size_t from = 0, to = 0; from < row.size(); from = to) {
      to = from + 1;  // members of an overlap group stay side by side
      while (row[from].overlap != 0 && to < row.size() && row[to].overlap == row[from].overlap) ++to;
      for (int leaf = 0; leaf < leaves; ++leaf)
        for (std::size_t i = from; i < to; ++i) {
          Action a = row[i];
          a.microbatch = MicrobatchId(a.microbatch.value * leaves + leaf);
          if (a.overlap != 0) a.overlap = (a.overlap - 1) * leaves + leaf + 1;
          all.push_back(a);
        }
    }
    row = std::move(all);
  }
  s.microbatches *= leaves;
  return s;
}

Step add_levels(Step s, int leaves) {
  const auto own = s.accumulators.ids();
  while (1 << s.levels < leaves) ++s.levels;
  for (int level = 1; level <= s.levels; ++level)
    for (AccumulatorId a : own) {
      Accumulator more = s.accumulators[a];
      more.level = Level(level);
      more.summed.clear();
      s.accumulators.push_back(std::move(more));
    }
  BodyPool pool;
  for (PieceId piece : s.piece_ids())
    for (int level = 1; level <= s.levels; ++level) {
      TaskBuilder t({.part = Part::carry, .piece = piece, .about = Level(level)});
      for (AccumulatorId a : own) {
        if (s.accumulators[a].piece != piece) continue;
        const Type& type = s.accumulators[a].type;
        const i64 n = s.elements(type);
        const auto at = [&](int l) { return AccumulatorId(a.value + l * own.size()); };
        const Dim flat{fmt::format("flat{}", n), n};
        const Tensor below = t.argument(type.dtype, flat, at(level - 1));
        t.result(below + t.argument(type.dtype, flat, at(level)), at(level - 1));
      }
      if (t.graph().outputs.empty()) continue;
      s.tasks.push_back(std::move(t).finish(pool));
    }
  return s;
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

std::vector<Fault> order_of_sums(const Surroundings& around, const Parallel& p) {
  const AxisNames batch = axes_of_rows(p, around.traced.batch);
  std::vector<Fault> faults;
  if (!p.storage.state.empty())
    faults.push_back(fault("exact", "leave out zero and depth",
                           "optimizer state is cut over '{}': norms would be added up in another order for every "
                           "number of ranks",
                           join(p.storage.state, ",")));
  if (!around.sharded) return faults;
  AxisNames in_order;
  for (const Axis& a : p.mesh)
    if (lists(batch, a.name)) in_order.push_back(a.name);
  if (in_order != batch)
    faults.push_back(fault("exact", fmt::format("map it to '{}'", join(in_order, ",")),
                           "dim '{}' lies on '{}', and the mesh has these axes in another order", around.traced.batch,
                           join(batch, ",")));
  for (const LayoutEntry& e : p.layout)
    for (const std::string& axis : e.axes)
      if (e.dim != around.traced.batch && lists(batch, axis))
        faults.push_back(fault(
            "exact", "map it to another axis, or leave it out",
            "dim '{}' lies on axis '{}', as the rows do: what a kernel sees would depend on its size", e.dim, axis));
  const auto beside = [&](const AxisNames& pending) {
    return std::any_of(pending.begin(), pending.end(), [&](const auto& a) { return !lists(batch, a); });
  };
  std::set<std::string> names;
  for (const ShardedGradient& g : around.sharded->gradients)
    if (beside(g.pending) && names.insert(join(g.pending, ",")).second)
      faults.push_back(fault("exact", "leave out sequence and context",
                             "the gradient of '{}' is added up over {} at once: its order would depend on the number "
                             "of ranks along the batch",
                             around.sharded->params[g.param].name, join(g.pending, ",")));
  return faults;
}

}  // namespace stretto
