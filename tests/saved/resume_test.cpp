// A whole run, interrupted and gone on with.
#include "stretto/saved/resume.h"

#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "stretto/formats/fields.h"
#include "stretto/run/loop.h"
#include "stretto/saved/model_directory.h"
#include "support/files.h"
#include "support/message.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;
using test::text_of;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Advice, NamesTheCheckpointAndTheCommand) {
  const test::Folder folder;
  const std::string run = folder / "it's a run";
  EXPECT_EQ(advice_after({.directory = "runs/a-1"}),
            "there is no checkpoint yet; to begin again: stretto train --resume=runs/a-1");
  const std::string quoted = "'" + folder.str() + "/it'\\''s a run'";
  for (const i64 step : {5, 9}) write_checkpoint(fs::path(run) / "checkpoints" / checkpoint_name(step), {.step = step});
  fs::create_directories(fs::path(run) / "checkpoints/step-00000010");  // being removed
  EXPECT_EQ(advice_after({.directory = run, .ranks = 4}),
            "the newest checkpoint is " + run +
                "/checkpoints/step-00000009; to go on from it: stretto launch -n 4 -- train --resume=" + quoted);
}

TEST(Advice, WhatReadsFamiliesSaysSoOfAGraph) {
  const test::Folder folder;
  write_checkpoint(fs::path(folder / "step-00000001"),
                   {.step = 1, .config = "[model]\ngraph = \"gone.json\"\n[finetune]\nadapter = \"\"\n"});
  EXPECT_THAT(input_refusal_of([&] { model_config_of(Checkpoint(folder / "step-00000001")); }),
              AllOf(HasSubstr("step-00000001"), HasSubstr("is of a model that is a graph"), HasSubstr("Trainer")));
}

class Resume : public testing::Test {
 protected:
  Resume() { folder_.write("text.txt", test::sentences(400)); }

  RunConfig config(const std::string& dir, std::vector<std::string> more = {}) const {
    std::vector<std::string> all{"--model.layers=2",
                                 "--model.width=32",
                                 "--model.heads=2",
                                 "--model.context=16",
                                 "--model.dropout=0.1",
                                 "--train.steps=9",
                                 "--train.batch=4",
                                 "--checkpoint.every=3",
                                 "--checkpoint.keep=10",
                                 "--data.path=" + (folder_ / "text.txt").string(),
                                 "--log.dir=" + (folder_ / dir).string()};
    all.insert(all.end(), more.begin(), more.end());
    return read_run("", all);
  }

  struct Ran {
    RunSummary summary;
    std::string out;
  };
  Ran run(const RunConfig& c, const std::optional<std::string>& resume = {}) const {
    std::FILE* out = std::fopen((folder_ / "out").c_str(), "w");
    Ran r;
    try {
      r.summary = train(c, out, Verbosity::normal, resume);
    } catch (...) {
      std::fclose(out);
      throw;
    }
    std::fclose(out);
    r.out = text_of(folder_ / "out");
    return r;
  }

  // step and loss of every line
  std::vector<std::pair<i64, double>> losses(const std::string& dir) const {
    std::vector<std::pair<i64, double>> all;
    std::istringstream lines(text_of(folder_ / (dir + "/metrics.jsonl")));
    for (std::string line; std::getline(lines, line);) {
      const Field f = read_json(line, "metrics.jsonl");
      all.emplace_back(std::get<i64>(f.find("step")->value), std::get<double>(f.find("loss")->value));
    }
    return all;
  }
  i64 lines_of(const std::string& dir) const {
    const std::string text = text_of(folder_ / (dir + "/metrics.jsonl"));
    return std::count(text.begin(), text.end(), '\n');
  }
  fs::path checkpoint(const std::string& dir, i64 step) const {
    return folder_ / (dir + "/checkpoints/" + checkpoint_name(step));
  }
  static void damage(const fs::path& file) {
    std::string text = text_of(file);
    text[text.size() / 2] = char(text[text.size() / 2] ^ 1);
    std::ofstream(file, std::ios::binary) << text;
  }

  test::Folder folder_;
};

TEST_F(Resume, GoesOnAsIfNothingHadHappened) {
  const Ran whole = run(config("whole"));
  EXPECT_THAT(checkpoints_in(folder_ / "whole/checkpoints"),
              ElementsAre(checkpoint("whole", 9), checkpoint("whole", 6), checkpoint("whole", 3)));
  // Killed after step 8, while the line of step 8 was being written.
  fs::copy(folder_ / "whole", folder_ / "cut", fs::copy_options::recursive);
  fs::remove_all(checkpoint("cut", 9));
  std::string metrics = text_of(folder_ / "cut/metrics.jsonl");
  metrics.resize(metrics.find("{\"step\":8") + 20);
  folder_.write("cut/metrics.jsonl", metrics);
  const Ran again = run(config("cut"), "");
  EXPECT_THAT(again.out, HasSubstr("resume   after step 6, from " + checkpoint("cut", 6).string()));
  EXPECT_EQ(again.summary.resumed, 6);
  EXPECT_EQ(again.summary.steps, 9);
  EXPECT_EQ(again.summary.parameters, whole.summary.parameters);
  EXPECT_EQ(losses("cut"), losses("whole"));
  EXPECT_EQ(losses("cut").size(), 9u);
  // The report shows the whole run: its loss has nine points.
  const std::string page = text_of(folder_ / "cut/report.html");
  const std::size_t loss = page.find("aria-label=\"loss\""), line = page.find("class=\"curve s0\"", loss);
  ASSERT_NE(line, page.npos);
  const std::string path = page.substr(line, page.find("/>", line) - line);
  EXPECT_EQ(std::count(path.begin(), path.end(), 'L'), 8) << path;
}

TEST_F(Resume, UnderAnotherLayout) {
  const Ran whole = run(config("whole", {"--train.microbatches=4"}));
  fs::copy(folder_ / "whole", folder_ / "cut", fs::copy_options::recursive);
  for (const i64 step : {9, 6}) fs::remove_all(checkpoint("cut", step));
  const Ran again =
      run(config("cut", {"--train.microbatches=4", "--parallel.pipe=2", "--parallel.schedule=zb-h1"}), "");
  EXPECT_EQ(again.summary.resumed, 3);
  EXPECT_EQ(again.summary.parameters, whole.summary.parameters);
  EXPECT_EQ(losses("cut"), losses("whole"));
}

TEST_F(Resume, DamagedOnesAreNamedAndPassedOver) {
  const Ran whole = run(config("r"));
  damage(checkpoint("r", 9) / "shard-00001.safetensors");
  fs::remove(checkpoint("r", 6) / "manifest.json");
  const Ran again = run(config("r"), "");
  EXPECT_THAT(again.out, HasSubstr("damaged: [" + checkpoint("r", 9).string() + "/shard-00001.safetensors] is not as"));
  EXPECT_THAT(again.out, HasSubstr("damaged: [" + checkpoint("r", 6).string() + "] has no manifest.json"));
  EXPECT_EQ(again.summary.resumed, 3);
  EXPECT_EQ(again.summary.parameters, whole.summary.parameters);
  EXPECT_EQ(losses("r").size(), 9u);
  EXPECT_EQ(Checkpoint(checkpoint("r", 9)).manifest().step, 9);  // replaced
  for (const i64 step : {3, 6, 9}) damage(checkpoint("r", step) / "manifest.json");
  EXPECT_THAT(refusal_of([&] { run(config("r"), ""); }),
              AllOf(HasSubstr("no checkpoint in '"), HasSubstr("hint: to begin again, remove them")));
}

TEST_F(Resume, FromOneCheckpointIntoANewDirectory) {
  const Ran whole = run(config("whole"));
  const Ran other = run(config("branch"), checkpoint("whole", 6).string());
  EXPECT_EQ(other.summary.directory, folder_ / "branch");
  EXPECT_EQ(other.summary.parameters, whole.summary.parameters);
  EXPECT_EQ(losses("branch").size(), 3u);
  EXPECT_EQ(losses("whole").size(), 9u);
  EXPECT_NE(refusal_of([&] { run(config("whole"), checkpoint("whole", 6).string()); }), "no error");  // taken
}

TEST_F(Resume, NothingToGoOnFrom) {
  const Ran fresh = run(config("r", {"--train.steps=2"}), "");  // so that a script may always say --resume
  EXPECT_EQ(fresh.summary.resumed, 0);
  const Ran finished = run(config("r", {"--train.steps=2"}), "");
  EXPECT_THAT(finished.out, HasSubstr("nothing to do: 2 of 2 steps are done"));
  EXPECT_EQ(finished.summary.parameters, fresh.summary.parameters);
  EXPECT_THAT(refusal_of([&] { run(config("r"), (folder_ / "none").string()); }), HasSubstr("there is no directory"));
  RunConfig unnamed = config("r");
  unnamed.log.dir.clear();
  EXPECT_THAT(refusal_of([&] { run(unnamed, ""); }), HasSubstr("it is not said which run to continue; hint: "));
}

// As if killed before the first checkpoint: no script should have to tell this from other ends.
TEST_F(Resume, BeginsAgainWhenThereIsNoCheckpointYet) {
  const Ran whole = run(config("whole"));
  fs::copy(folder_ / "whole", folder_ / "early", fs::copy_options::recursive);
  fs::remove_all(folder_ / "early/checkpoints");
  fs::create_directories(folder_ / "early/checkpoints/.step-00000003-1.tmp");  // killed while writing it
  for (const std::string& from : {std::string(), (folder_ / "early").string()}) {
    const Ran again = run(config("early"), from);
    EXPECT_THAT(again.out, HasSubstr("resume   '" + (folder_ / "early").string() + "' has no checkpoint yet"));
    EXPECT_EQ(again.summary.resumed, 0);
    EXPECT_EQ(again.summary.parameters, whole.summary.parameters);
    EXPECT_EQ(losses("early"), losses("whole"));
    fs::remove_all(folder_ / "early/checkpoints");
  }
  fs::remove_all(folder_ / "early");
  fs::create_directory(folder_ / "early");
  folder_.write("early/config.toml.77-0.tmp", "");  // killed even before that
  EXPECT_EQ(run(config("early"), "").summary.parameters, whole.summary.parameters);
  fs::create_directory(folder_ / "other");
  folder_.write("other/notes.txt", "");
  EXPECT_THAT(refusal_of([&] { run(config("other"), ""); }), HasSubstr("is not empty and holds no run; hint: "));
}

TEST_F(Resume, GoesOnInAnyType) {
  run(config("r", {"--train.steps=3"}));
  const Ran half = run(config("r", {"--train.steps=5", "--train.dtype=bf16"}), "");
  EXPECT_THAT(half.out, HasSubstr("note: train.dtype is \"bf16\" and was \"f32\""));
  EXPECT_EQ(run(config("r", {"--train.steps=6"}), "").summary.steps, 6);
  EXPECT_EQ(losses("r").size(), 6u);
  const Ran wide = run(config("r", {"--train.steps=7", "--train.dtype=f64"}), "");
  EXPECT_THAT(wide.out, HasSubstr("note: train.dtype is \"f64\" and was \"f32\"\n"));
  const Ran narrow = run(config("r", {"--train.steps=8", "--train.dtype=bf16"}), "");
  EXPECT_THAT(narrow.out, HasSubstr("note: train.dtype is \"bf16\" and was \"f64\": parameters and states are rounded "
                                    "to f32\n"));
  EXPECT_EQ(narrow.summary.steps, 8);
  const auto all = losses("r");
  EXPECT_EQ(all.size(), 8u);
  EXPECT_LT(all.back().second, all.front().second);
}

// Checkpoints hold states in f32, whatever a run keeps them in.
TEST_F(Resume, GoesOnWithStatesInBf16AndBack) {
  const std::string narrow = "--optimizer.state=bf16";
  const Ran whole = run(config("whole", {"--train.steps=5", narrow}));
  run(config("r", {"--train.steps=5", narrow, "--checkpoint.every=3"}));
  fs::remove_all(checkpoint("r", 5));
  EXPECT_EQ(run(config("r", {"--train.steps=5", narrow}), "").summary.parameters, whole.summary.parameters);
  const Ran wide = run(config("r", {"--train.steps=6"}), "");
  EXPECT_THAT(wide.out, HasSubstr("note: optimizer.state is \"f32\" and was \"bf16\""));
  EXPECT_EQ(run(config("r", {"--train.steps=7", narrow}), "").summary.steps, 7);
}

TEST_F(Resume, ChangedSettingsThatWouldSpoilTheRunAreRefused) {
  run(config("r", {"--train.steps=3"}));
  const std::string said = refusal_of([&] {
    run(config("r", {"--train.batch=8", "--train.seed=5", "--model.width=64", "--optimizer.name=sgd",
                     "--optimizer.schedule=constant"}),
        "");
  });
  EXPECT_THAT(said, HasSubstr("train.batch is 8 and was 4; hint: continue with --train.batch=4"));
  EXPECT_THAT(said, HasSubstr("train.seed is 5 and was 1"));
  EXPECT_THAT(said, HasSubstr("model.width is 64 and was 32"));
  EXPECT_THAT(said, HasSubstr("optimizer.name is \"sgd\" and was \"adamw\""));
  EXPECT_THAT(refusal_of([&] { run(config("r", {"--finetune.freeze=wte"}), ""); }),
              HasSubstr("finetune.freeze is [\"wte\"] and was not set; hint: continue without finetune.freeze"));
  run(config("frozen", {"--train.steps=3", "--finetune.freeze=wte"}));
  EXPECT_EQ(refusal_of([&] { run(config("frozen", {}), ""); }),
            "[resume] finetune.freeze is not set and was [\"wte\"]; hint: continue with --finetune.freeze=[\"wte\"]");
  EXPECT_EQ(losses("r").size(), 3u);  // nothing was touched
  // Others may change: more steps, another learning rate, other data.
  folder_.write("other.txt", text_of(folder_ / "text.txt"));
  const Ran more = run(config("r", {"--train.steps=5", "--optimizer.lr=1e-4", "--model.dropout=0",
                                    "--data.path=" + (folder_ / "other.txt").string()}),
                       "");
  EXPECT_EQ(more.summary.steps, 5);
  EXPECT_THAT(more.out, HasSubstr("note: data.path is "));
}

// A checkpoint of a version that did not know a key goes on with the key's default, and with nothing else.
TEST_F(Resume, KeysThatThereWereNotYetHaveTheirDefaults) {
  run(config("r", {"--train.steps=3"}));
  const fs::path file = checkpoint("r", 3) / manifest_name;
  Manifest manifest = parse_manifest(text_of(file), file.string());
  const std::string key = "head_parts = 1\n";
  const std::size_t at = manifest.config.find(key);
  ASSERT_NE(at, std::string::npos);
  manifest.config.erase(at, key.size());
  std::ofstream(file) << manifest_text(manifest);
  EXPECT_EQ(refusal_of([&] { run(config("r", {"--model.head_parts=2"}), ""); }),
            "[resume] model.head_parts is 2 and was not set; hint: continue without model.head_parts");
  EXPECT_EQ(run(config("r", {"--train.steps=4"}), "").summary.steps, 4);
}

TEST_F(Resume, LongListsThatChangedAreNoted) {
  const auto with = [&](const std::string& last) {
    std::string list = "--data.path=[";
    for (int i = 0; i < 8; ++i) list += "\"" + (folder_ / "text.txt").string() + "\", ";
    return config("r", {"--train.steps=" + std::to_string(last == "text.txt" ? 3 : 4),
                        list + "\"" + (folder_ / last).string() + "\"]"});
  };
  folder_.write("other.txt", text_of(folder_ / "text.txt"));
  run(with("text.txt"));
  const std::string said = run(with("other.txt"), "").out;
  EXPECT_THAT(said, AllOf(HasSubstr("note: data.path is "), HasSubstr("other.txt\"] and was ")));
}

// The parameters are those before the step that failed, which is the next one when the run goes on.
TEST_F(Resume, ANumberThatIsNotFiniteLeavesTheStepBeforeIt) {
  const std::vector<std::string> wild{"--optimizer.name=sgd", "--optimizer.lr=1e30", "--train.clip=0",
                                      "--optimizer.schedule=constant", "--checkpoint.every=0"};
  const std::string said = refusal_of([&] { run(config("r", wild)); });
  ASSERT_THAT(said, HasSubstr("[train] step "));
  const i64 failed = lines_of("r");
  ASSERT_GT(failed, 1);
  const Newest newest = newest_checkpoint(folder_ / "r/checkpoints");
  ASSERT_TRUE(newest.checkpoint);
  EXPECT_EQ(newest.checkpoint->manifest().step, failed - 1);
  std::vector<std::string> fewer = wild;
  fewer.push_back("--train.steps=" + std::to_string(failed - 1));
  const Ran before = run(config("before", fewer));
  const Checkpoint there(checkpoint("before", failed - 1));
  for (const std::string& name : there.parameters())
    EXPECT_EQ(newest.checkpoint->parameter(name).bytes, there.parameter(name).bytes) << name;
  EXPECT_EQ(refusal_of([&] { run(config("r", wild), ""); }), said);
  EXPECT_THAT(text_of(folder_ / "out"), HasSubstr("resume   after step " + std::to_string(failed - 1)));
  EXPECT_EQ(lines_of("r"), failed);
}

TEST_F(Resume, AFailureToSaveDoesNotHideTheErrorThatEndsTheRun) {
  fs::create_directory(folder_ / "r");
  folder_.write("r/config.toml", "");
  folder_.write("r/checkpoints", "in the way");
  EXPECT_THAT(refusal_of([&] {
                run(config("r", {"--optimizer.name=sgd", "--optimizer.lr=1e30", "--train.clip=0",
                                 "--optimizer.schedule=constant", "--checkpoint.every=0"}),
                    "");
              }),
              HasSubstr("[train] step "));
  EXPECT_THAT(text_of(folder_ / "out"), HasSubstr("could not be written"));
}

TEST_F(Resume, AModelIsReadWithoutTheFilesOfItsRun) {
  folder_.write("two.csv", "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  run(config("r", {"--train.steps=2", "--train.microbatches=2", "--parallel.pipe=2",
                   "--parallel.schedule=" + (folder_ / "two.csv").string()}));
  fs::remove(folder_ / "two.csv");
  EXPECT_EQ(load_model(folder_ / "r").config, config("r").model.config);
}

TEST_F(Resume, KeepDecidesHowManyThereAre) {
  run(config("two", {"--checkpoint.every=1", "--checkpoint.keep=2"}));
  EXPECT_THAT(checkpoints_in(folder_ / "two/checkpoints"), ElementsAre(checkpoint("two", 9), checkpoint("two", 8)));
  run(config("last", {"--checkpoint.every=0"}));
  EXPECT_THAT(checkpoints_in(folder_ / "last/checkpoints"), ElementsAre(checkpoint("last", 9)));
  run(config("none", {"--checkpoint.keep=0"}));
  EXPECT_FALSE(fs::exists(folder_ / "none/checkpoints"));
}

TEST_F(Resume, ExportsAtTheEnd) {
  const Ran r = run(config("r", {"--checkpoint.export=" + (folder_ / "hf").string()}));
  EXPECT_THAT(r.out, HasSubstr("exported " + (folder_ / "hf").string()));
  const StoredModel from_run = load_model(folder_ / "r"), exported = load_model(folder_ / "hf");
  EXPECT_EQ(from_run.kind, StoredModel::Kind::checkpoint);
  EXPECT_EQ(exported.kind, StoredModel::Kind::hugging_face);
  ASSERT_EQ(from_run.weights.size(), exported.weights.size());
  for (const auto& [name, value] : from_run.weights) EXPECT_EQ(value.bytes, exported.weights.at(name).bytes) << name;
}

}  // namespace
}  // namespace stretto
