#include "stretto/config/run.h"

#include <gmock/gmock.h>

#include "stretto/base/error.h"
#include "support/files.h"

namespace stretto {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

RunConfig parsed(std::string_view toml, const std::vector<std::string>& overrides = {}) {
  return parse_run(toml, "run.toml", overrides);
}

std::vector<std::string> faults(std::string_view toml, const std::vector<std::string>& overrides = {}) {
  std::vector<std::string> all;
  try {
    parsed(toml, overrides);
  } catch (const Error& e) {
    EXPECT_EQ(e.exit_code(), 1);
    for (const Fault& f : e.faults()) all.push_back(f.str());
  }
  return all;
}

TEST(Run, EverythingHasADefault) {
  const RunConfig c = read_run("");
  EXPECT_EQ(c.model.config.family, "gpt2");
  EXPECT_EQ(c.model.config.head_dim, 32);  // complete
  EXPECT_THAT(c.data.path, ElementsAre("examples/data/tales.txt"));
  EXPECT_EQ(c.log.name, "run");
  RunConfig empty = parsed("");
  EXPECT_EQ(c, empty);
}

TEST(Run, EverySectionIsRead) {
  const RunConfig c = parsed(R"(
[model]
family = "llama"
layers = 2
width = 64
heads = 4
kv_heads = 2
tied = true
dropout = 0.1
rope_scaling = {kind = "linear", factor = 2.0}
[data]
path = ["a.txt", "b/*.txt"]
validation = "held-out.txt"
[train]
steps = 1e3
batch = 12
microbatches = 4
seed = 7
dtype = "f64"
clip = 0
validate = 50
validate_batches = 3
[optimizer]
name = "sgd"
lr = 0.5
momentum = 0.9
nesterov = true
decay = 0.01
schedule = "wsd"
warmup = 10
floor = 0.0
stable = 0.5
[log]
name = "mine"
dir = "out"
every = 5
)");
  EXPECT_EQ(c.model.config.kv_heads, 2);
  EXPECT_EQ(c.model.config.ff, 192);  // 8/3 of the width, rounded up
  EXPECT_EQ(c.model.config.tied, true);
  EXPECT_EQ(c.model.config.rope_scaling.kind, RopeScaling::Kind::linear);
  EXPECT_EQ(c.model.config.rope_scaling.factor, 2.0);
  EXPECT_THAT(c.data.path, ElementsAre("a.txt", "b/*.txt"));
  EXPECT_THAT(c.data.validation_path, ElementsAre("held-out.txt"));
  EXPECT_EQ(c.train, (TrainSection{1000, 12, 4, 7, f64, 0, 50, 3}));
  EXPECT_EQ(c.optimizer.name, "sgd");
  EXPECT_EQ(c.optimizer.momentum, 0.9);
  EXPECT_TRUE(c.optimizer.nesterov);
  EXPECT_EQ(c.optimizer.stable, 0.5);
  EXPECT_EQ(c.log, (LogSection{"mine", "out", 5}));
  const Training t = training_of(c);
  EXPECT_EQ(t.microbatches, 4);
  EXPECT_EQ(t.seed, 7u);
  EXPECT_EQ(t.dtype, f64);
  const Optimizer o = optimizer_of(c);
  EXPECT_DOUBLE_EQ(o.lr(5), 0.25);    // warming up
  EXPECT_DOUBLE_EQ(o.lr(300), 0.5);   // stable
  EXPECT_DOUBLE_EQ(o.lr(1000), 0.0);  // at the floor
}

TEST(Run, OptimizersHaveDefaultsOfTheirOwn) {
  EXPECT_EQ(parsed("").optimizer.lr, AdamW().lr);
  const RunConfig lion = parsed("", {"--optimizer.name=lion"});
  EXPECT_EQ(lion.optimizer.lr, Lion().lr);
  EXPECT_THAT(lion.optimizer.betas, ElementsAre(Lion().beta1, Lion().beta2));
  EXPECT_EQ(optimizer_of(lion).name, "lion");
  EXPECT_EQ(parsed("[optimizer]\nname = \"sgd\"").optimizer.lr, Sgd().lr);
}

TEST(Run, FlagsWinOverTheFile) {
  const RunConfig c =
      parsed("[train]\nsteps = 10\nbatch = 4", {"--train.steps=20", "--train.steps=30", "--log.dir=x y"});
  EXPECT_EQ(c.train.steps, 30);
  EXPECT_EQ(c.train.batch, 4);
  EXPECT_EQ(c.log.dir, "x y");
}

TEST(Run, PresetsAreABase) {
  const RunConfig c = parsed("[model]\npreset = \"llama-tiny\"\nlayers = 1");
  EXPECT_EQ(c.model.config.family, "llama");
  EXPECT_EQ(c.model.config.layers, 1);
  EXPECT_EQ(c.model.config.kv_heads, 2);
}

TEST(Run, AHuggingFaceConfigIsABase) {
  const std::string model = STRETTO_TEST_DATA "/hf/llama/model";
  const RunConfig config = parsed("[model]\nconfig = \"" + model + "/config.json\"\ncontext = 16");
  EXPECT_EQ(config.model.config.layers, 3);
  EXPECT_EQ(config.model.config.context, 16);
  EXPECT_EQ(config.model.from, "");
  const RunConfig from = parsed("[model]\nfrom = \"" + model + "\"\ncontext = 16");
  EXPECT_EQ(from.model.config.layers, 3);
  EXPECT_EQ(from.model.from, model);
  EXPECT_THAT(
      faults("[model]\nfrom = \"" + model + "\"\nlayers = 2"),
      ElementsAre(AllOf(HasSubstr("[run.toml:2] key 'model.from': the weights are those of llama, 3 layers"),
                        HasSubstr("other keys make it llama, 2 layers"), HasSubstr("hint: leave those keys out"))));
}

TEST(Run, ResolvedConfigGivesTheSameRun) {
  for (const char* toml :
       {"", "[model]\npreset = \"llama-1b\"", "[optimizer]\nname = \"sgd\"\nmomentum = 0.9\nlr = 0.1",
        "[optimizer]\nname = \"lion\"\nschedule = \"wsd\"\nlr = 1e-7", "[optimizer]\nschedule = \"constant\"",
        "[data]\nvalidation = [\"a b.txt\", \"c\\\"d\"]\npath = \"x\"", "[data]\nvalidation = 0.1",
        "[train]\ndtype = \"f64\"\nclip = 0.30000000000000004",
        "[model]\nfrom = \"" STRETTO_TEST_DATA "/hf/gpt2/model\"\ndropout = 0.25"}) {
    const RunConfig c = parsed(toml);
    const std::string text = resolved_toml(c);
    EXPECT_EQ(parse_run(text, "config.toml"), c) << toml << "\n" << text;
    EXPECT_EQ(resolved_toml(parse_run(text, "config.toml")), text);
  }
}

TEST(Run, FilesAreNamed) {
  const test::Folder folder;
  folder.write("mine.toml", "[train]\nsteps = 3\n");
  EXPECT_EQ(read_run((folder / "mine.toml").string()).log.name, "mine");
  folder.write("bad.toml", "[train]\nsteps = \n");
  const auto message = [&](const std::string& name) -> std::string {
    try {
      read_run((folder / name).string());
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_THAT(message("bad.toml"), HasSubstr(folder.str() + "/bad.toml:2"));
  EXPECT_THAT(message("none.toml"), HasSubstr(folder.str() + "/none.toml"));
}

// One mistake each: file, line, key, value, and what to do.
TEST(RunMistakes, AreNamed) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"[model]\nlyers = 2", "[run.toml:2] key 'model.lyers' is unknown; hint: did you mean 'model.layers'?"},
      {"[trian]\nsteps = 2", "[run.toml:1] key 'trian' is unknown; hint: did you mean 'train'?"},
      {"steps = 2", "[run.toml:1] key 'steps' is unknown; hint: did you mean 'train.steps'?"},
      {"[model]\nlayers = \"two\"", "[run.toml:2] key 'model.layers' is \"two\" but must be a whole number"},
      {"[model]\nlayers = 2.5", "[run.toml:2] key 'model.layers' is 2.5 but must be a whole number"},
      {"[model]\nlayers = 0", "[run.toml:2] key 'model.layers': layers is 0; hint: use a number from 1 to 10000"},
      {"[model]\nwidth = 100\n\nheads = 3",
       "[run.toml:4] key 'model.heads': 3 heads do not divide width 100; hint: use 2 or 4 heads, or width 102"},
      {"[model]\nfamily = \"gtp2\"", "[run.toml:2] key 'model.family': "},
      {"[model]\npreset = \"lama-tiny\"",
       "[run.toml:2] key 'model.preset': there is no preset 'lama-tiny'; hint: did you mean 'llama-tiny'?"},
      {"[model]\nconfig = \"none.json\"", "[run.toml:2] key 'model.config': "},
      {"[model]\npreset = \"gpt2\"\nfrom = \"x\"",
       "[run.toml:2] key 'model.preset': 'preset' and 'from' are given together; hint: give one of them"},
      {"[model]\ndropout = 1.5", "[run.toml:2] key 'model.dropout': dropout is 1.5; hint: "},
      {"[model]\nactivation = \"gelo\"",
       "[run.toml:2] key 'model.activation' is \"gelo\" but must be one of gelu, gelu_erf, relu, silu; hint: did you "
       "mean \"gelu\"?"},
      {"[model]\ntied = 1", "[run.toml:2] key 'model.tied' is 1 but must be true or false"},
      {"[model]\nrope_scaling = {kind = \"yarn\"}",
       "[run.toml:2] key 'model.rope_scaling.kind' is \"yarn\" but must be one of none, linear, llama3"},
      {"model = 3", "[run.toml:1] key 'model' is 3 but must be a table"},
      {"[data]\npath = 3", "[run.toml:2] key 'data.path' is 3 but must be a string or a list of strings"},
      {"[data]\nvalidation = 1.5",
       "[run.toml:2] key 'data.validation' is 1.5 but must be below 1; hint: give the part of the data, e.g. 0.05, or "
       "a file"},
      {"[data]\nvalidation = -0.1", "[run.toml:2] key 'data.validation' is -0.1 but must be a number of at least 0"},
      {"[data]\ntokenizer = \"gpt2\"",
       "[run.toml:2] key 'data.tokenizer' is \"gpt2\" but this version reads text as bytes; hint: leave it out or "
       "write \"bytes\""},
      {"[train]\nsteps = 0", "[run.toml:2] key 'train.steps' is 0 but must be a whole number of at least 1"},
      {"[train]\nbatch = 10\nmicrobatches = 4",
       "[run.toml:3] key 'train.microbatches': 10 sequences per step cannot be cut into 4 equal microbatches; hint: "
       "use a batch of 12"},
      {"[train]\ndtype = \"f16\"", "[run.toml:2] key 'train.dtype' is \"f16\" but must be one of f32, f64"},
      {"[train]\nclip = -1", "[run.toml:2] key 'train.clip' is -1 but must be a number of at least 0"},
      {"[train]\nseed = -1", "[run.toml:2] key 'train.seed' is -1 but must be a whole number of at least 0"},
      {"[optimizer]\nname = \"adam\"",
       "[run.toml:2] key 'optimizer.name' is \"adam\" but must be one of adamw, lion, sgd; hint: did you mean "
       "\"adamw\"?"},
      {"[optimizer]\nlr = 0", "[run.toml:2] key 'optimizer.lr' is 0 but must be a number above 0"},
      {"[optimizer]\nlr = nan", "[run.toml:2] key 'optimizer.lr' is nan but must be a number above 0"},
      {"[optimizer]\nbetas = [0.9]",
       "[run.toml:2] key 'optimizer.betas' is [0.9] but must be two numbers from 0 up to, not including, 1; hint: e.g. "
       "[0.9, 0.95]"},
      {"[optimizer]\nbetas = [0.9, 1.0]", "[run.toml:2] key 'optimizer.betas' is [0.9, 1"},
      {"[optimizer]\nbetas = [0.9, \"x\"]",
       "[run.toml:2] key 'optimizer.betas[1]' is \"x\" but must be a number from 0 to 1"},
      {"[optimizer]\nmomentum = 0.9",
       "[run.toml:2] key 'optimizer.momentum' is 0.9 but optimizer 'adamw' has no momentum; hint: leave it out"},
      {"[optimizer]\nname = \"sgd\"\nbetas = [0.9, 0.95]",
       "[run.toml:3] key 'optimizer.betas' is [0.9, 0.95] but optimizer 'sgd' has no betas; hint: leave it out"},
      {"[optimizer]\nname = \"sgd\"\nnesterov = true",
       "[run.toml:3] key 'optimizer.nesterov' is true but momentum is 0; hint: "},
      {"[optimizer]\nstable = 0.5",
       "[run.toml:2] key 'optimizer.stable' is 0.5 but schedule 'cosine' has no stable; hint: leave it out"},
      {"[optimizer]\nschedule = \"cosin\"",
       "[run.toml:2] key 'optimizer.schedule' is \"cosin\" but must be one of constant, cosine, linear, wsd; hint: did "
       "you mean \"cosine\"?"},
      {"[parallel]\npipe = 2",
       "[run.toml:2] key 'parallel.pipe' is 2 but this version trains on one rank; hint: leave it out or write 1"},
      {"[parallel]\nlayout = {batch = \"data\"}", "[run.toml:2] key 'parallel.layout' is "},
      {"[parallel]\npip = 2", "[run.toml:2] key 'parallel.pip' is unknown; hint: did you mean 'parallel.pipe'?"},
      {"[checkpoint]\nevery = 100",
       "[run.toml:2] key 'checkpoint.every' is 100 but this version writes no checkpoints; hint: leave it out or write "
       "0"},
      {"[log]\nevery = 0", "[run.toml:2] key 'log.every' is 0 but must be a whole number of at least 1"},
      {"[log]\nname = \"a/b\"", "[run.toml:2] key 'log.name' is \"a/b\" but must be a plain name, without '/'"},
  };
  for (const auto& [toml, expected] : cases) {
    const auto all = faults(toml);
    ASSERT_EQ(all.size(), 1u) << toml << "\n" << testing::PrintToString(all);
    EXPECT_THAT(all[0], testing::StartsWith(expected)) << toml;
  }
}

TEST(RunMistakes, OnTheCommandLineAreNamedToo) {
  EXPECT_THAT(faults("", {"--train.stesp=3"}),
              ElementsAre("[command line] key 'train.stesp' is unknown; hint: did you mean 'train.steps'?"));
  EXPECT_THAT(faults("", {"--train.steps=many"}),
              ElementsAre(HasSubstr("[command line] key 'train.steps' is \"many\"")));
}

TEST(RunMistakes, AllAreNamedTogetherInTheOrderOfTheFile) {
  std::vector<std::string> where;
  for (const std::string& f :
       faults("[model]\nlayers = 0\nwidht = 3\n[train]\nsteps = 0\nbatch = \"x\"\n[parallel]\ndata = 2",
              {"--log.every=0"}))
    where.push_back(f.substr(0, f.find(']') + 1));
  EXPECT_THAT(where, ElementsAre("[run.toml:2]", "[run.toml:3]", "[run.toml:5]", "[run.toml:6]", "[run.toml:8]",
                                 "[command line]"));
}

TEST(Run, WhatAsksForNothingIsAllowed) {
  EXPECT_THAT(faults(R"(
[data]
tokenizer = "bytes"
[train]
exact = false
[parallel]
pipe = 1
data = 1
tensor = 1
expert = 1
context = 1
sequence = false
zero = 0
schedule = "1f1b"
chunks = 1
recompute = "none"
device = "cpu"
[checkpoint]
every = 0
[log]
timeline = false
)"),
              testing::IsEmpty());
}

}  // namespace
}  // namespace stretto
