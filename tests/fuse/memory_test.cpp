// Fused bodies run on the buffers that were chosen for them, against the plain interpreter, in which every value has
// memory of its own: whatever takes over whose memory, the numbers stay.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <limits>
#include <optional>

#include "stretto/fuse/calls.h"
#include "stretto/ops/all.h"
#include "stretto/ops/copy.h"
#include "stretto/ops/input.h"
#include "stretto/ops/ops.h"
#include "support/evaluate.h"
#include "support/property.h"

namespace stretto::test {
namespace {

using Kind = BodyBuffer::Kind;

std::vector<Value> arguments_of(const Graph& g) {
  std::vector<Value> all;
  for (std::size_t i = 0; i < g.nodes.size(); ++i)
    if (g.nodes[i].op == &input_op) all.push_back({NodeId{std::uint32_t(i)}, 0});
  return all;
}

// The results, by number. `before`: what lies in a result's memory that is added to.
std::vector<Buffer> run_calls(const Calls& c, const std::vector<Buffer>& arguments, const FuseOptions& o,
                              double before) {
  std::vector<Buffer> memory;
  std::vector<std::size_t> at(c.buffers.size());
  std::vector<std::size_t> argument(arguments.size());
  for (std::size_t b = 0; b < c.buffers.size(); ++b) {
    const BodyBuffer& buffer = c.buffers[b];
    at[b] = memory.size();
    if (buffer.kind == Kind::argument) {
      memory.push_back(arguments[buffer.index]);
      argument[buffer.index] = at[b];
      continue;
    }
    memory.emplace_back(f64, i64(buffer.bytes / 8));
    const bool added = buffer.kind == Kind::result && o.accumulate[buffer.index];
    for (i64 i = 0; i < memory.back().count(); ++i)
      memory.back().set(i, added ? before : std::numeric_limits<double>::quiet_NaN());
  }
  for (std::size_t b = 0; b < c.buffers.size(); ++b)
    if (c.buffers[b].kind == Kind::result && o.same_memory[c.buffers[b].index] >= 0)
      at[b] = argument[std::size_t(o.same_memory[c.buffers[b].index])];
  for (const KernelCall& k : c.calls) {
    Call call{.graph = c.graph, .node = c.graph.node(k.node), .in = {}, .out = {}, .accumulate = k.accumulate};
    std::vector<std::byte*> in, out;
    for (const Ref& r : k.in) call.in.push_back(r.view), in.push_back(memory[at[r.buffer]].data() + r.start);
    for (const Ref& r : k.out) {
      call.out.push_back(r.view);
      out.push_back(r.buffer == Ref::none ? nullptr : memory[at[r.buffer]].data() + r.start);
    }
    run_kernel(choose_kernel(call), call, in, out, {.overwrite = false});
  }
  std::vector<Buffer> results(o.accumulate.size());
  for (std::size_t b = 0; b < c.buffers.size(); ++b)
    if (c.buffers[b].kind == Kind::result) results[c.buffers[b].index] = memory[at[b]];
  return results;
}

Buffer numbers(const Graph& g, Value v, int seed) {
  Buffer b(g, g.type(v));
  for (i64 i = 0; i < b.count(); ++i) b.set(i, std::sin(1.7 * double(i) + double(seed)));
  return b;
}

// "" when all results are those of the interpreter.
std::string difference(const Graph& g, const FuseOptions& o) {
  Values values;
  std::vector<Buffer> arguments;
  for (Value v : arguments_of(g)) {
    arguments.push_back(numbers(g, v, int(arguments.size())));
    values[v] = arguments.back();
  }
  evaluate(g, values);
  const Calls c = fuse(g, o);
  const std::vector<Buffer> got = run_calls(c, arguments, o, 0.25);
  for (std::size_t j = 0; j < g.outputs.size(); ++j) {
    const Buffer& want = values.at(g.outputs[j]);
    for (i64 i = 0; i < want.count(); ++i) {
      const double expected = want.at(i) + (o.accumulate[j] ? 0.25 : 0);
      if (!(std::abs(got[j].at(i) - expected) <= 1e-9))
        return fmt::format("result {} at {} is {} instead of {}\n{}\n{}", j, i, got[j].at(i), expected, g.str(),
                           c.str());
    }
  }
  return "";
}

std::string difference(Builder& b, std::initializer_list<Tensor> outputs) {
  for (const Tensor& t : outputs) b.graph.outputs.push_back(t.value);
  return difference(b.graph, {.accumulate = std::vector<bool>(outputs.size(), false),
                              .same_memory = std::vector<int>(outputs.size(), -1)});
}

const Dim i{"i", 3}, j{"j", 3}, k{"k", 3}, h{"h", 2}, two{"two", 2};

TEST(FusedMemory, ValueAndAPartOfIt) {
  Builder b;
  const Tensor m = tanh(input(b, "0", f64, {i, j}));
  EXPECT_EQ(difference(b, {m - index(m, i, 0)}), "");
}

TEST(FusedMemory, ValueAndItsTranspose) {
  Builder b;
  const Tensor m = sum(input(b, "0", f64, {k, i, j}), {k});
  EXPECT_EQ(difference(b, {m + rename(m, {{i, j}, {j, i}})}), "");
}

TEST(FusedMemory, ValueAndItsTransposeInAGroup) {
  Builder b;
  const Tensor m = sum(input(b, "0", f64, {k, i, j}), {k});
  EXPECT_EQ(difference(b, {tanh(m * 2.0) + rename(m, {{i, j}, {j, i}})}), "");
}

TEST(FusedMemory, RowsScaledByAPartOfThemselves) {
  Builder b;
  const Tensor m = sum(input(b, "0", f64, {k, i, j}), {k});
  EXPECT_EQ(difference(b, {rms_norm(m, index(m, i, 1), j)}), "");
}

TEST(FusedMemory, ResultInItsTransposesMemory) {
  Builder b;
  const Tensor m = input(b, "0", f64, {i, j});
  b.graph.outputs = {(m + rename(m, {{i, j}, {j, i}})).value};
  EXPECT_EQ(difference(b.graph, {.accumulate = {false}, .same_memory = {0}}), "");
}

// What can be done in place still is: a sum of a value and the same value under no other name needs no memory.
TEST(FusedMemory, SameElementsAreStillTakenOver) {
  Builder b;
  const Tensor m = sum(input(b, "0", f64, {k, i, j}), {k});
  b.graph.outputs = {(m + permute(m, {j, i})).value};
  const FuseOptions o{.accumulate = {false}, .same_memory = {-1}};
  EXPECT_EQ(fuse(b.graph, o).buffers.size(), 2u);
  EXPECT_EQ(difference(b.graph, o), "");
}

// A random body, one op after the other over everything made so far.
class RandomBody {
 public:
  RandomBody() {
    add(input(b_, "0", f64, {i, j}));
    add(input(b_, "1", f64, {j, k}));
    add(input(b_, "2", f64, {i, j, k}));
    const int ops = *rc::gen::inRange(2, 24);
    for (int n = 0; n < ops; ++n) {
      const std::optional<Tensor> made = next();
      if (made) add(*made);
    }
  }

  // A few of the values; results have memory of their own, as tasks ask for.
  Graph body() {
    const int outputs = 1 + number(3);
    for (int n = 0; n < outputs; ++n) {
      Tensor t = n == 0 ? all_.back() : any();
      const auto& known = b_.graph.outputs;
      if (b_.graph.node(t.value).op == &input_op || b_.graph.node(t.value).op->view ||
          std::find(known.begin(), known.end(), t.value) != known.end())
        t = copy(t);
      b_.graph.outputs.push_back(t.value);
    }
    return b_.graph;
  }

 private:
  static int number(int below) { return *rc::gen::inRange(0, below); }
  const Tensor& any() const { return all_[std::size_t(number(int(all_.size())))]; }
  static bool has(const Tensor& t, const Dim& d) {
    const Dims dims = t.dims();
    return std::find(dims.begin(), dims.end(), d) != dims.end();
  }
  static Dims shuffled(Dims dims) {
    for (std::size_t n = dims.size(); n > 1; --n) std::swap(dims[n - 1], dims[std::size_t(number(int(n)))]);
    return dims;
  }

  static Tensor with_dims_of(const Tensor& x, const Tensor& y) {
    Dims more = x.dims();
    for (const Dim& e : y.dims())
      if (!has(x, e)) more.push_back(e);
    return broadcast(x, shuffled(more));
  }

  // Values stay small, so that rounding does.
  void add(Tensor t) {
    if (b_.graph.node(t.value).op == &input_op) {
      values_[t.value] = numbers(b_.graph, t.value, int(all_.size()));
    } else {
      evaluate(b_.graph, values_);
      const Buffer& made = values_.at(t.value);
      double most = 0;
      for (i64 e = 0; e < made.count(); ++e) most = std::max(most, std::abs(made.at(e)));
      if (most > 8) return add(tanh(t));
    }
    all_.push_back(t);
  }

  std::optional<Tensor> next() {
    const Tensor x = any(), y = any();
    const Dims dims = x.dims();
    if (dims.empty()) return x + y;
    const Dim d = dims[std::size_t(number(int(dims.size())))];
    switch (number(14)) {
      case 0:
        return with_dims_of(x, y) - y;
      case 1:
        return y * with_dims_of(x, y);
      case 2:
        return tanh(x);
      case 3:
        return x * 0.5 + 1.0;
      case 4:
        return index(x, d, number(int(d.size)));
      case 5:
        if (has(x, h) || d.size != 3) return {};
        return slice(x, d, h, number(2));
      case 6: {
        const Dim& other = dims[std::size_t(number(int(dims.size())))];
        if (other == d || other.size != d.size) return {};
        return rename(x, {{d, other}, {other, d}});
      }
      case 7: {
        const Dim other = std::vector<Dim>{i, j, k}[std::size_t(number(3))];
        if (has(x, other) || other.size != d.size) return {};
        return rename(x, d, other);
      }
      case 8:
        return with_dims_of(x, y);
      case 9:
        return sum(x, {d});
      case 10:
        return softmax(x, d);
      case 11: {
        Dims over{d}, both;
        if (!has(y, d)) return {};
        for (const Dim& e : dims)
          if (e != d && has(y, e)) both.push_back(e);
        return contract(x, y, over, along(both));
      }
      case 12: {
        if (has(x, two)) return index(x, two, number(2));
        if (dims != y.dims()) return stack({x, tanh(x)}, two);
        return stack({x, y}, two, number(int(dims.size()) + 1));
      }
      default: {
        Tensor row = x;
        for (const Dim& e : dims)
          if (e != d) row = index(row, e, number(int(e.size)));
        return rms_norm(x, row, d);
      }
    }
  }

  Builder b_;
  Values values_;
  std::vector<Tensor> all_;
};

TEST(FusedMemory, RandomBodiesOfViews) {
  EXPECT_TRUE(holds("bodies of views, pointwise ops, reductions and contractions", 1500, [] {
    RandomBody random;
    const Graph g = random.body();
    FuseOptions o;
    const std::vector<Value> arguments = arguments_of(g);
    std::vector<char> taken(arguments.size(), 0);
    for (Value v : g.outputs) {
      const int how = *rc::gen::inRange(0, 3);
      o.accumulate.push_back(how == 1);
      o.same_memory.push_back(-1);
      for (std::size_t a = 0; a < arguments.size() && how == 2; ++a)
        if (!taken[a] && o.same_memory.back() < 0 && g.type(arguments[a]) == g.type(v))
          o.same_memory.back() = int(a), taken[a] = 1;
    }
    const std::string wrong = difference(g, o);
    if (!wrong.empty()) RC_FAIL(wrong);
  }));
}

}  // namespace
}  // namespace stretto::test
