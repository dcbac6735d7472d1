#include "shard/spmd.h"

#include <cmath>
#include <cstring>

#include "stretto/base/hash.h"
#include "stretto/kernels/collective_work.h"
#include "stretto/ops/all_reduce.h"
#include "stretto/ops/cast.h"
#include "stretto/ops/constant.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/ops.h"
#include "stretto/ops/squared_norm.h"
#include "stretto/ops/sub.h"

namespace stretto::test {
namespace {

std::vector<i64> sizes_of(const Graph& g, const Type& t) {
  std::vector<i64> s;
  for (DimId d : t.dims) s.push_back(g.size(d));
  return s;
}

i64 linear(const std::vector<i64>& sizes, const std::vector<i64>& index) {
  i64 at = 0;
  for (std::size_t d = 0; d < sizes.size(); ++d) at = at * sizes[d] + index[d];
  return at;
}

}  // namespace

Buffer part_of(const Buffer& whole, const std::vector<i64>& sizes, const Graph& local, const Type& type,
               const Mesh& mesh, int rank) {
  const View v = on_rank(contiguous_view(local, type), local, mesh, coordinates_of(mesh, rank));
  Buffer part(local, type);
  i64 i = 0;
  for_each_index(v.sizes, [&](std::vector<i64> index) {
    for (std::size_t d = 0; d < index.size(); ++d) index[d] += v.offsets[d];
    part.set(i++, whole.at(linear(sizes, index)));
  });
  return part;
}

void put_back(Buffer& whole, const std::vector<i64>& sizes, const Buffer& part, const Graph& local, const Type& type,
              const Mesh& mesh, int rank) {
  const View v = on_rank(contiguous_view(local, type), local, mesh, coordinates_of(mesh, rank));
  i64 i = 0;
  for_each_index(v.sizes, [&](std::vector<i64> index) {
    for (std::size_t d = 0; d < index.size(); ++d) index[d] += v.offsets[d];
    whole.set(linear(sizes, index), part.at(i++));
  });
}

Spmd::Spmd(const Traced& t, const Sharded& s, int microbatches)
    : traced_(t), s_(s), step_(split(s.graph)), microbatches_(microbatches), stores_(std::size_t(s.mesh.ranks())) {}

std::vector<std::vector<Buffer>> Spmd::execute(const Graph& g, const std::vector<std::vector<Buffer>>& arguments,
                                               const IdVector<KeyId, u64>& keys, Now now) {
  const std::size_t ranks = arguments.size();
  std::vector<std::map<Value, Buffer>> values(ranks);
  std::size_t argument = 0;
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    const Node& n = g.nodes[i];
    const Value v{NodeId{std::uint32_t(i)}, 0};
    const auto type = [&](std::size_t k) { return g.type(n.operands[k]); };
    if (n.op == &input_op) {
      for (std::size_t r = 0; r < ranks; ++r) {
        values[r][v] = arguments[r][argument];
        if (values[r][v].count() != g.elements(n.results[0]))
          throw Error("spmd", "argument {} of another size", argument);
      }
      ++argument;
      continue;
    }
    if (n.op->collective) {
      ++ran[std::string(n.op->name)];
      const CollectiveWork work(shape_of(g, n, s_.mesh));
      for (std::size_t r = 0; r < ranks; ++r) values[r][v] = Buffer(g, n.results[0]);
      for (std::size_t r = 0; r < ranks; ++r) {
        const std::vector<int> group = group_of(s_.mesh, int(r), work.shape().axes);
        if (group[0] != int(r)) continue;
        std::vector<const std::byte*> in;
        std::vector<std::byte*> out;
        for (int m : group) {
          in.push_back(values[std::size_t(m)].at(n.operands[0]).data());
          out.push_back(values[std::size_t(m)].at(v).data());
        }
        const std::int32_t* counts = nullptr;
        if (n.operands.size() > 1) counts = reinterpret_cast<const std::int32_t*>(values[r].at(n.operands[1]).data());
        for (std::uint32_t c = 0; c < work.chunks(); ++c) work.run(c, in.data(), out.data(), counts);
      }
      continue;
    }
    for (std::size_t r = 0; r < ranks; ++r) {
      const Coordinates at = coordinates_of(s_.mesh, int(r));
      if (n.attrs.is<ConstantAttrs>()) {
        values[r][v] = Buffer(g, n.results[0]);
        values[r][v].set(0, n.attrs.as<ConstantAttrs>().value);
        continue;
      }
      if (n.op->view) {
        const View whole = contiguous_view(g, type(0));
        for (std::size_t k = 0; k < n.results.size(); ++k) {
          const ViewMap map = n.op->view({g, n}, int(k));
          const View view = sub_view(whole, map, n.results[k].dims, g);
          values[r][{v.node, std::uint8_t(k)}] =
              gathered(view, values[r].at(n.operands[0]).element(start_of(whole, map)));
        }
        continue;
      }
      Call call{.graph = g, .node = n, .in = {}, .out = {}};
      std::vector<std::byte*> in, out;
      for (Value o : n.operands) {
        call.in.push_back(on_rank(contiguous_view(g, g.type(o)), g, s_.mesh, at));
        in.push_back(values[r].at(o).data());
      }
      for (std::size_t k = 0; k < n.results.size(); ++k) {
        call.out.push_back(on_rank(contiguous_view(g, n.results[k]), g, s_.mesh, at));
        out.push_back((values[r][{v.node, std::uint8_t(k)}] = Buffer(g, n.results[k])).data());
      }
      Now here = now;
      if (n.op->key) here.key = keys[KeyId(n.op->key(n.attrs).number)];
      const std::size_t bytes = call.op().scratch();
      Buffer scratch(i32, i64(bytes / 4 + 1));
      cpu_kernels(*n.op).back().prepare(call)(
          {.in = in.data(), .out = out.data(), .scratch = scratch.data(), .now = here});
    }
  }
  std::vector<std::vector<Buffer>> results(ranks);
  for (std::size_t r = 0; r < ranks; ++r)
    for (Value o : g.outputs) results[r].push_back(values[r].at(o));
  return results;
}

const Task* Spmd::count_task() const {
  for (const Task& t : step_.tasks)
    if (t.part == Part::count) return &t;
  return nullptr;
}

void Spmd::run_task(const Task& task, int microbatch, bool first) {
  std::vector<std::vector<Buffer>> arguments(stores_.size());
  for (std::size_t r = 0; r < stores_.size(); ++r)
    for (const Binding& b : task.inputs)
      if (const InputId* given = as<InputId>(b)) {
        const Value v = traced_.step.inputs[*given];
        const std::vector<i64> sizes = sizes_of(traced_.step.graph, traced_.step.graph.type(v));
        const Buffer& all = inputs[given->value];
        Buffer rows(all.dtype(), all.count() / microbatches_);
        for (i64 i = 0; i < rows.count(); ++i) rows.set(i, all.at(microbatch * rows.count() + i));
        arguments[r].push_back(part_of(rows, sizes, s_.graph.graph, step_.inputs[*given], s_.mesh, int(r)));
      } else {
        arguments[r].push_back(stores_[r].at(b));
      }
  const auto results =
      execute(*task.body, arguments, task.keys, {.seed = seed, .step = 1, .first_row = microbatch * traced_.rows});
  for (std::size_t r = 0; r < stores_.size(); ++r)
    for (ResultId result : task.outputs.ids()) {
      const Binding& b = task.outputs[result];
      const std::size_t k = result.value;
      Buffer& to = stores_[r][b];
      if (as<AccumulatorId>(b) && !first)
        for (i64 i = 0; i < to.count(); ++i) to.set(i, to.at(i) + results[r][k].at(i));
      else
        to = results[r][k];
    }
}

void Spmd::step() {
  const Graph& local = s_.graph.graph;
  const auto stored_part = [&](ParamId p, std::size_t r) {
    const ShardedParam& sp = s_.params[p];
    const Type& type = traced_.step.graph.type(traced_.step.params[p]);
    const Buffer own = part_of(params[p.value], sizes_of(traced_.step.graph, type), local, sp.type, s_.mesh, int(r));
    if (sp.params.empty()) return own;
    Buffer flat(local, sp.stored);
    const i64 start = block_of(s_.mesh, coordinates_of(s_.mesh, int(r)), sp.params) * flat.count();
    for (i64 i = 0; i < flat.count() && start + i < own.count(); ++i) flat.set(i, own.at(start + i));
    return flat;
  };
  for (std::size_t r = 0; r < stores_.size(); ++r) {
    stores_[r].clear();
    for (ParamId p : s_.params.ids()) stores_[r][p] = stored_part(p, r);
  }
  // Counts and scales, then all microbatches.
  std::vector<std::vector<Buffer>> totals(stores_.size());
  for (const Traced::Term& term : traced_.terms) {
    Builder b;
    const Tensor x = input(b, "0", f64, {});
    const Tensor y = all_reduce(x, s_.outputs[term.count]);
    b.graph.outputs = {y.value};
    std::vector<std::vector<Buffer>> sums(stores_.size(), std::vector<Buffer>(1, Buffer(f64, 1)));
    for (int m = 0; m < microbatches_; ++m) {
      if (const Task* count = count_task()) run_task(*count, m, true);
      for (std::size_t r = 0; r < stores_.size(); ++r)
        sums[r][0].set(0, sums[r][0].at(0) + stores_[r].at(term.count).at(0));
    }
    const auto total = execute(b.graph, sums, {}, {});
    for (std::size_t r = 0; r < stores_.size(); ++r) {
      Buffer scale(f64, 1);
      scale.set(0, total[r][0].at(0) > 0 ? term.weight / total[r][0].at(0) : 0);
      stores_[r][term.scale] = scale;
    }
  }
  losses.assign(stores_.size(), std::vector<double>(traced_.step.outputs.size(), 0.0));
  for (int m = 0; m < microbatches_; ++m) {
    for (PieceId p : step_.piece_ids())
      if (const Task* t = step_.find(Part::F, p)) run_task(*t, m, m == 0);
    for (int p = step_.pieces; p-- > 0;)
      for (Part part : {Part::I, Part::W})
        if (const Task* t = step_.find(part, PieceId(p))) run_task(*t, m, m == 0);
    for (std::size_t r = 0; r < stores_.size(); ++r)
      for (OutputId k : traced_.step.outputs.ids())
        if (const Buffer& o = stores_[r].at(k); o.count() == 1) losses[r][k.value] += o.at(0);
  }
  for (OutputId k : traced_.step.outputs.ids()) {
    Builder b;
    b.graph.outputs = {all_reduce(input(b, "0", f64, {}), s_.outputs[k]).value};
    std::vector<std::vector<Buffer>> sums(stores_.size(), std::vector<Buffer>(1, Buffer(f64, 1)));
    for (std::size_t r = 0; r < stores_.size(); ++r) sums[r][0].set(0, losses[r][k.value]);
    const auto total = execute(b.graph, sums, {}, {});
    for (std::size_t r = 0; r < stores_.size(); ++r) losses[r][k.value] = total[r][0].at(0);
    outputs[traced_.step.outputs[k].name] = losses[0][k.value];
  }
  loss = 0;
  for (const Traced::Term& term : traced_.terms) loss += losses[0][term.sum.value] * stores_[0].at(term.scale).at(0);
  epilogue();
}

void Spmd::epilogue() {
  const Graph& local = s_.graph.graph;
  const std::size_t ranks = stores_.size();
  std::vector<std::vector<Buffer>> squares(ranks, std::vector<Buffer>(1, Buffer(f64, i64(params.size()))));
  gradients.clear();
  for (ParamId p : s_.params.ids()) {
    const ShardedParam& sp = s_.params[p];
    Builder b;
    std::vector<Tensor> in;
    std::vector<std::vector<Buffer>> arguments(ranks);
    for (AccumulatorId a : s_.gradients.ids()) {
      if (s_.gradients[a].param != p) continue;
      in.push_back(input(b, std::to_string(in.size()), sp.type.dtype, dims_of(s_, s_.gradients[a].accumulated)));
      for (std::size_t r = 0; r < ranks; ++r) arguments[r].push_back(stores_[r].at(a));
    }
    const Type& logical = traced_.step.graph.type(traced_.step.params[p]);
    gradients.emplace_back(traced_.step.graph, logical);
    if (in.empty()) continue;
    const Tensor stored = input(b, "stored", sp.type.dtype, dims_of(s_, sp.stored));
    for (std::size_t r = 0; r < ranks; ++r) arguments[r].push_back(stores_[r].at(p));
    const Tensor g = reduced_gradient(in, s_, p);
    const Tensor square = counted_square(squared_norm(g), s_, p);
    const Tensor updated = stored_again(part_to_update(stored, s_, p) - g * rate, s_, p);
    b.graph.outputs = {g.value, square.value, updated.value};
    refuse(verify(b.graph));
    const auto results = execute(b.graph, arguments, {}, {});
    // Put together: the flat parts of a group, then the parts of all.
    const std::vector<i64> sizes = sizes_of(traced_.step.graph, logical);
    for (std::size_t r = 0; r < ranks; ++r) {
      squares[r][0].set(p.value, results[r][1].at(0));
      const auto assembled = [&](std::size_t which, const AxisNames& axes) {
        Buffer own(local, sp.type);
        i64 block = 0;
        for (int m : group_of(s_.mesh, int(r), axes)) {
          const Buffer& part = results[std::size_t(m)][which];
          for (i64 i = 0; i < part.count(); ++i)
            if (const i64 at = block * part.count() + i; at < own.count()) own.set(at, part.at(i));
          ++block;
        }
        return own;
      };
      put_back(gradients[p.value], sizes, assembled(0, sp.state), local, sp.type, s_.mesh, int(r));
      put_back(params[p.value], sizes, assembled(2, sp.params), local, sp.type, s_.mesh, int(r));
    }
  }
  Builder b;
  const Tensor all = input(b, "0", f64, {{"parameter", i64(params.size())}});
  b.graph.outputs = {all_reduce(all, norm_axes(s_)).value};
  const auto summed = execute(b.graph, squares, {}, {});
  std::vector<double> norms(ranks, 0);
  for (std::size_t r = 0; r < ranks; ++r) {
    for (i64 i = 0; i < summed[r][0].count(); ++i) norms[r] += summed[r][0].at(i);
    losses[r].push_back(std::sqrt(norms[r]));
  }
  norm = std::sqrt(norms[0]);
}

}  // namespace stretto::test
