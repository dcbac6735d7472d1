// Sequences that are cut into segments: one run is the oracle, on one actor and with the same segments. Everything else
// has its bits, or those of its layout.
#include <gmock/gmock.h>

#include "layouts/compare.h"
#include "stretto/schedule/builders.h"
#include "support/message.h"

namespace stretto {
namespace {

Training cut_in(SegmentSizes segments, DType dtype = f32, int microbatches = 4) {
  return {.microbatches = microbatches, .segments = std::move(segments), .seed = 3, .dtype = dtype, .clip = 0.5};
}

struct InSegments {
  u64 parameters = 0;
  double loss = 0;
  bool operator==(const InSegments&) const = default;
};
InSegments in_segments(const Model& model, i64 vocab, const Training& training, const Parallel& p,
                       const RunOptions& run = {}) {
  Trainer t(compile(model, adamw({.lr = 3e-3}), training, p), run);
  InSegments all;
  for (int i = 1; i <= 3; ++i) all.loss = t.step(step_batch(t.compiled(), vocab, i)).loss;
  all.parameters = t.parameters_hash();
  return all;
}
InSegments in_segments(const ModelConfig& c, const Training& training, const Parallel& p, const RunOptions& run = {}) {
  return in_segments(make_model(c, 32), c.vocab, training, p, run);
}

std::vector<std::string> schedules_with_segments() {
  std::vector<std::string> names;
  for (const BuilderEntry& e : schedule_builders())
    if (e.segments) names.emplace_back(e.name);
  return names;
}

const std::vector<SegmentSizes> some_cuts{{.count = 2}, {.count = 4}, {.sizes = {3, 4, 1}}};

TEST(SegmentsOfRuns, SchedulesGiveTheBitsOfTheSerialRun) {
  for (const auto& [family, cut] : {std::pair{"gpt2", some_cuts[1]}, {"llama", some_cuts[2]}}) {
    const InSegments serial = in_segments(small(family), cut_in(cut), {});
    for (const std::string& schedule : schedules_with_segments())
      EXPECT_EQ(serial, in_segments(small(family), cut_in(cut), {.mesh = {{"pipe", 2}}, .schedule = schedule}))
          << family << " " << schedule;
  }
}

TEST(SegmentsOfRuns, ManyActors) {
  const ModelConfig c = small("llama", 4);
  const InSegments serial = in_segments(c, cut_in({.count = 4}), {});
  for (const char* schedule : {"seq-1f1b", "zb-h2"})
    EXPECT_EQ(serial, in_segments(c, cut_in({.count = 4}), {.mesh = {{"pipe", 4}}, .schedule = schedule})) << schedule;
}

TEST(SegmentsOfRuns, Recompute) {
  const InSegments serial = in_segments(small("llama"), cut_in({.count = 4}), {});
  const auto run = [&](const char* schedule, Recompute again) {
    return in_segments(small("llama"), cut_in({.count = 4}),
                       {.mesh = {{"pipe", 2}}, .schedule = schedule, .recompute = {again}});
  };
  for (const char* schedule : {"seq-1f1b", "zb-h1"}) EXPECT_EQ(serial, run(schedule, Recompute::selective)) << schedule;
  EXPECT_EQ(refusal_of([&] { run("1f1b", Recompute::full); }),
            "[recompute] full would make keys and values again, which later segments read and F keeps; hint: use "
            "selective, which keeps them in any case, or none");
}

TEST(SegmentsOfRuns, WhatTheyDoNotGoWith) {
  const auto why = [&](ModelConfig c, const Training& t, const Parallel& p) {
    return refusal_of([&] { compile(make_model(c, 32), sgd(), t, p); });
  };
  Training exact = cut_in({.count = 2});
  exact.exact = true, exact.leaf = 8;
  EXPECT_THAT(why(small("gpt2"), exact, {}), testing::HasSubstr("exact training adds gradients up leaf by leaf"));
  EXPECT_THAT(why(small("gpt2"), cut_in({.count = 3}), {}), testing::HasSubstr("cannot be cut into 3 equal segments"));
  EXPECT_THAT(why(small("gpt2"), cut_in({.count = 2}), {.mesh = {{"pipe", 2}}, .schedule = "zb-v"}),
              testing::HasSubstr("this schedule does not cut microbatches; hint: use 1 segment, or gpipe, 1f1b"));
  ModelConfig slots = small("mixtral");
  slots.capacity = 1.25;
  EXPECT_THAT(why(slots, cut_in({.count = 2}), {}),
              testing::HasSubstr("} mixes positions; hint: sequences can be cut where"));
}

// In f64, against the run of whole sequences and of one rank: every gradient and loss.
TEST(SegmentsOfRuns, SumsAreThoseOfWholeSequences) {
  for (const char* family : {"gpt2", "llama", "mixtral"}) {
    const Reference whole({.config = small(family), .steps = 3});
    const auto equals = [&](SegmentSizes cut, const Parallel& p) {
      Setting s = whole.setting;
      s.training.segments = std::move(cut);
      whole.equals(compile(make_model(s.config, s.rows), adamw({.lr = 3e-3}), s.training, p));
    };
    for (const SegmentSizes& cut : some_cuts) equals(cut, {});
    if (whole.setting.config.family == "gpt2") continue;
    for (const ParallelNames& names :
         {ParallelNames{.data = 2}, ParallelNames{.tensor = 2, .sequence = true}, ParallelNames{.data = 2, .zero = 3},
          ParallelNames{.context = 2}, ParallelNames{.context = 2, .exchange = true}})
      equals({.count = 4}, {.mesh = {{"pipe", 2}}, .names = names, .schedule = "seq-1f1b"});
  }
}

}  // namespace
}  // namespace stretto
