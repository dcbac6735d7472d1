#include "stretto/optim/muon.h"

#include <gmock/gmock.h>

#include <cmath>

#include "stretto/checkpoint/writer.h"
#include "stretto/formats/fields.h"
#include "stretto/train/snapshot.h"
#include "support/files.h"
#include "support/message.h"
#include "support/small_models.h"

namespace stretto {
namespace {

using testing::HasSubstr;

std::vector<double> doubles_of(const Field& f) {
  std::vector<double> all;
  for (const Field& x : *f.array()) {
    const i64* whole = std::get_if<i64>(&x.value);
    all.push_back(whole ? double(*whole) : std::get<double>(x.value));
  }
  return all;
}

// The gradient of w is `g`, whatever w is.
Model given_gradient(i64 rows, i64 columns) {
  return [=](Trace& t) {
    const Dim batch = t.batch("batch", rows), in{"in", rows}, out{"out", columns};
    const Tensor x = t.input("x", {batch, in}), g = t.input("g", {batch, out});
    return ratio_of(sum(contract(x, t.param("w", {in, out}), in) * g, {batch, out}), t.constant(1));
  };
}

TEST(Muon, IsThatOfTorch) {
  const Field file = read_json_file(STRETTO_SOURCE "/tests/files/optim/muon.json");
  for (const Field& c : *file.find("cases")->array()) {
    const i64 rows = std::get<i64>(c.find("rows")->value), columns = std::get<i64>(c.find("columns")->value);
    const bool rms = std::get<std::string>(c.find("scale")->value) == "rms";
    const Optimizer o = muon({.lr = 0.02,
                              .momentum = 0.95,
                              .decay = 0.1,
                              .nesterov = std::get<bool>(c.find("nesterov")->value),
                              .scale = rms ? Muon::Scale::rms : Muon::Scale::original});
    Trainer t(compile(given_gradient(rows, columns), o, {.dtype = f64}));
    t.set_parameter("w", Array::of<double>(doubles_of(*c.find("start")), {rows, columns}));
    std::vector<double> identity(rows * rows, 0);
    for (i64 i = 0; i < rows; ++i) identity[i * rows + i] = 1;
    for (const Field& g : *c.find("gradients")->array())
      t.step(
          {{"x", Array::of<double>(identity, {rows, rows})}, {"g", Array::of<double>(doubles_of(g), {rows, columns})}});
    const std::vector<double> got = t.parameter("w").doubles(), expected = doubles_of(*c.find("end"));
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-10) << rows << "x" << columns;
  }
}

Compiled compiled(const std::string& family, const Parallel& p, DType dtype = f64, const Muon& m = {.lr = 1e-2}) {
  ModelConfig c = tiny(family);
  c.tied = false;
  if (family == "mixtral") c.experts = 4;
  return compile(make_model(c, 16), muon(m), {.microbatches = 4, .seed = 3, .dtype = dtype, .clip = 1}, p);
}

TEST(Muon, KnowsWhichParametersAreMatrices) {
  const Compiled c = compiled("mixtral", {});
  for (const CompiledParam& p : c.params) {
    const bool numbers = p.name == "wte" || p.name == "head" || p.dims.size() == 1;
    EXPECT_EQ(p.has_state(1), numbers) << p.name << p.dims.str() << ": a matrix has a momentum alone";
    EXPECT_TRUE(p.has_state(0)) << p.name;
  }
}

struct Trained {
  std::vector<std::vector<double>> parameters;
  u64 hash = 0;
};
Trained run(const Compiled& c, int steps = 3) {
  Trainer t(c);
  for (int i = 1; i <= steps; ++i) t.step(random_batch(c, 50, u64(i)));
  Trained r{.hash = t.parameters_hash()};
  for (const CompiledParam& p : c.params) r.parameters.push_back(t.parameter(p.name).doubles());
  return r;
}

void expect_close(const Trained& a, const Trained& b, const Compiled& c, double tolerance, const std::string& what) {
  for (std::size_t p = 0; p < a.parameters.size(); ++p) {
    double apart = 0, largest = 0;
    for (std::size_t i = 0; i < a.parameters[p].size(); ++i) {
      apart = std::max(apart, std::abs(a.parameters[p][i] - b.parameters[p][i]));
      largest = std::max(largest, std::abs(a.parameters[p][i]));
    }
    EXPECT_LE(apart, tolerance * largest) << what << ": " << c.params[ParamId(p)].name;
  }
}

struct Named {
  const char* name;
  Parallel parallel;
};
const std::vector<Named>& layouts() {
  static const std::vector<Named> all{
      {"data=2", {.names = {.data = 2}}},
      {"data=2 zero=1", {.names = {.data = 2, .zero = 1}}},
      {"data=2 zero=2", {.names = {.data = 2, .zero = 2}}},
      {"data=2 zero=3", {.names = {.data = 2, .zero = 3}}},
      {"tensor=2", {.names = {.tensor = 2}}},
      {"tensor=2 sequence data=2 zero=1", {.names = {.data = 2, .tensor = 2, .sequence = true, .zero = 1}}},
      {"pipe=2 data=2 zero=3", {.mesh = {{"pipe", 2}}, .names = {.data = 2, .zero = 3}, .schedule = "zb-v"}},
      {"context=2", {.names = {.context = 2}}},
      {"depth=2", {.names = {.depth = 2}}}};
  return all;
}

TEST(Muon, EveryLayoutMakesTheSameParameters) {
  for (const char* family : {"llama", "gpt2"}) {
    const Trained serial = run(compiled(family, {}));
    for (const Named& l : layouts()) {
      const Compiled c = compiled(family, l.parallel);
      expect_close(serial, run(c), c, 1e-9, fmt::format("{} {}", family, l.name));
    }
  }
}

TEST(Muon, ExpertsAreMatricesOfTheirRank) {
  const Trained serial = run(compiled("mixtral", {}));
  for (const Named& l :
       {Named{"expert=2", {.names = {.expert = 2}}}, Named{"expert=2 tensor=2", {.names = {.tensor = 2, .expert = 2}}},
        Named{"expert=2 data=2 zero=1", {.names = {.data = 2, .expert = 2, .zero = 1}}}}) {
    const Compiled c = compiled("mixtral", l.parallel);
    expect_close(serial, run(c), c, 1e-9, l.name);
  }
}

TEST(Muon, EveryScheduleMakesTheSameBits) {
  const u64 serial = run(compiled("llama", {}, f32)).hash;
  for (const char* schedule : {"1f1b", "gpipe", "zb-h1", "zb-v", "interleaved-1f1b"})
    EXPECT_EQ(run(compiled("llama", {.mesh = {{"pipe", 2}}, .schedule = schedule}, f32)).hash, serial) << schedule;
}

TEST(Muon, GoesOnUnderAnotherLayout) {
  const test::Folder folder;
  const Compiled whole = compiled("llama", {});
  const Trained uninterrupted = run(whole, 4);
  for (const Named& l : layouts()) {
    Trainer first(compiled("llama", {.names = {.data = 2, .zero = 1}})), then(compiled("llama", l.parallel));
    for (int i = 1; i <= 2; ++i) first.step(random_batch(whole, 50, u64(i)));
    write_checkpoint(folder / l.name, snapshot_of(first, "config"));
    restore(then, Checkpoint(folder / l.name));
    for (int i = 3; i <= 4; ++i) then.step(random_batch(whole, 50, u64(i)));
    Trained r;
    for (const CompiledParam& p : whole.params) r.parameters.push_back(then.parameter(p.name).doubles());
    expect_close(uninterrupted, r, whole, 1e-9, l.name);
  }
}

TEST(Muon, InBf16WithMasters) {
  const Trained serial = run(compiled("llama", {}, bf16));
  for (const Named& l : {Named{"pipe=2", {.mesh = {{"pipe", 2}}, .schedule = "zb-v"}}})
    EXPECT_EQ(run(compiled("llama", l.parallel, bf16)).hash, serial.hash) << l.name;
  const Compiled c = compiled("llama", {.names = {.data = 2, .zero = 1}}, bf16);
  expect_close(serial, run(c), c, 0.05, "data=2 zero=1");
}

TEST(Muon, HasAveragesAndUndo) {
  const auto with = [](const Parallel& p) {
    return compile(make_model(tiny("llama"), 8), with_ema(muon({.lr = 1e-2}), 0.9),
                   {.microbatches = 4, .seed = 3, .dtype = f64, .clip = 1e-3, .clip_late = true}, p);
  };
  const Compiled c = with({.names = {.data = 2, .zero = 1}});
  expect_close(run(with({})), run(c), c, 1e-9, "data=2 zero=1");
}

TEST(Muon, SaysWhatIsWrong) {
  Optimizer greedy = muon();
  greedy.update = [](Trace&, Slice s) {
    s.param = s.part(s.whole(s.param));
    return s;
  };
  EXPECT_THAT(refusal_of([&] { compile(make_model(tiny("llama"), 8), greedy, {.microbatches = 4}); }),
              HasSubstr("'muon' asks for wte {vocab=50 model=32} as a whole matrix, and it is none to it; hint: update "
                        "it as numbers where slice.matrix is empty"));
  Optimizer rounded = muon();
  rounded.state_dtype = bf16;
  EXPECT_THAT(refusal_of([&] { compile(make_model(tiny("llama"), 8), rounded, {.microbatches = 4}); }),
              HasSubstr("'muon' makes whole matrices of its states, which are kept in f32"));
  EXPECT_THAT(refusal_of([] { muon({.steps = 0}); }), HasSubstr("muon with 0 steps"));
}

}  // namespace
}  // namespace stretto
