// Fused bodies run on the buffers that were chosen for them, against the plain interpreter, in which every value has
// memory of its own: whatever takes over whose memory, the numbers stay.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <limits>
#include <optional>

#include "stretto/fuse/fuse.h"
#include "stretto/ops/all.h"
#include "stretto/ops/copy.h"
#include "stretto/ops/input.h"
#include "stretto/ops/ops.h"
#include "support/evaluate.h"
#include "support/property.h"

namespace stretto::test {
namespace {

IdVector<ArgumentId, Value> arguments_of(const Graph& g) {
  IdVector<ArgumentId, Value> all;
  for (NodeId id : node_ids(g))
    if (g.node(id).op == &input_op) all.push_back({id, 0});
  return all;
}

// The results, by number. `before`: what lies in a result's memory that is added to.
IdVector<ResultId, Buffer> run_calls(const Calls& c, const IdVector<ArgumentId, Buffer>& arguments,
                                     const ResultMemories& o, double before) {
  IdVector<ArgumentId, Buffer> given = arguments;
  IdVector<ResultId, Buffer> made(o.size());
  IdVector<BufferId, Buffer> own(c.buffers.size());
  const auto memory = [&](BufferId b) -> Buffer& {
    if (const ArgumentId* a = c.buffers[b].argument()) return given[*a];
    if (const ResultId* r = c.buffers[b].result()) return o[*r].same_memory ? given[*o[*r].same_memory] : made[*r];
    return own[b];
  };
  for (BufferId b : c.buffers.ids()) {
    const ResultId* r = c.buffers[b].result();
    if (c.buffers[b].argument() || (r && o[*r].same_memory)) continue;
    memory(b) = Buffer(f64, i64(c.buffers[b].bytes / 8));
    for (i64 i = 0; i < memory(b).count(); ++i)
      memory(b).set(i, r && o[*r].accumulate ? before : std::numeric_limits<double>::quiet_NaN());
  }
  for (const KernelCall& k : c.calls) {
    Call call{.graph = c.graph, .node = c.graph.node(k.node), .in = {}, .out = {}, .accumulate = k.accumulate};
    std::vector<std::byte*> in, out;
    for (const Ref& r : k.in) call.in.push_back(r.view), in.push_back(memory(*r.buffer).data() + r.start);
    for (const Ref& r : k.out)
      call.out.push_back(r.view), out.push_back(r.buffer ? memory(*r.buffer).data() + r.start : nullptr);
    run_kernel(choose_kernel(call), call, in, out, {.overwrite = false});
  }
  for (ResultId r : o.ids())
    if (o[r].same_memory) made[r] = given[*o[r].same_memory];
  return made;
}

Buffer numbers(const Graph& g, Value v, int seed) {
  Buffer b(g, g.type(v));
  for (i64 i = 0; i < b.count(); ++i) b.set(i, std::sin(1.7 * double(i) + double(seed)));
  return b;
}

// "" when all results are those of the interpreter.
std::string difference(const Graph& g, const ResultMemories& o) {
  Values values;
  IdVector<ArgumentId, Buffer> arguments;
  for (Value v : arguments_of(g)) {
    arguments.push_back(numbers(g, v, int(arguments.size())));
    values[v] = arguments.back();
  }
  evaluate(g, values);
  const Calls c = fuse(g, o);
  const IdVector<ResultId, Buffer> got = run_calls(c, arguments, o, 0.25);
  for (ResultId r : o.ids()) {
    const Buffer& want = values.at(g.outputs[r.value]);
    for (i64 i = 0; i < want.count(); ++i) {
      const double expected = want.at(i) + (o[r].accumulate ? 0.25 : 0);
      if (!(std::abs(got[r].at(i) - expected) <= 1e-9))
        return fmt::format("result {} at {} is {} instead of {}\n{}\n{}", r.value, i, got[r].at(i), expected, g.str(),
                           c.str());
    }
  }
  return "";
}

std::string difference(Builder& b, std::initializer_list<Tensor> outputs) {
  for (const Tensor& t : outputs) b.graph.outputs.push_back(t.value);
  return difference(b.graph, ResultMemories(outputs.size()));
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
  EXPECT_EQ(difference(b.graph, {{.same_memory = ArgumentId(0)}}), "");
}

TEST(FusedMemory, ResultsThatSwapTheirMemory) {
  Builder b;
  const Tensor m = input(b, "0", f64, {i, j}), n = input(b, "1", f64, {i, j}), o = input(b, "2", f64, {i, j});
  b.graph.outputs = {n.value, m.value, o.value};
  EXPECT_EQ(
      difference(b.graph,
                 {{.same_memory = ArgumentId(0)}, {.same_memory = ArgumentId(1)}, {.same_memory = ArgumentId(2)}}),
      "");
}

TEST(FusedMemory, ResultsThatGoRound) {
  Builder b;
  const Tensor m = input(b, "0", f64, {i, j}), n = input(b, "1", f64, {i, j}), o = input(b, "2", f64, {i, j});
  for (const auto& round : {std::vector{n, o, m}, std::vector{o, m, n}}) {
    b.graph.outputs = {round[0].value, round[1].value, round[2].value};
    EXPECT_EQ(
        difference(b.graph,
                   {{.same_memory = ArgumentId(0)}, {.same_memory = ArgumentId(1)}, {.same_memory = ArgumentId(2)}}),
        "");
  }
}

TEST(FusedMemory, ArgumentsAndViewsAsResults) {
  Builder b;
  const Tensor m = input(b, "0", f64, {i, j}), s = sum(input(b, "1", f64, {k, i, j}), {k});
  EXPECT_EQ(difference(b, {m, index(m, i, 1), s, s, rename(s, {{i, j}, {j, i}})}), "");
}

TEST(FusedMemory, ArgumentIsAddedUp) {
  Builder b;
  const Tensor m = input(b, "0", f64, {i, j});
  b.graph.outputs = {m.value, index(m, i, 1).value};
  EXPECT_EQ(difference(b.graph, {{.accumulate = true}, {.accumulate = true}}), "");
}

// What can be done in place still is: a sum of a value and the same value under no other name needs no memory.
TEST(FusedMemory, SameElementsAreStillTakenOver) {
  Builder b;
  const Tensor m = sum(input(b, "0", f64, {k, i, j}), {k});
  b.graph.outputs = {(m + permute(m, {j, i})).value};
  const ResultMemories o(1);
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

  // A few of the values, whoever makes them.
  Graph body() {
    const int outputs = 1 + number(3);
    for (int n = 0; n < outputs; ++n) b_.graph.outputs.push_back((n == 0 ? all_.back() : any()).value);
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
    ResultMemories o;
    const IdVector<ArgumentId, Value> arguments = arguments_of(g);
    IdVector<ArgumentId, bool> taken(arguments.size(), false);
    for (Value v : g.outputs) {
      const int how = *rc::gen::inRange(0, 3);
      ResultMemory memory{.accumulate = how == 1};
      for (ArgumentId a : arguments.ids())
        if (how == 2 && !taken[a] && !memory.same_memory && g.type(arguments[a]) == g.type(v))
          memory.same_memory = a, taken[a] = true;
      o.push_back(memory);
    }
    const std::string wrong = difference(g, o);
    if (!wrong.empty()) RC_FAIL(wrong);
  }));
}

}  // namespace
}  // namespace stretto::test
