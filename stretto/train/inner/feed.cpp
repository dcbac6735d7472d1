#include "stretto/train/inner/feed.h"

#include <algorithm>

#include "stretto/base/text.h"

namespace stretto {
namespace {

// Every rank gets its block of every microbatch: of its rows, and of other dims that the layout splits. Exact training:
// its rows of all microbatches are one block of the batch.
void load_part(const Compiled& c, Worker& w, InputId input, const std::byte* from, u64 to) {
  const Graph& g = c.sharded->graph.graph;
  const Type& type = g.type(c.sharded->graph.inputs[input]);
  const View box = on_rank(contiguous_view(g, type), g, c.sharded->mesh, w.coordinates());
  const Dims& dims = c.inputs[input].dims;
  std::size_t inner = dims.size();
  i64 run = 1, rows = c.program->microbatches;
  while (inner > 0 && (inner == dims.size() || box.sizes[inner] == dims[inner].size)) run *= box.sizes[--inner];
  for (std::size_t d = 0; d < inner; ++d) rows *= box.sizes[d];
  const std::size_t size = size_of(type.dtype);
  const bool together = c.program->shared.neighbours;
  for (i64 row = 0; row < rows; ++row) {
    i64 rest = row, at = 0, step = 1;
    for (std::size_t d = dims.size(); d-- > 0; step *= dims[d].size) {
      at += box.offsets[d] * step * (d == 0 && together ? c.program->microbatches : 1);
      if (d < inner) at += rest % box.sizes[d] * step, rest /= box.sizes[d];
    }
    at += rest * (together ? step / dims[0].size * box.sizes[0] : step);  // the microbatch
    w.write(Arena::inputs, to + row * run * size, from + at * size, run * size);
  }
}

// Before the step begins, so that a Trainer goes on after a batch that was refused.
void check_ids(const Compiled& c, const InputOfIds& ids, const Array& array) {
  const Node& reader = c.graph.node(ids.reader);
  const IdOperand range = reader.op->ids({c.graph, reader});
  const auto* all = reinterpret_cast<const std::int32_t*>(array.bytes.data());
  const std::size_t count = array.bytes.size() / sizeof *all;
  const auto* wrong = std::find_if(all, all + count, [&](std::int32_t id) {
    return (id < 0 || id >= range.limit) && range.none != std::optional<i64>(id);
  });
  if (wrong == all + count) return;
  std::vector<std::string> at;
  i64 rest = wrong - all;
  for (std::size_t d = array.sizes.size(); d-- > 0; rest /= array.sizes[d])
    at.insert(at.begin(), fmt::format("{}", rest % array.sizes[d]));
  Error e = reader.op->out_of_range({c.graph, reader}, *wrong, range.limit);
  e.within(fmt::format("batch, input '{}' at [{}]", c.inputs[ids.input].name, join(at, ", ")));
  throw e;
}

}  // namespace

void check_batch(const Compiled& c, const Batch& batch) {
  std::vector<std::string> names;
  for (const TracedInput& in : c.inputs) names.push_back(in.name);
  for (const auto& [name, array] : batch)
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      const auto near = nearest(name, names);
      throw Error("batch", "'{}' is not an input of the model", name)
          .hint("{}its inputs are {}", near ? "did you mean '" + *near + "'? " : "", join(names, ", "));
    }
  for (const TracedInput& in : c.inputs) {
    const auto it = batch.find(in.name);
    if (it == batch.end())
      throw Error("batch", "input '{}' is missing", in.name).hint("give an array for each of the model's inputs");
    std::vector<i64> expect;
    for (const Dim& d : in.dims) expect.push_back(d.name == c.batch ? d.size * c.program->microbatches : d.size);
    if (it->second.dtype != in.dtype || it->second.sizes != expect)
      throw Error("batch", "input '{}' is {} and should be {}", in.name, it->second.str(),
                  (Array{in.dtype, expect, {}}).str())
          .hint("a batch holds the rows of the whole step, all microbatches together");
    if (!in.dims.empty() && in.dims[0].name != c.batch)
      throw Error("batch", "input '{}' does not start with the batch dim '{}'", in.name, c.batch)
          .hint("put the batch dim first: t.input(\"{}\", {{{}, ...}})", in.name, c.batch);
  }
  for (const InputOfIds& ids : c.ids) check_ids(c, ids, batch.at(c.inputs[ids.input].name));
}

void load_batch(const Compiled& c, Worker& w, const Batch& batch) {
  for (InputId i : c.inputs.ids()) {
    const TracedInput& in = c.inputs[i];
    const Offset at = w.program().input_at[i];
    if (!at) continue;
    const std::vector<std::byte>& bytes = batch.at(in.name).bytes;
    if (in.dims.empty())  // every microbatch reads one of its own
      for (int m = 0; m < c.program->microbatches; ++m)
        w.write(Arena::inputs, *at + m * size_of(in.dtype), bytes.data(), size_of(in.dtype));
    else if (c.sharded)
      load_part(c, w, i, bytes.data(), *at);
    else
      w.write(Arena::inputs, *at, bytes.data(), bytes.size());
  }
}

void set_scalar(const Compiled& c, Worker& w, std::string_view name, double value) {
  const std::optional<ScalarId> i = c.scalar(name);
  if (!i) return;
  if (const Offset at = w.program().scalar_at[*i]) w.write(Arena::results, *at, &value, sizeof value);
}

}  // namespace stretto
