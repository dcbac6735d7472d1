#include "stretto/run/loop.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <sstream>

#include "stretto/base/pages.h"
#include "stretto/base/threads.h"
#include "stretto/formats/fields.h"
#include "stretto/kernels/cpu/products.h"
#include "stretto/models/hf.h"
#include "stretto/run/inner/report.h"
#include "stretto/run/inner/stop.h"
#include "stretto/run/prepare.h"
#include "stretto/train/trainer.h"
#include "support/command.h"
#include "support/files.h"
#include "support/message.h"

namespace stretto {
namespace {

using testing::HasSubstr;

struct Ran {
  RunSummary summary;
  std::string out;
  std::vector<Field> metrics;
};

class Loop : public testing::Test {
 protected:
  Loop() { folder_.write("text.txt", test::sentences(400)); }

  RunConfig config(std::vector<std::string> overrides = {}) const {
    std::vector<std::string> all{"--model.layers=1",
                                 "--model.width=32",
                                 "--model.heads=2",
                                 "--model.context=16",
                                 "--train.steps=6",
                                 "--train.batch=4",
                                 "--log.every=2",
                                 "--optimizer.lr=0.01",
                                 "--data.path=" + (folder_ / "text.txt").string(),
                                 "--log.dir=" + (folder_ / ("run" + std::to_string(runs_))).string()};
    all.insert(all.end(), overrides.begin(), overrides.end());
    return read_run("", all);
  }

  Ran run(std::vector<std::string> overrides = {}) {
    ++runs_;
    const std::string name = "out" + std::to_string(runs_);
    std::FILE* out = std::fopen((folder_ / name).c_str(), "w");
    Ran r;
    r.summary = train(config(overrides), out);
    std::fclose(out);
    r.out = test::text_of(folder_ / name);
    r.metrics = metrics(r.summary.directory);
    return r;
  }

  static std::vector<Field> metrics(const std::filesystem::path& directory) {
    std::vector<Field> all;
    std::istringstream lines(test::text_of(directory / "metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) all.push_back(read_json(line, "metrics.jsonl"));
    return all;
  }
  static double number(const Field& line, const char* key) {
    const Field* f = line.find(key);
    if (!f) return NAN;
    return std::holds_alternative<i64>(f->value) ? double(std::get<i64>(f->value)) : std::get<double>(f->value);
  }

  test::Folder folder_;
  int runs_ = 0;
};

TEST_F(Loop, TrainsAndLeavesConfigAndMetrics) {
  const Ran r = run({"--data.validation=0.1", "--train.validate=3"});
  EXPECT_EQ(r.summary.steps, 6);
  EXPECT_FALSE(r.summary.stopped);
  EXPECT_LT(r.summary.last_loss, r.summary.first_loss);
  ASSERT_EQ(r.metrics.size(), 6u);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(number(r.metrics[i], "step"), double(i + 1));
    EXPECT_EQ(number(r.metrics[i], "tokens"), double(i + 1) * 64);
    EXPECT_GT(number(r.metrics[i], "loss"), 0);
    EXPECT_GT(number(r.metrics[i], "grad_norm"), 0);
    EXPECT_GT(number(r.metrics[i], "lr"), 0);
    EXPECT_GT(number(r.metrics[i], "tokens_per_second"), 0);
    EXPECT_GT(number(r.metrics[i], "mfu"), 0);
    EXPECT_EQ(r.metrics[i].find("validation_loss") != nullptr, i == 2 || i == 5);
  }
  EXPECT_EQ(number(r.metrics[0], "loss"), r.summary.first_loss);
  EXPECT_EQ(number(r.metrics[5], "loss"), r.summary.last_loss);
  EXPECT_EQ(number(r.metrics[5], "validation_loss"), r.summary.validation_loss);
  EXPECT_NEAR(*r.summary.validation_loss, r.summary.last_loss, 0.5);  // the same text, over and over
  RunConfig asked = config({"--data.validation=0.1", "--train.validate=3"});
  const RunConfig left = read_run((r.summary.directory / "config.toml").string());
  EXPECT_NE(left.data.hash, asked.data.hash) << "what the run's data was";
  asked.data.hash = left.data.hash;
  EXPECT_EQ(resolved_toml(left), resolved_toml(asked));
}

TEST_F(Loop, MeasuresWhatPiecesTake) {
  const std::string file = (folder_ / "times.tsv").string();
  const std::vector<std::string> two{"--model.layers=2", "--parallel.pipe=2", "--train.microbatches=2"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), two.begin(), two.end());
    return more;
  };
  EXPECT_THAT(run(with({"--log.profile=" + file})).out, HasSubstr("for a run with --parallel.times=" + file));
  MeasuredTimes times = read_times(file);
  ASSERT_EQ(times.pieces.size(), 6u);
  for (const MeasuredPiece& p : times.pieces) EXPECT_GT(p.F + p.W, 0) << p.piece;
  EXPECT_EQ(times.pieces.front().actor, 0);
  EXPECT_EQ(times.pieces.back().actor, 1);
  for (MeasuredPiece& p : times.pieces) p.F = p.I = p.W = p.piece == 5 ? 9e-3 : 1e-3;
  folder_.write("times.tsv", times_tsv(times));
  const auto stages = [&](std::vector<std::string> more) {
    return prepare(config(with(std::move(more)))).compiled.program->pieces_per_stage();
  };
  EXPECT_EQ(stages({"--parallel.times=" + file}), (std::vector<int>{5, 1}));
  EXPECT_EQ(run(with({"--parallel.times=" + file, "--data.validation=0.1"})).summary.steps, 6) << "and it trains";
  EXPECT_THAT(refusal_of([&] {
                stages({"--parallel.times=" + file, "--train.batch=8"});
              }),
              HasSubstr("key 'parallel.times': these times are of another model, batch or layout"));
}

TEST_F(Loop, SaysWhatItDoes) {
  const Ran r = run({"--data.validation=0.1"});
  std::istringstream in(r.out);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 8u + 1 + 4 + 4) << r.out;
  EXPECT_EQ(test::text_of(r.summary.directory / "log.txt"), r.out);
  EXPECT_THAT(lines[0], HasSubstr("model    gpt2, 1 layer, width 32"));
  EXPECT_THAT(lines[1], HasSubstr("text.txt, 18000 bytes; 16200 tokens to train on, 1800 to validate on"));
  EXPECT_THAT(lines[2], HasSubstr("step     4 sequences of 16 tokens in 1 microbatch, f32"));
  EXPECT_THAT(lines[3], HasSubstr("update   adamw, lr 0.01, cosine over 6 steps"));
  const std::size_t cores = usable_cores().size();
  const auto several = [](std::size_t n, const char* what) {
    return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
  };
  EXPECT_EQ(lines[4], fmt::format("cores    1 rank × {} on {}", several(cores, "thread"), several(cores, "core")));
  EXPECT_THAT(lines[5], AllOf(HasSubstr("memory   "), HasSubstr(" planned: params "), HasSubstr("activations "),
                              HasSubstr(" MiB in all, with whole pages and the buffers of products")));
  EXPECT_THAT(lines[6], AllOf(HasSubstr("time     "), HasSubstr(" per step predicted: "), HasSubstr("measured peak")));
  EXPECT_EQ(lines[7], "run      " + r.summary.directory.string());
  EXPECT_THAT(lines[8], HasSubstr("step       loss  grad_norm         lr     tok/s  mfu%        mem"));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(std::stoi(lines[std::size_t(9 + i)]), i == 0 ? 1 : 2 * i);
  EXPECT_THAT(lines[12], HasSubstr("validation loss"));
  EXPECT_EQ(lines[13], "saved    " + (r.summary.directory / "checkpoints/step-00000006").string());
  EXPECT_EQ(lines[14], "report   " + (r.summary.directory / "report.html").string());
  EXPECT_THAT(lines[15], testing::StartsWith("done: 6 of 6 steps"));
  EXPECT_EQ(lines[16], fmt::format("parameters {:016x}", r.summary.parameters));
}

// How a run is spread over the cores, and what the user could do about those that are left.
TEST_F(Loop, SaysHowManyCoresItUses) {
  const int cores = int(usable_cores().size());
  const auto said = [&](const std::vector<std::string>& settings) {
    const std::string out = run(settings).out;
    const std::size_t at = out.find("cores    ");
    return out.substr(at, out.find('\n', at) - at);
  };
  const std::string one = said({"--parallel.threads=1"});
  EXPECT_THAT(one, HasSubstr("1 rank × 1 thread on "));
  EXPECT_THAT(one, HasSubstr(cores > 1 ? fmt::format("left: parallel.threads = {} uses", cores) : "on 1 core"));
  EXPECT_THAT(said({fmt::format("--parallel.threads={}", cores + 1)}), HasSubstr("which they share"));
  const std::string two = said({"--parallel.data=2"});
  EXPECT_THAT(two, HasSubstr(cores == 2 ? "2 ranks × 1 thread on 2 cores" : "2 ranks × "));
}

// However many threads there are, and more than there are cores.
TEST_F(Loop, ThreadsChangeNoBits) {
  const Ran one = run({"--parallel.threads=1"});
  for (const char* threads : {"0", "2", "5"})
    EXPECT_EQ(run({fmt::format("--parallel.threads={}", threads)}).summary.parameters, one.summary.parameters)
        << threads;
}

TEST_F(Loop, IsAFunctionOfItsConfig) {
  const Ran a = run(), b = run(), cut = run({"--train.microbatches=2"}), other = run({"--train.seed=2"});
  EXPECT_EQ(a.summary.parameters, b.summary.parameters);
  EXPECT_NE(a.summary.parameters, other.summary.parameters);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(number(a.metrics[i], "loss"), number(b.metrics[i], "loss"));
    EXPECT_NEAR(number(a.metrics[i], "loss"), number(cut.metrics[i], "loss"), 1e-4);
  }
}

// Losses, norms, validation and parameters, whoever computed them.
TEST_F(Loop, ExactRunsAreAFunctionOfTheirBatch) {
  const std::vector<std::string> common{"--train.exact=true", "--train.leaf=2", "--train.batch=8",
                                        "--model.dropout=0.1", "--data.validation=0.1"};
  const auto exact = [&](std::vector<std::string> more) {
    more.insert(more.end(), common.begin(), common.end());
    return run(more);
  };
  const Ran one = exact({});
  for (const std::vector<std::string>& more : {std::vector<std::string>{"--train.microbatches=4"},
                                               {"--parallel.data=2", "--train.microbatches=2"},
                                               {"--parallel.data=4"},
                                               {"--parallel.pipe=2", "--parallel.data=2", "--train.microbatches=2"}}) {
    const Ran other = exact(more);
    EXPECT_EQ(one.summary.parameters, other.summary.parameters) << more[0];
    EXPECT_EQ(one.summary.validation_loss, other.summary.validation_loss) << more[0];
    for (std::size_t i = 0; i < 6; ++i)
      for (const char* key : {"loss", "grad_norm"})
        EXPECT_EQ(number(one.metrics[i], key), number(other.metrics[i], key)) << key << " with " << more[0];
  }
}

TEST_F(Loop, ValidationDoesNotChangeTraining) {
  folder_.write("other.txt", "something else, and long enough to hold a sequence or two of it.");
  const Ran without = run(),
            with = run({"--train.validate=1", "--data.validation=" + (folder_ / "other.txt").string()});
  EXPECT_EQ(without.summary.parameters, with.summary.parameters);
  EXPECT_FALSE(without.summary.validation_loss);
  EXPECT_TRUE(with.summary.validation_loss);
}

TEST_F(Loop, StartsFromAHuggingFaceDirectory) {
  const std::string model = STRETTO_TEST_DATA "/hf/gpt2/model";
  const HfModel loaded = load_hf(model);
  // A step so small that the weights stay what they were.
  const Ran r = run({"--model.from=" + model, "--train.steps=1", "--optimizer.lr=1e-30", "--model.layers=2",
                     "--model.width=64", "--model.heads=4", "--model.context=64"});
  RunConfig c = config(
      {"--model.from=" + model, "--model.layers=2", "--model.width=64", "--model.heads=4", "--model.context=64"});
  Trainer expected(compile(model_of(c), optimizer_of(c), training_of(c)));
  for (const auto& [name, weights] : loaded.weights) expected.set_parameter(name, weights);
  EXPECT_EQ(r.summary.parameters, expected.parameters_hash());
}

// Experts are stored one by one, and the penalty of the router is the one that the directory's config asks for.
TEST_F(Loop, StartsFromAHuggingFaceDirectoryOfExperts) {
  const std::string model = STRETTO_TEST_DATA "/hf/mixtral/model";
  const HfModel loaded = load_hf(model);
  const ModelConfig& c = loaded.config;
  const std::vector<std::string> from{"--model.from=" + model, fmt::format("--model.layers={}", c.layers),
                                      fmt::format("--model.width={}", c.width),
                                      fmt::format("--model.heads={}", c.heads), "--model.context=16"};
  std::vector<std::string> split = from;
  split.insert(split.end(), {"--train.steps=1", "--optimizer.lr=1e-30", "--parallel.expert=2"});
  const Ran r = run(split);
  const RunConfig read = config(from);
  EXPECT_EQ(read.model.config.experts, c.experts);
  Trainer expected(compile(model_of(read), optimizer_of(read), training_of(read)));
  for (const auto& [name, weights] : loaded.weights) expected.set_parameter(name, weights);
  EXPECT_EQ(r.summary.parameters, expected.parameters_hash());
}

TEST_F(Loop, AnInfiniteLossStopsTheRun) {
  try {
    run({"--optimizer.name=sgd", "--optimizer.lr=1e30", "--train.clip=0", "--optimizer.schedule=constant"});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.exit_code(), 3);
    EXPECT_THAT(e.what(), AllOf(HasSubstr("[train] step "), HasSubstr("the loss is "), HasSubstr("lr 1e+30"),
                                HasSubstr("hint: a smaller optimizer.lr"), HasSubstr("metrics.jsonl")));
  }
  EXPECT_LT(metrics(folder_ / "run1").size(), 6u);
  EXPECT_THAT(test::text_of(folder_ / "run1/log.txt"), HasSubstr("\n[train] step "));
}

// The learning rate makes the second step overflow: from then on nothing is finite.
TEST_F(Loop, ALossThatIsNotFiniteCanBePassedOver) {
  const std::vector<std::string> wild{"--optimizer.name=sgd", "--optimizer.lr=1e30", "--train.clip=0",
                                      "--optimizer.schedule=constant", "--train.nonfinite=continue"};
  const Ran r = run(wild);
  EXPECT_EQ(r.summary.steps, 6);
  EXPECT_GT(r.summary.nonfinite, 0);
  EXPECT_THAT(r.out, AllOf(HasSubstr("training goes on"), HasSubstr("steps had a loss or gradient norm that is not")));
}

TEST_F(Loop, ASkippedStepChangesNothing) {
  RunConfig c = config({"--train.nonfinite=skip", "--parallel.pipe=2", "--train.microbatches=2"});
  Trainer trainer(compile_run(c));
  const std::vector<i64> sizes{4, 16};
  std::vector<std::int32_t> ids(64, 3);
  const Batch batch{{"ids", Array::of<std::int32_t>(ids, sizes)}, {"targets", Array::of<std::int32_t>(ids, sizes)}};
  EXPECT_TRUE(std::isfinite(trainer.step(batch).grad_norm));
  const u64 before = trainer.parameters_hash();
  Array broken = trainer.parameter("ln_f.gain"), whole = broken;
  const float infinite = std::numeric_limits<float>::infinity();
  std::memcpy(broken.bytes.data(), &infinite, sizeof infinite);
  const Array state = trainer.state("wte", "m");
  trainer.set_parameter("ln_f.gain", broken);
  EXPECT_FALSE(std::isfinite(trainer.step(batch).grad_norm));
  trainer.set_parameter("ln_f.gain", whole);
  EXPECT_EQ(trainer.parameters_hash(), before);
  EXPECT_EQ(trainer.state("wte", "m").bytes, state.bytes);
  EXPECT_TRUE(std::isfinite(trainer.step(batch).grad_norm));
  EXPECT_NE(trainer.parameters_hash(), before);
}

// A step that needs more room runs again; it is not skipped, and not the end of the run.
TEST_F(Loop, RowsWithoutRoomAreNoReasonToSkip) {
  for (const char* nonfinite : {"skip", "stop"}) {
    const Ran r = run({"--model.family=mixtral", "--model.layers=3", "--model.experts=8", "--model.ff=16",
                       "--model.top_k=1", "--parallel.expert=4", "--parallel.expert_room=1", "--train.batch=8",
                       "--train.steps=3", std::string("--train.nonfinite=") + nonfinite});
    EXPECT_EQ(r.summary.nonfinite, 0);
    EXPECT_EQ(r.summary.steps, 3);
    EXPECT_THAT(r.out, HasSubstr("ran again: expert_room 1 was too small for its rows, it is 2 now"));
  }
}

TEST_F(Loop, APipelineTrainsTheSameModel) {
  const Ran serial = run({"--train.microbatches=4"});
  for (const std::string schedule : {"1f1b", "zb-h1", "zb-v"}) {
    const Ran pipe = run({"--train.microbatches=4", "--parallel.pipe=2", "--parallel.schedule=" + schedule});
    EXPECT_EQ(pipe.summary.parameters, serial.summary.parameters) << schedule;
    EXPECT_THAT(pipe.out, AllOf(HasSubstr("mesh     pipe=2: schedule " + schedule), HasSubstr("predicted bubble "),
                                HasSubstr(" on actor 1 planned"), HasSubstr("bubble%")));
    EXPECT_NE(pipe.metrics[0].find("bubble"), nullptr);
  }
  EXPECT_EQ(serial.metrics[0].find("bubble"), nullptr);
  EXPECT_THAT(check_run(config({"--parallel.pipe=4"})),
              HasSubstr("note     1 microbatch for 4 actors leaves them idle"));
}

TEST_F(Loop, SaysInWhichTypeItRuns) {
  const Ran r = run({"--train.dtype=bf16", "--optimizer.state=bf16", "--log.timeline=2"});
  EXPECT_THAT(r.out, AllOf(HasSubstr(" microbatch, bf16\n"), HasSubstr(" steps, states in bf16\n"),
                           HasSubstr("step 2 of 1f1b in bf16, measured")));
  EXPECT_THAT(test::text_of(r.summary.directory / "timeline.html"), HasSubstr("Step 2 of 1f1b in bf16"));
  EXPECT_THAT(test::text_of(r.summary.directory / "report.html"), HasSubstr("states in bf16"));
}

TEST_F(Loop, DrawsTheStepItWasAskedFor) {
  const std::vector<std::string> pipe{"--train.microbatches=4", "--parallel.pipe=2", "--parallel.schedule=zb-h1"};
  auto with = pipe;
  with.push_back("--log.timeline=2");
  const Ran r = run(with), last = run({"--log.timeline=last"}), none = run(pipe);
  EXPECT_THAT(r.out, AllOf(HasSubstr("step 2 of zb-h1, measured: makespan "), HasSubstr("\nactor 1  "),
                           HasSubstr("with every action taking its mean time: makespan "),
                           HasSubstr("timeline " + (r.summary.directory / "timeline.html").string())));
  EXPECT_THAT(last.out, AllOf(HasSubstr("step 6 of "), HasSubstr("\nactor 0  ")));
  EXPECT_THAT(none.out, Not(HasSubstr("actor 1  ")));
  EXPECT_FALSE(std::filesystem::exists(none.summary.directory / "timeline.html"));
  EXPECT_EQ(r.summary.parameters, none.summary.parameters);

  const std::string page = test::text_of(r.summary.directory / "timeline.html");
  EXPECT_THAT(page, AllOf(HasSubstr("measured beside simulated from mean times"), HasSubstr("Step 2 of zb-h1")));
  EXPECT_THAT(test::text_of(r.summary.directory / "timeline.svg"), HasSubstr("zb-h1, step 2 as measured"));
  const Field trace = read_json(test::text_of(r.summary.directory / "timeline.json"), "timeline.json");
  const Field* events = trace.find("traceEvents");
  ASSERT_TRUE(events && events->array());
  int actions = 0;
  for (const Field& e : *events->array()) {
    const Field* phase = e.find("ph");
    if (phase && phase->str() == "\"X\"") ++actions;
  }
  EXPECT_GE(actions, 2 * 4 * 3);  // F, I and W of both actors' microbatches, and what comes before and after
}

TEST_F(Loop, LeavesAReportThatNeedsNoOtherFile) {
  const Ran r = run({"--train.microbatches=4", "--parallel.pipe=2", "--log.timeline=last", "--data.validation=0.1",
                     "--log.name=a<b"});
  const std::string page = test::text_of(r.summary.directory / "report.html");
  EXPECT_THAT(page, AllOf(HasSubstr("<title>a&lt;b, "), HasSubstr("aria-label=\"loss\""),
                          HasSubstr(">validation</text>"), HasSubstr("aria-label=\"tokens per second\""),
                          HasSubstr("aria-label=\"learning rate\""), HasSubstr("<summary>Configuration</summary>"),
                          HasSubstr("simulated from mean times"), HasSubstr("microbatches = 4"),
                          HasSubstr("done: 6 of 6 steps"), HasSubstr("<h2>Machine and versions</h2>")));
  EXPECT_THAT(page, AllOf(HasSubstr("share of the actors&#39; time"), HasSubstr("process, at most")));
  for (const char* outside : {"src=", "href=", "@import", "url("}) EXPECT_THAT(page, Not(HasSubstr(outside)));
  EXPECT_THAT(r.out, HasSubstr("report   " + (r.summary.directory / "report.html").string()));
}

TEST(Report, OfNumbersThatAreNotFiniteIsStillAPage) {
  Report r{.title = "wild"};
  for (i64 step = 1; step <= 2000; ++step)
    r.curve.push_back({.step = step, .loss = step % 3 ? NAN : 1.0, .grad_norm = INFINITY, .tokens_per_second = 0});
  const std::string page = report_html(r);
  EXPECT_THAT(page, AllOf(HasSubstr("aria-label=\"loss\""), Not(HasSubstr("nan")), Not(HasSubstr("inf"))));
  EXPECT_LT(page.size(), 100'000u);
}

TEST_F(Loop, QuietPrintsNoChart) {
  std::FILE* out = std::fopen((folder_ / "quiet").c_str(), "w");
  train(config({"--log.timeline=last", "--log.dir=" + (folder_ / "q").string()}), out, Verbosity::quiet);
  std::fclose(out);
  const std::string text = test::text_of(folder_ / "quiet");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << text;
  EXPECT_TRUE(std::filesystem::exists(folder_ / "q" / "timeline.html"));
}

TEST_F(Loop, LeavesTensorBoardEvents) {
  const Ran r = run({"--data.validation=0.1"});
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(r.summary.directory))
    if (entry.path().filename().string().starts_with("events.out.tfevents.")) {
      ++files;
      const std::string bytes = test::text_of(entry.path());
      for (const char* tag : {"train/loss", "train/lr", "speed/tokens_per_second", "validation/loss"})
        EXPECT_THAT(bytes, HasSubstr(tag));
    }
  EXPECT_EQ(files, 1);
}

// Only where there is a python with tensorboard: STRETTO_PYTHON names it.
TEST_F(Loop, TensorBoardReadsItsEvents) {
  const char* named = std::getenv("STRETTO_PYTHON");
  const std::string python = named ? named : "python3";
  if (test::shell(python + " -c 'import tensorboard'", "/").code != 0) GTEST_SKIP() << "no tensorboard";
  const Ran r = run({"--data.validation=0.1", "--train.validate=3"});
  const test::Result read = test::shell(
      python +
          " - <<'E'\n"
          "import json\n"
          "from tensorboard.backend.event_processing.event_accumulator import EventAccumulator\n"
          "events = EventAccumulator('.')\n"
          "events.Reload()\n"
          "lines = [json.loads(line) for line in open('metrics.jsonl')]\n"
          "for tag, key in (('train/loss', 'loss'), ('train/grad_norm', 'grad_norm'), ('train/lr', 'lr'),\n"
          "                 ('speed/mfu', 'mfu'), ('validation/loss', 'validation_loss')):\n"
          "  expected = [(x['step'], x[key]) for x in lines if key in x]\n"
          "  found = [(e.step, e.value) for e in events.Scalars(tag)]\n"
          "  assert len(found) == len(expected) > 0, tag\n"
          "  for (s, a), (t, b) in zip(found, expected): assert s == t and abs(a - b) <= 1e-6 * abs(b), tag\n"
          "E",
      r.summary.directory.string());
  EXPECT_EQ(read.code, 0) << read.error;
}

TEST_F(Loop, NothingIsWrittenWhenSomethingIsWrong) {
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"--data.path=none.txt"}, {"--model.context=20000"}, {"--model.vocab=100"}}) {
    EXPECT_THROW(run(wrong), Error);
    EXPECT_FALSE(std::filesystem::exists(folder_ / ("run" + std::to_string(runs_)))) << wrong[0];
  }
}

TEST_F(Loop, SettingsThatDoNothingAreNoted) {
  EXPECT_THAT(check_run(config({"--optimizer.warmup=5"})),
              AllOf(HasSubstr("cosine over 6 steps, warm-up 5"), Not(HasSubstr("note"))));
  EXPECT_THAT(check_run(config({"--optimizer.warmup=50"})),
              HasSubstr("note     the warm-up takes 50 steps and the run has 6: lr never reaches 0.01; hint: "));
  EXPECT_THAT(check_run(config({"--train.validate=3"})), HasSubstr("note     train.validate is given and there is no"));
  EXPECT_THAT(check_run(config({"--train.validate=3", "--data.validation=0.1"})), Not(HasSubstr("note")));
}

TEST_F(Loop, WhatTheMachineCannotHoldIsRefusedBeforeItIsAllocated) {
  const Compiled c = compile_run(config({"--parallel.pipe=2", "--parallel.data=2"}));
  const std::vector<double> each = bytes_per_actor(*c.program);
  // Arenas are whole pages, and products have buffers.
  const auto in_memory = [&](std::size_t actor) {
    double sum = double(product_buffer) * c.program->threads;
    for (const u64 bytes : c.program->actors[ActorId(int(actor))].bytes) sum += double(Pages::whole(bytes));
    EXPECT_GE(sum, each[actor] + double(product_buffer));
    return sum;
  };
  EXPECT_EQ(planned_bytes(*c.program), 2 * (in_memory(0) + in_memory(1)));
  EXPECT_EQ(planned_bytes(*c.program, std::vector{7, 7, 7, 8}, 7), 2 * in_memory(0) + in_memory(1));
  EXPECT_GT(machine_bytes(), planned_bytes(*c.program));
  EXPECT_NO_THROW(check_fits(5e9, 5e9));
  try {
    check_fits(3e12, 16e9);
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("[memory] the run needs 2.73 TiB, and this machine has 14.9 GiB; hint: "));
  }
  const std::vector<std::string> giant{"--model.width=65536", "--model.layers=20"};
  EXPECT_THROW(run(giant), Error);
  EXPECT_FALSE(std::filesystem::exists(folder_ / ("run" + std::to_string(runs_))));
  EXPECT_THAT(check_run(config(giant)), HasSubstr("on it alone the run does not fit"));
}

// Whatever a run is called: in no page is it markup.
TEST_F(Loop, ANameIsNoMarkup) {
  const std::string name = "<script>alert(1)<script>\"'><img src=x onerror=alert(2)>";
  Field quoted(name);
  const Ran r = run({"--log.name=" + write_json(quoted), "--log.timeline=2", "--train.steps=2", "--parallel.pipe=2",
                     "--train.microbatches=2"});
  int pages = 0;
  for (const auto& entry : std::filesystem::directory_iterator(r.summary.directory)) {
    const std::string extension = entry.path().extension();
    if (extension != ".html" && extension != ".svg") continue;
    ++pages;
    const std::string page = test::text_of(entry.path());
    EXPECT_THAT(page, AllOf(Not(HasSubstr("<script>alert")), Not(HasSubstr("<img")))) << entry.path();
    if (entry.path().filename() == "report.html") {
      EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert(1)&lt;script&gt;"));
    }
  }
  EXPECT_EQ(pages, 3);
}

TEST_F(Loop, AnErrorSaysWhereToGoOn) {
  try {
    run({"--optimizer.lr=1e30", "--train.clip=0", "--train.steps=50"});
    FAIL();
  } catch (const Error& e) {
    const std::string directory = (folder_ / ("run" + std::to_string(runs_))).string(), text = e.what();
    EXPECT_THAT(text, AllOf(HasSubstr("all steps are in " + directory + "/metrics.jsonl (the newest checkpoint is " +
                                      directory + "/checkpoints/step-0000"),
                            testing::EndsWith("; to go on from it: stretto train --resume=" + directory + ")")));
    EXPECT_THAT(test::text_of(directory + "/log.txt"), HasSubstr("to go on from it: stretto train --resume="));
  }
}

TEST_F(Loop, CheckLooksAtTheWeights) {
  run({"--train.steps=1", "--checkpoint.export=" + (folder_ / "hf").string()});
  const std::string from = "--model.from=" + (folder_ / "hf").string();
  EXPECT_NO_THROW(check_run(config({from})));
  std::filesystem::resize_file(folder_ / "hf/model.safetensors", 5000);
  try {
    check_run(config({from}));
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("hint: is the file cut off?"));
  }
}

TEST_F(Loop, TheVocabularyMustHoldTheText) {
  try {
    check_run(config({"--model.vocab=200"}));
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(),
                HasSubstr("has ids up to 255, and the model's vocabulary is 200; hint: use model.vocab = 256 or more"));
  }
}

TEST(StopSignals, AreSeenAndPutBack) {
  struct sigaction before {
  }, after{};
  sigaction(SIGINT, nullptr, &before);
  {
    const StopSignals stop;
    EXPECT_FALSE(stop.asked());
    std::raise(SIGINT);
    EXPECT_TRUE(stop.asked());
  }
  sigaction(SIGINT, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
  const StopSignals again;
  EXPECT_FALSE(again.asked());
  std::raise(SIGTERM);
  EXPECT_TRUE(again.asked());
}

TEST(StopSignalsDeathTest, ASecondOneEndsTheProcessAtOnce) {
  for (const int second : {SIGINT, SIGTERM})
    EXPECT_EXIT(
        {
          const StopSignals stop;
          std::raise(SIGINT);
          if (!stop.asked()) _exit(9);
          std::raise(second);
          _exit(8);
        },
        testing::KilledBySignal(second), "");
}

}  // namespace
}  // namespace stretto
