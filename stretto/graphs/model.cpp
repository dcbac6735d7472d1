#include <algorithm>
#include <memory>

#include "stretto/graphs/graph_file.h"
#include "stretto/graphs/inner/kinds.h"

namespace stretto {
namespace {

constexpr i64 most_elements = 1ll << 48;

std::vector<Dim> dims_of(Trace& t, const GraphFile& file, std::optional<i64> rows) {
  std::vector<Dim> dims;
  std::vector<bool> rows_too;  // the batch, what is like it, and what is like that: as many as a microbatch has
  const auto place = [&](const std::string& name) {  // those that are named stand before
    return std::ranges::find(file.dims, name, &GraphDim::name) - file.dims.begin();
  };
  const auto named = [&](const std::string& name) -> const Dim& { return dims[place(name)]; };
  for (const GraphDim& d : file.dims) {
    rows_too.push_back(d.kind == GraphDim::Kind::batch || (!d.like.empty() && rows_too[place(d.like)]));
    const i64 size = !d.like.empty() && rows_too.back() ? named(d.like).size : d.size;
    switch (d.kind) {
      case GraphDim::Kind::plain:
        dims.push_back({d.name, size});
        break;
      case GraphDim::Kind::batch:
        dims.push_back(t.batch(d.name, rows.value_or(size)));
        break;
      case GraphDim::Kind::whole:
        dims.push_back(Dim{d.name, size}.whole(d.name));
        break;
      case GraphDim::Kind::like: {
        Dim like = named(d.like).like(d.name, {.size = size});
        if (!d.minus.empty()) like = named(d.like).like(d.name, {.minus = named(d.minus), .size = size});
        dims.push_back(like);
        break;
      }
    }
  }
  return dims;
}

void check_elements(Tensor x) {
  i64 elements = 1;
  for (const Dim& d : x.dims())
    if (__builtin_mul_overflow(elements, d.size, &elements) || elements > most_elements)
      throw Error("graph", "{} has more than {} elements", x.str(), most_elements);
}

// What went wrong at a node is said with its place in the file and in the code that it was made from.
template <class F>
auto at_node(const GraphFile& file, std::string_view list, std::size_t index, const GraphNode& n, F&& f) {
  try {
    return f();
  } catch (const Error& e) {
    std::vector<Fault> faults = e.faults();
    std::string place = fmt::format(" ({}: {}[{}]", file.name, list, index);
    if (!n.scope.empty()) place += ", " + n.scope;
    if (!n.source.empty()) place += ", " + n.source;
    for (Fault& fault : faults) fault.what += place + ")";
    throw Error(std::move(faults)).as(e.kind());
  }
}

Loss trace(Trace& t, const GraphFile& file, std::optional<i64> rows) {
  if (!file.one_microbatch.empty() && t.options().microbatches > 1)
    throw Error("graph", "rows of a batch meet: {}", file.one_microbatch)
        .hint("use one microbatch; any number of ranks along data is exact")
        .about({"train.microbatches"});
  const std::vector<Dim> dims = dims_of(t, file, rows);
  std::vector<Tensor> made;
  made.reserve(file.nodes.size());
  for (const GraphNode& n : file.nodes) {
    t.builder.scope = t.builder.intern_scope(n.scope);
    t.builder.force_piece = static_cast<std::uint16_t>(n.piece);
    made.push_back(at_node(file, "nodes", made.size(), n, [&] {
      const Tensor x = kind_of(n.op)->make({t, n, dims, made});
      check_elements(x);
      return x;
    }));
  }
  t.builder.scope = t.builder.intern_scope("");
  t.builder.force_piece.reset();
  Loss all;
  for (std::size_t i = 0; i < file.loss.size(); ++i) {
    const GraphTerm& term = file.loss[i];
    at_node(file, "loss", i, term, [&] {
      const auto kind = std::ranges::find(term_kinds(), term.op, &TermKind::op);
      all = std::move(all) + named(term.name, term.weight * kind->make({t, term, dims, made}));
    });
  }
  return all;
}

}  // namespace

Model model_of(GraphFile whole, std::optional<i64> rows) {
  return [file = std::make_shared<const GraphFile>(std::move(whole)), rows](Trace& t) { return trace(t, *file, rows); };
}

}  // namespace stretto
