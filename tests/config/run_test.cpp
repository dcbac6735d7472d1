#include "stretto/config/run.h"

#include <gmock/gmock.h>

#include "stretto/base/error.h"
#include "stretto/config/plan.h"
#include "stretto/cost/cluster_file.h"
#include "support/files.h"
#include "support/message.h"

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
  EXPECT_EQ(resolved_toml(c), resolved_toml(empty));
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
nonfinite = "skip"
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
[parallel]
pipe = 2
schedule = "zb-v"
chunks = 2
stages = [1, 2, 1, 2]
recompute = ["none", "full", "selective", "none"]
device = "emulated"
link = {latency = 1e-5, bandwidth = 1e9}
machine = {flops = 1e12}
timeout = 30
[log]
name = "mine"
dir = "out"
every = 5
timeline = "last"
)");
  EXPECT_EQ(c.model.config.kv_heads, 2);
  EXPECT_EQ(c.model.config.ff, 192);  // 8/3 of the width, rounded up
  EXPECT_EQ(c.model.config.tied, true);
  EXPECT_EQ(c.model.config.rope_scaling.kind, RopeScaling::Kind::linear);
  EXPECT_EQ(c.model.config.rope_scaling.factor, 2.0);
  EXPECT_THAT(c.data.path, ElementsAre("a.txt", "b/*.txt"));
  EXPECT_THAT(c.data.validation_path, ElementsAre("held-out.txt"));
  EXPECT_EQ(c.train, (TrainSection{.steps = 1000,
                                   .batch = 12,
                                   .microbatches = 4,
                                   .seed = 7,
                                   .dtype = f64,
                                   .clip = 0,
                                   .validate = 50,
                                   .validate_batches = 3,
                                   .nonfinite = Nonfinite::skip}));
  EXPECT_EQ(c.optimizer.name, "sgd");
  EXPECT_EQ(c.optimizer.momentum, 0.9);
  EXPECT_TRUE(c.optimizer.nesterov);
  EXPECT_EQ(c.optimizer.stable, 0.5);
  EXPECT_EQ(c.log, (LogSection{"mine", "out", 5, {.last = true}}));
  const Parallel p = parallel_of(c.parallel, c.train.dtype.products);
  EXPECT_EQ(p.mesh, (Mesh{{"pipe", 2}}));
  EXPECT_EQ(std::get<std::string>(p.schedule.get()), "zb-v");
  EXPECT_EQ(p.chunks, 2);
  EXPECT_THAT(p.stages, ElementsAre(1, 2, 1, 2));
  EXPECT_THAT(p.recompute, ElementsAre(Recompute::none, Recompute::full, Recompute::selective, Recompute::none));
  const RunOptions options = options_of(c.parallel);
  EXPECT_EQ(options.device, DeviceKind::emulated);
  EXPECT_EQ(options.link, (Link{1e-5, 1e9}));
  EXPECT_EQ(options.machine, (Machine{1e12, Machine().memory_bandwidth}));
  EXPECT_EQ(options.timeout, 30);
  const Training t = training_of(c);
  EXPECT_TRUE(t.skip_nonfinite);
  EXPECT_EQ(t.microbatches, 4);
  EXPECT_EQ(t.seed, 7u);
  EXPECT_EQ(t.dtype, f64);
  const Optimizer o = optimizer_of(c);
  EXPECT_DOUBLE_EQ(o.lr(5), 0.25);    // warming up
  EXPECT_DOUBLE_EQ(o.lr(300), 0.5);   // stable
  EXPECT_DOUBLE_EQ(o.lr(1000), 0.0);  // at the floor
}

TEST(Run, WhatIsArrangedForAClusterKnowsWhatProductsAreMadeIn) {
  const test::Folder folder;
  folder.write("c.toml", "device = \"h100-sxm\"\n");
  const std::string file = (folder / "c.toml").string();
  for (const auto& [dtype, products] : {std::pair("bf16", ProductType::as_kept), {"fp8", ProductType::fp8}}) {
    RunConfig c = parsed(fmt::format("[train]\ndtype = \"{}\"\n", dtype));
    c.parallel.cluster = file;
    const Cluster cluster = read_cluster(file, {}, products).cluster;
    EXPECT_EQ(compile_run(c, Purpose::sizes).parallel.cluster, cluster) << dtype;
    EXPECT_EQ(problem_of(c, read_cluster(file), 1).parallel.cluster, cluster) << dtype;
  }
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

TEST(Run, OfAGraphIsReadAsItIsWritten) {
  const RunConfig c = parsed("[model]\ngraph = \"" STRETTO_SOURCE "/tests/files/graphs/nanogpt.json\"\n");
  EXPECT_EQ(parsed(resolved_toml(c)).model.graph, c.model.graph);
  EXPECT_EQ(faults(resolved_toml(c), {"--data.documents=true", "--finetune.adapter=x"}).size(), 2u);
}

TEST(Run, TheTokenizerOfTheWeightsIsTheDefault) {
  const test::Folder folder;
  std::filesystem::copy(STRETTO_TEST_DATA "/hf/gpt2/model", folder / "model");
  const std::string model = (folder / "model").string(), toml = "[model]\nfrom = \"" + model + "\"\n";
  EXPECT_EQ(parsed(toml).data.tokenizer, "bytes");  // its vocabulary is 256
  std::string shape = test::text_of(folder / "model/config.json");
  shape.replace(shape.find("\"vocab_size\": 256"), 17, "\"vocab_size\": 300");
  folder.write("model/config.json", shape);
  EXPECT_EQ(parsed(toml).data.tokenizer, "none");  // and so text is refused
  EXPECT_EQ(parsed(resolved_toml(parsed(toml))).data.tokenizer, "none");
  folder.write("model/tokenizer.model", "");
  EXPECT_EQ(parsed(toml).data.tokenizer, model + "/tokenizer.model");
  folder.write("model/tokenizer.json", "{}");
  EXPECT_EQ(parsed(toml).data.tokenizer, model + "/tokenizer.json");
  EXPECT_EQ(parsed(resolved_toml(parsed(toml))).data.tokenizer, model + "/tokenizer.json");
  EXPECT_EQ(parsed(toml + "[data]\ntokenizer = \"bytes\"").data.tokenizer, "bytes");
}

TEST(Run, TheVocabularyFollowsTheData) {
  const test::Folder folder;
  folder.write("a.bin", std::string("\x05\0\x09\x01\x02\0", 6));
  const std::string tokens = "[data]\npath = \"" + (folder / "a.bin").string() + "\"\n";
  const std::string text = "[data]\ntokenizer = \"" STRETTO_TEST_DATA "/tokenizers/gpt2_style\"\n";
  EXPECT_EQ(parsed(tokens).model.config.vocab, 0x109 + 1);
  EXPECT_EQ(parsed(text).model.config.vocab, 512);
  EXPECT_EQ(parsed("[model]\nvocab = 300\n" + text).model.config.vocab, 300);
  EXPECT_EQ(parsed("[model]\npreset = \"llama-1b\"\n" + text).model.config.vocab, 128256);
  EXPECT_EQ(parsed("[data]\ntokenizer = \"nowhere\"\n").model.config.vocab, 256);  // is said when it is opened
}

TEST(RunMistakes, WeightsThatARunReadsAreNotWrittenOver) {
  const test::Folder folder;
  std::filesystem::copy(STRETTO_TEST_DATA "/hf/gpt2/model", folder / "model");
  std::filesystem::create_directory_symlink(folder / "model", folder / "link");
  const std::string toml = "[model]\nfrom = \"" + (folder / "model").string() + "\"\n[checkpoint]\nexport = \"";
  for (const char* same : {"model", "link", "model/."}) {
    const auto all = faults(toml + (folder / same).string() + "\"");
    ASSERT_EQ(all.size(), 1u) << same;
    EXPECT_THAT(all[0], AllOf(HasSubstr("[run.toml:4] key 'checkpoint.export' is "), HasSubstr("model.from reads")));
  }
  EXPECT_TRUE(faults(toml + (folder / "other").string() + "\"").empty());
}

TEST(Run, ResolvedConfigGivesTheSameRun) {
  for (const char* toml :
       {"", "[model]\npreset = \"llama-1b\"", "[optimizer]\nname = \"sgd\"\nmomentum = 0.9\nlr = 0.1",
        "[optimizer]\nname = \"lion\"\nschedule = \"wsd\"\nlr = 1e-7", "[optimizer]\nschedule = \"constant\"",
        "[data]\nvalidation = [\"a b.txt\", \"c\\\"d\"]\npath = \"x\"", "[data]\nvalidation = 0.1",
        "[data]\ndocuments = true\nformat = \"megatron\"\ntokenizer = \"a/tokenizer.json\"\n[[data.mixture]]\npath = "
        "[\"a\", \"b*\"]\n"
        "weight = 0.1\n[[data.mixture]]\npath = \"c\"",
        "[train]\ndtype = \"f64\"\nclip = 0.30000000000000004\nnonfinite = \"continue\"",
        "[train]\nmicrobatches = 4\n[parallel]\npipe = 2\nschedule = \"zb-v\"\nstages = [1, 2, 3, 4]\nrecompute = "
        "\"full\"\nlink = {latency = 1e-5}\nmachine = {bandwidth = 3e9}\ntimeout = 0.5\n[log]\ntimeline = 3",
        "[model]\nfrom = \"" STRETTO_TEST_DATA "/hf/gpt2/model\"\ndropout = 0.25"}) {
    const RunConfig c = parsed(toml);
    const std::string text = resolved_toml(c);
    const RunConfig again = parse_run(text, "config.toml");
    EXPECT_EQ(resolved_toml(again), text);
    EXPECT_EQ(again.model, c.model) << toml;
    EXPECT_EQ(again.data, c.data) << toml;
    EXPECT_EQ(again.train, c.train) << toml;
    EXPECT_EQ(again.optimizer, c.optimizer) << toml;
    EXPECT_EQ(again.finetune, c.finetune) << toml;
    EXPECT_EQ(again.checkpoint, c.checkpoint) << toml;
    EXPECT_EQ(again.log, c.log) << toml;
    EXPECT_EQ(again.plan, c.plan) << toml;
  }
}

TEST(Run, FilesAreNamed) {
  const test::Folder folder;
  folder.write("mine.toml", "[train]\nsteps = 3\n");
  EXPECT_EQ(read_run((folder / "mine.toml").string()).log.name, "mine");
  folder.write("bad.toml", "[train]\nsteps = \n");
  const auto message = [&](const std::string& name) -> std::string {
    return refusal_of([&] { read_run((folder / name).string()); });
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
      {"[model]\nlayers = 0", "[run.toml:2] key 'model.layers' is 0 but must be a whole number from 1 to 10000"},
      {"[model]\nwidth = 100\n\nheads = 3",
       "[run.toml:4] key 'model.heads': 3 heads do not divide width 100; hint: use 2 or 4 heads, or width 102"},
      {"[model]\nfamily = \"gtp2\"", "[run.toml:2] key 'model.family': "},
      {"[model]\npreset = \"lama-tiny\"",
       "[run.toml:2] key 'model.preset': there is no preset 'lama-tiny'; hint: did you mean 'llama-tiny'?"},
      {"[model]\nconfig = \"none.json\"",
       "[run.toml:2] key 'model.config': none.json: cannot be opened: No such file or directory"},
      {"[model]\nfrom = \"nowhere\"",
       "[run.toml:2] key 'model.from': nowhere: cannot be opened: No such file or directory; hint: name a Hugging "
       "Face directory, or its config.json"},
      {"[model]\npreset = \"gpt2\"\nfrom = \"x\"",
       "[run.toml:2] key 'model.preset': 'preset' and 'from' are given together; hint: give one of them"},
      {"[model]\ndropout = 1.5",
       "[run.toml:2] key 'model.dropout' is 1.5 but must be a number from 0 up to, not including, 1"},
      {"[model]\nactivation = \"gelo\"",
       "[run.toml:2] key 'model.activation' is \"gelo\" but must be one of gelu, gelu_erf, relu, silu; hint: did you "
       "mean \"gelu\"?"},
      {"[model]\ntied = 1", "[run.toml:2] key 'model.tied' is 1 but must be true or false"},
      {"[model]\nrope_scaling = {kind = \"dynamic\"}",
       "[run.toml:2] key 'model.rope_scaling.kind' is \"dynamic\" but must be one of none, linear, llama3, yarn, "
       "longrope"},
      {"model = 3", "[run.toml:1] key 'model' is 3 but must be a table"},
      {"[data]\npath = 3", "[run.toml:2] key 'data.path' is 3 but must be a string or a list of strings"},
      {"[data]\nvalidation = 1.5",
       "[run.toml:2] key 'data.validation' is 1.5 but must be below 1; hint: give the part of the data, e.g. 0.05, or "
       "a file"},
      {"[data]\nvalidation = -0.1", "[run.toml:2] key 'data.validation' is -0.1 but must be a number of at least 0"},
      {"[data]\ntokenizer = 3", "[run.toml:2] key 'data.tokenizer' is 3 but must be a string"},
      {"[model]\nfamily = \"mlp\"\n[data]\ndocuments = true",
       "[run.toml:4] key 'data.documents' is true but the family 'mlp' has no attention; hint: leave it out"},
      {"[data]\npath = []", "[run.toml:2] key 'data.path' is [] but names no files"},
      {"[data]\nformat = \"nanogtp\"", "[run.toml:2] key 'data.format' is \"nanogtp\" but must be one of auto, text, "},
      {"[data]\nmixture = \"a.bin\"", "[run.toml:2] key 'data.mixture' is \"a.bin\" but must be a list of tables"},
      {"[data]\nmixture = []", "[run.toml:2] key 'data.mixture' is [] but must have from 1 to 1000 parts; hint: e.g. "},
      {"[data]\nmixture = [{weight = 2}]", "[run.toml:2] key 'data.mixture[0].path' is missing"},
      {"[data]\nmixture = [{path = \"a\"}, {path = \"b\", weight = 0}]",
       "[run.toml:2] key 'data.mixture[1].weight' is 0 but must be a number above 0"},
      {"[data]\nmixture = [{path = \"a\", wieght = 2}]",
       "[run.toml:2] key 'data.mixture[0].wieght' is unknown; hint: did you mean 'data.mixture[0].weight'?"},
      {"[data]\npath = \"a\"\nmixture = [{path = \"b\"}]",
       "[run.toml:3] key 'data.mixture': 'path' is given too; hint: give one of them"},
      {"[train]\nsteps = 0", "[run.toml:2] key 'train.steps' is 0 but must be a whole number of at least 1"},
      {"[train]\nbatch = 10\nmicrobatches = 4",
       "[run.toml:3] key 'train.microbatches': 10 sequences per step cannot be cut into 4 equal microbatches; hint: "
       "use a batch of 12, or train.microbatches = 2 or 5"},
      {"[train]\nbatch = 7\nmicrobatches = 8",
       "[run.toml:3] key 'train.microbatches': 7 sequences per step cannot be cut into 8 equal microbatches; hint: "
       "use a batch of 8, or train.microbatches = 7"},
      {"[train]\nleaf = 2",
       "[run.toml:2] key 'train.leaf' is 2 but is of exact training only; hint: add train.exact = true, or leave it "
       "out"},
      {"[train]\ndtype = \"f17\"", "[run.toml:2] key 'train.dtype' is \"f17\" but must be one of f32, f64, bf16"},
      {"[train]\ndtype = \"f16\"",
       "[run.toml:2] key 'train.dtype' is \"f16\" but it ends at 65504: losses would have to be scaled up and "
       "gradients "
       "down; hint: use bf16: it has the range of f32"},
      {"[train]\nprecision = {router = \"f32\"}",
       "[run.toml:2] key 'train.precision' is a table but train.dtype is f32: nothing is rounded"},
      {"[train]\npatience = 3",
       "[run.toml:2] key 'train.patience' is 3 but no data is held out for validation; hint: hold some out, e.g. "
       "data.validation = 0.05"},
      {"[checkpoint]\nbest = true",
       "[run.toml:2] key 'checkpoint.best' is true but no data is held out for validation"},
      {"[train]\ndtype = \"bf16\"\nprecision = {router = \"f16\"}",
       "[run.toml:3] key 'train.precision.router' is \"f16\" but must be one of f32"},
      {"[checkpoint]\nexport_dtype = \"f8\"",
       "[run.toml:2] key 'checkpoint.export_dtype' is \"f8\" but must be one of f32, f64, bf16, f16"},
      {"[train]\nclip = -1", "[run.toml:2] key 'train.clip' is -1 but must be a number of at least 0"},
      {"[train]\nseed = -1", "[run.toml:2] key 'train.seed' is -1 but must be a whole number of at least 0"},
      {"[optimizer]\nname = \"adam\"", "[run.toml:2] key 'optimizer.name' is \"adam\" but must be one of adamw, "},
      {"[optimizer]\nlr = 0", "[run.toml:2] key 'optimizer.lr' is 0 but must be a number above 0"},
      {"[optimizer]\nlr = nan", "[run.toml:2] key 'optimizer.lr' is nan but must be a number above 0"},
      {"[optimizer]\nlr = inf", "[run.toml:2] key 'optimizer.lr' is inf but must be a number above 0"},
      {"[optimizer]\ndecay = inf", "[run.toml:2] key 'optimizer.decay' is inf but must be a number from 0 to"},
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
       "[run.toml:2] key 'optimizer.schedule' is \"cosin\" but must be one of constant, "},
      {"[parallel]\npipe = 0", "[run.toml:2] key 'parallel.pipe' is 0 but must be a whole number from 1 to 1024"},
      {"[parallel]\ndata = 0", "[run.toml:2] key 'parallel.data' is 0 but must be a whole number from 1 to 65536"},
      {"[parallel]\nzero = 4", "[run.toml:2] key 'parallel.zero' is 4 but must be a whole number from 0 to 3"},
      {"[parallel]\nsequence = 2", "[run.toml:2] key 'parallel.sequence' is 2 but must be true or false"},
      {"[parallel]\nexpert = 2",
       "[run.toml:2] key 'parallel.expert' is 2 but family 'gpt2' has no experts; hint: use parallel.data = 2, or "
       "family 'mixtral'"},
      {"[parallel]\nlayout = 3", "[run.toml:2] key 'parallel.layout' is 3 but must be a table"},
      {"[parallel]\nlayout = {batch = 2}", "[run.toml:2] key 'parallel.layout.batch' is 2 but must be a string"},
      {"[parallel]\nmesh = {data = 2}",
       "[run.toml:2] key 'parallel.mesh.data' is 2 but is an axis of its own; hint: write parallel.data = 2"},
      {"[parallel]\npipe = 2\nschedule = \"zbv\"",
       "[run.toml:3] key 'parallel.schedule': there is no schedule 'zbv'; hint: did you mean 'zb-v'?"},
      {"[parallel]\nschedule = 3", "[run.toml:2] key 'parallel.schedule' is 3 but must be a string"},
      {"[parallel]\npipe = 2\nschedule = \"none.csv\"",
       "[run.toml:3] key 'parallel.schedule': none.csv: cannot be read: No such file or directory; hint: give a "
       "builder's name or a CSV file"},
      {"[train]\nmicrobatches = 2\n[parallel]\npipe = 4\nschedule = \"dualpipe-v\"",
       "[run.toml:5] key 'parallel.schedule': "},
      {"[parallel]\npipe = 2\nschedule = \"zb-v\"\nchunks = 3",
       "[run.toml:3] key 'parallel.schedule': 3 chunks per actor, where this schedule has 2; hint: use 2 chunks"},
      {"[parallel]\nstages = 4",
       "[run.toml:2] key 'parallel.stages' is 4 but must be \"auto\" or a list of whole numbers from 1 to 65536; "
       "hint: e.g. [3, 2, 2, 3]"},
      {"[parallel]\nstages = \"atuo\"", "[run.toml:2] key 'parallel.stages' is \"atuo\" but must be \"auto\" or"},
      {"[parallel]\nstages = []",
       "[run.toml:2] key 'parallel.stages' is [] but must be \"auto\" or a list of whole numbers"},
      {"[plan]\nranks = \"all\"",
       "[run.toml:2] key 'plan.ranks' is \"all\" but must be \"auto\" or one or several whole numbers from 1 to "
       "1048576; hint: e.g. [8, 16, 32]"},
      {"[plan]\nzero = []", "[run.toml:2] key 'plan.zero' is [] but must be \"auto\" or one or several whole"},
      {"[plan]\nzero = 4", "[run.toml:2] key 'plan.zero' is 4 but must be a whole number from 0 to 3"},
      {"[plan]\nschedules = []", "[run.toml:2] key 'plan.schedules' is [] but names none; hint: leave it out"},
      {"[parallel]\nstages = [3, 0]",
       "[run.toml:2] key 'parallel.stages[1]' is 0 but must be a whole number from 1 to 65536"},
      {"[parallel]\nrecompute = \"ful\"",
       "[run.toml:2] key 'parallel.recompute' is \"ful\" but must be one of none, full, layer, selective, or a list of "
       "them; "
       "hint: did you mean \"full\"?"},
      {"[parallel]\nrecompute = true", "[run.toml:2] key 'parallel.recompute' is true but must be a string"},
      {"[parallel]\ndevice = \"gpu\"",
       "[run.toml:2] key 'parallel.device' is \"gpu\" but must be one of cpu, async, emulated"},
      {"[parallel]\nlink = 3", "[run.toml:2] key 'parallel.link' is 3 but must be a table"},
      {"[parallel]\nlink = {latnecy = 1}",
       "[run.toml:2] key 'parallel.link.latnecy' is unknown; hint: did you mean 'parallel.link.latency'?"},
      {"[parallel]\nlink = {bandwidth = 0}",
       "[run.toml:2] key 'parallel.link.bandwidth' is 0 but must be a number above 0"},
      {"[parallel]\ntimeout = -1", "[run.toml:2] key 'parallel.timeout' is -1 but must be a number from 0 to"},
      {"[train]\nnonfinite = \"ignore\"",
       "[run.toml:2] key 'train.nonfinite' is \"ignore\" but must be one of stop, skip, continue"},
      {"[log]\ntimeline = \"first\"",
       "[run.toml:2] key 'log.timeline' is \"first\" but must be the number of a step, \"last\", or 0 for none"},
      {"[log]\ntimeline = 301",
       "[run.toml:2] key 'log.timeline': step 301 is never done: train.steps is 300; hint: \"last\" is the last one, "
       "whichever it is"},
      {"[log]\ntimeline = -3", "[run.toml:2] key 'log.timeline' is -3 but must be a whole number of at least 0"},
      {"[parallel]\npip = 2", "[run.toml:2] key 'parallel.pip' is unknown; hint: did you mean 'parallel.pipe'?"},
      {"[checkpoint]\nevery = -1", "[run.toml:2] key 'checkpoint.every' is -1 but must be"},
      {"[model]\nfamily = \"mlp\"\n[checkpoint]\nexport = \"out\"",
       "[run.toml:4] key 'checkpoint.export': there is no model type for family 'mlp'"},
      {"[checkpoint]\nexport = \"/dev/null/out\"",
       "[run.toml:2] key 'checkpoint.export': '/dev/null/out' cannot be made: '/dev/null' is no directory; hint: "
       "choose another place"},
      {"[log]\nevery = 0", "[run.toml:2] key 'log.every' is 0 but must be a whole number of at least 1"},
      {"[log]\nname = \"a/b\"", "[run.toml:2] key 'log.name' is \"a/b\" but must be a plain name, without '/'"},
  };
  for (const auto& [toml, expected] : cases) {
    const auto all = faults(toml);
    ASSERT_EQ(all.size(), 1u) << toml << "\n" << testing::PrintToString(all);
    EXPECT_THAT(all[0], testing::StartsWith(expected)) << toml;
  }
}

std::string compiling(std::string_view toml) {
  return input_refusal_of([&] { compile_run(parsed(toml)); });
}

// What only compiling finds out is named with file, line and key as well.
TEST(RunMistakes, ThatTakeTheModelAreNamedToo) {
  const std::string small =
      "[model]\nlayers = 1\nwidth = 16\nheads = 2\ncontext = 8\n[train]\nmicrobatches = 4\nbatch = 4\n[parallel]\n";
  EXPECT_EQ(compiling(small + "pipe = 2\nstages = [1, 1]"),
            "[run.toml:11] key 'parallel.stages': the stages take 2 pieces and the model has 4; hint: make the numbers "
            "add up to 4");
  EXPECT_EQ(compiling(small + "pipe = 2\nstages = [1, 1, 2]"),
            "[run.toml:11] key 'parallel.stages': 3 stages are given and the schedule has 2; hint: give 2 numbers of "
            "pieces");
  EXPECT_THAT(compiling(small + "pipe = 16"),
              HasSubstr("[run.toml:10] key 'parallel.pipe': 16 stages are asked for and the model has 4 pieces"));
  EXPECT_THAT(compiling(small + "pipe = 2\nschedule = \"seq-1f1b\""),
              HasSubstr("[run.toml:11] key 'parallel.schedule': 'seq-1f1b' is for sequences that are cut"));
  EXPECT_THAT(compiling("[train]\nsegments = 3\n" + small.substr(0, small.find("[train]")) + "[parallel]\npipe = 1"),
              HasSubstr("[run.toml:2] key 'train.segments': sequences of 8 tokens cannot be cut into 3 equal segments"));
  EXPECT_EQ(compiling(small + "pipe = 2\nstages = [1, 3]"), "no error");
  EXPECT_EQ(
      compiling("[model]\nlayers = 1\nwidth = 16\nheads = 2\ncontext = 8\nvocab = 255\n[parallel]\ntensor = 4"),
      "[run.toml:8] key 'parallel.tensor': dim 'vocab' has size 255, which 4 ranks (tensor) do not divide; hint: "
      "use a size that 4 divides, another number of ranks, or pad it (model.pad_vocab = 4 for a run's "
      "vocabulary, padded(4) of a dim of your own): files, loss and norms keep the logical size\n"
      "[run.toml:8] key 'parallel.tensor': dim 'heads' has size 2, which 4 ranks (tensor) do not divide; hint: use "
      "a size that 4 divides, another number of ranks, or pad it (model.pad_vocab = 4 for a run's "
      "vocabulary, padded(4) of a dim of your own): files, loss and norms keep the logical size");
  EXPECT_THAT(
      compiling(
          "[model]\nlayers = 1\nwidth = 16\nheads = 2\ncontext = 8\n[parallel]\ndata = 2\nlayout = {heads = \"data\"}"),
      testing::StartsWith("[run.toml:8] key 'parallel.layout.heads': dims 'batch' and 'heads' of "))
      << "what is not usual is the layout";
}

// Every leaf is actions and instructions, as every microbatch is.
TEST(RunMistakes, TooManyLeavesAreRefusedBeforeTheyAreMade) {
  const std::string small = "[model]\nlayers = 1\nwidth = 16\nheads = 2\ncontext = 8\n[train]\nexact = true\n";
  EXPECT_EQ(compiling(small + "batch = 16777216"),
            "[run.toml:8] key 'train.batch': 16777216 rows per step are 16777216 leaves of 1 rows on every rank, and a "
            "rank takes at most 65536; hint: use train.leaf = 256 or more, a batch of 65536 or less, or more ranks "
            "along it");
  EXPECT_EQ(compiling(small + "batch = 16384\nleaf = 4096"), "no error");
}

TEST(RunMistakes, OfACsvScheduleNameBothFiles) {
  const test::Folder folder;
  folder.write("two.csv", "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  folder.write("bad.csv", "0F0,0F1,0B0,0B1\n1F0,1F0,1B0,1B1\n");
  const auto with = [&](const std::string& name, int pipe, int microbatches) {
    return faults(fmt::format("[train]\nbatch = 6\nmicrobatches = {}\n[parallel]\npipe = {}\nschedule = \"{}\"",
                              microbatches, pipe, (folder / name).string()));
  };
  EXPECT_THAT(with("two.csv", 2, 2), testing::IsEmpty());
  for (const auto& [pipe, microbatches] : {std::pair(3, 2), std::pair(2, 6)})
    EXPECT_THAT(
        with("two.csv", pipe, microbatches),
        ElementsAre(fmt::format("[run.toml:6] key 'parallel.schedule': {}/two.csv: it is for 2 actors and "
                                "2 microbatches, the run has {} and {}; hint: use parallel.pipe = 2 and "
                                "train.microbatches = 2",
                                folder.str(), pipe, microbatches)));
  EXPECT_THAT(with("bad.csv", 2, 2),
              testing::Contains(AllOf(HasSubstr("[run.toml:6] key 'parallel.schedule': "), HasSubstr("bad.csv:2:"))));
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
       faults("[model]\nlayers = 0\nwidht = 3\n[train]\nsteps = 0\nbatch = \"x\"\n[parallel]\ndata = 0",
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
