// The best validation, giving up, samples, averages.
#include "stretto/run/inner/progress.h"

#include <gtest/gtest.h>

#include "stretto/ops/mul.h"
#include "stretto/run/current.h"
#include "stretto/run/evaluate.h"
#include "stretto/run/inner/journal.h"
#include "stretto/run/loop.h"
#include "stretto/run/inner/metrics.h"
#include "stretto/run/prepare.h"
#include "support/files.h"
#include "support/message.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;

TEST(BestLosses, AreTheSmallestThatAreNumbers) {
  BestLoss best;
  EXPECT_TRUE(best.put(10, 3.0));
  EXPECT_FALSE(best.put(20, 3.0));
  EXPECT_FALSE(best.put(30, NAN));
  EXPECT_EQ(best.tries(), 2);
  EXPECT_TRUE(best.put(40, 2.5));
  EXPECT_EQ(best.tries(), 0);
  EXPECT_EQ(best.step(), 40);
  const BestLoss again({{.step = 1, .validation = 2.0}, {.step = 2}, {.step = 3, .validation = 2.5}});
  EXPECT_EQ(again.loss(), 2.0);
  EXPECT_EQ(again.tries(), 1);
}

struct SmallRun {
  SmallRun() {
    std::string text;
    for (int i = 0; i < 200; ++i) text += fmt::format("line {} of it\n", i * 7 % 100);
    folder.write("a.txt", text);
  }
  RunConfig config(const std::vector<std::string>& more) const {
    std::vector<std::string> all{"--model.layers=1",
                                 "--model.width=16",
                                 "--model.heads=2",
                                 "--model.context=16",
                                 "--train.batch=4",
                                 "--train.steps=8",
                                 "--train.validate=1",
                                 "--data.validation=0.2",
                                 "--data.path=" + (folder / "a.txt").string(),
                                 "--log.dir=" + (folder / "run").string()};
    all.insert(all.end(), more.begin(), more.end());
    return read_run("", all);
  }
  std::string log() const { return test::text_of(folder / "run" / "log.txt"); }
  RunSummary run(const std::vector<std::string>& more, const std::optional<std::string>& resume = {}) const {
    std::FILE* out = std::fopen("/dev/null", "w");
    const RunSummary s = train(config(more), out, Verbosity::normal, resume);
    std::fclose(out);
    return s;
  }
  test::Folder folder;
};

TEST(Progress, TheBestCheckpointIsKeptAndPatienceEndsTheRun) {
  const SmallRun run;
  // A rate at which nothing gets better.
  const RunSummary s = run.run({"--optimizer.lr=30", "--optimizer.schedule=constant", "--train.patience=3",
                                "--checkpoint.best=true", "--train.clip=0"});
  EXPECT_LT(s.steps, 8);
  EXPECT_FALSE(s.stopped);
  std::vector<double> losses;
  for (const Field& line : read_metrics(run.folder / "run" / "metrics.jsonl"))
    losses.push_back(std::get<double>(line.find("validation_loss")->value));
  const auto best = std::min_element(losses.begin(), losses.end());
  EXPECT_EQ(losses.end() - best, 4);
  EXPECT_NE(run.log().find("the last 3 validations were no better"), std::string::npos) << run.log();
  const StoredModel kept = load_model(run.folder / "run" / "best");
  EXPECT_EQ(kept.path.filename(), fmt::format("step-{:08}", best - losses.begin() + 1));
  const Evaluated e = evaluate(kept, {.data = {(run.folder / "a.txt").string()}});
  EXPECT_GT(e.tokens, 0);
}

TEST(Progress, ARunThatPatienceHasEndedStaysEnded) {
  const SmallRun run;
  const std::vector<std::string> how{"--optimizer.lr=30", "--optimizer.schedule=constant", "--train.clip=0"};
  const auto with = [&](const std::string& patience) {
    std::vector<std::string> all = how;
    all.push_back("--train.patience=" + patience);
    return all;
  };
  const RunSummary ended = run.run(with("2"));
  ASSERT_LT(ended.steps, 8);
  for (int again = 0; again < 2; ++again) {
    const RunSummary s = run.run(with("2"), (run.folder / "run").string());
    EXPECT_EQ(s.steps, ended.steps);
    EXPECT_EQ(s.parameters, ended.parameters);
    EXPECT_FALSE(s.stopped);
  }
  EXPECT_EQ(run.run(with("0"), (run.folder / "run").string()).steps, 8);
}

TEST(Progress, SamplesAreSaid) {
  const SmallRun run;
  run.run({"--log.sample=line \"1\"", "--train.validate=4"});
  const std::string log = run.log();
  std::size_t count = 0;
  for (std::size_t at = 0; (at = log.find("\nsample   \"line \\\"1\\\"", at)) != log.npos; ++at) ++count;
  EXPECT_EQ(count, 2u) << log;
}

TEST(Progress, AveragesFollowTheParameters) {
  const SmallRun run;
  run.run({"--train.ema=0.5", "--optimizer.lr=0.01"});
  const StoredModel last = load_model(run.folder / "run"), mean = load_model(run.folder / "run", {.ema = true});
  double apart = 0, size = 0;
  for (const auto& [name, a] : last.weights) {
    const std::vector<double> x = a.doubles(), y = mean.weights.at(name).doubles();
    for (std::size_t i = 0; i < x.size(); ++i)
      apart = std::max(apart, std::abs(x[i] - y[i])), size = std::max(size, std::abs(x[i]));
  }
  EXPECT_GT(apart, 1e-5 * size);
  EXPECT_LT(apart, 0.2 * size);  // they begin where the parameters do, not at zero
  EXPECT_NE(refusal_of([&] { load_model(run.folder / "a.txt", {.ema = true}); }), "no error");
}

TEST(Progress, OnlyWhatTheModelAsksForCounts) {
  const SmallRun run;
  const auto flops = [&](const std::vector<std::string>& more) { return prepare(run.config(more)).flops; };
  const double plain = flops({});
  EXPECT_GT(plain, 0);
  EXPECT_EQ(flops({"--parallel.recompute=full"}), plain);
  EXPECT_EQ(flops({"--parallel.tensor=2"}), plain);
  EXPECT_EQ(flops({"--parallel.data=2", "--parallel.zero=3"}), plain);
  EXPECT_EQ(flops({"--model.pad_vocab=100"}), plain);
  EXPECT_NEAR(flops({"--train.microbatches=2"}), plain, 2e-3 * plain);  // and gradients are added up
}

TEST(Progress, AnAverageIsWhatItsDefinitionSays) {
  const Model model = [](Trace& t) {
    const Dim batch = t.batch("batch", 2), in{"in", 3};
    return mean_of(t.input("x", {batch, in}) * t.param("w", {in}, {.init = ones}));
  };
  Trainer t(compile(model, with_ema(sgd({.lr = 0.1}), 0.75), {.dtype = f64}));
  start_averages(t);
  const std::vector<double> x{1, 2, 3, 4, 5, 6};
  double expected = 1;
  for (int i = 0; i < 3; ++i) {
    t.step({{"x", Array::of<double>(x, {2, 3})}});
    expected = 0.75 * expected + 0.25 * t.parameter("w").doubles()[0];
    EXPECT_NEAR(t.state("w", ema_state).doubles()[0], expected, 1e-14);
  }
}

}  // namespace
}  // namespace stretto
