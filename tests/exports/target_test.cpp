#include "stretto/exports/target.h"

#include <gmock/gmock.h>

#include <fstream>
#include <regex>
#include <set>

#include "stretto/formats/fields.h"
#include "stretto/models/family.h"
#include "stretto/schedule/builders.h"
#include "support/files.h"
#include "support/message.h"

namespace stretto {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Llama 3 8B on 64 ranks: 32 layers in pipe x chunks stages.
PlanToWrite plan(RunKeys k) {
  PlanToWrite p{.model = preset("llama-3-8b"), .batch = 256, .dtype = bf16, .clip = 1, .keys = std::move(k)};
  if (p.keys.pipe > 1) p.stages = whole_layers(p.keys.stages, p.model.layers);
  p.comments = {"made by hand"};
  return p;
}

TEST(Targets, MegatronArguments) {
  const std::string text = target_named("megatron")
                               .text(plan({.pipe = 2,
                                           .data = 4,
                                           .tensor = 8,
                                           .sequence = true,
                                           .zero = 1,
                                           .schedule = "interleaved-1f1b",
                                           .chunks = 2,
                                           .microbatches = 8,
                                           .recompute = Recompute::layer,
                                           .stages = {17, 16, 16, 17}}));
  EXPECT_EQ(text.substr(text.find("MEGATRON_ARGS=(\n")),
            "MEGATRON_ARGS=(\n"
            "  --num-layers 32\n"
            "  --seq-length 8192\n"
            "  --micro-batch-size 8\n"
            "  --global-batch-size 256\n"
            "  --bf16\n"
            "  --clip-grad 1\n"
            "  --tensor-model-parallel-size 8\n"
            "  --sequence-parallel\n"
            "  --pipeline-model-parallel-size 2\n"
            "  --pipeline-model-parallel-layout 'Etttttttt|tttttttt|tttttttt|ttttttttL'\n"
            "  --use-distributed-optimizer\n"
            "  --overlap-grad-reduce\n"
            "  --overlap-param-gather\n"
            "  --recompute-granularity full\n"
            "  --recompute-method uniform\n"
            "  --recompute-num-layers 1\n"
            ")\n");
  EXPECT_THAT(text, HasSubstr("# made by hand\n"));
}

TEST(Targets, TorchtitanToml) {
  const Field root = read_toml(target_named("torchtitan")
                                   .text(plan({.pipe = 4,
                                               .data = 16,
                                               .zero = 3,
                                               .schedule = "zb-v",
                                               .chunks = 2,
                                               .microbatches = 16,
                                               .stages = {9, 8, 8, 8, 8, 8, 8, 9}})),
                               "titan");
  const auto number = [&](const char* section, const char* key) {
    return std::get<i64>(root.find(section)->find(key)->value);
  };
  const auto text = [&](const char* section, const char* key) {
    return std::get<std::string>(root.find(section)->find(key)->value);
  };
  EXPECT_EQ(number("parallelism", "pipeline_parallel_degree"), 4);
  EXPECT_EQ(number("parallelism", "data_parallel_shard_degree"), 16);
  EXPECT_EQ(number("parallelism", "data_parallel_replicate_degree"), 1);
  EXPECT_EQ(text("parallelism", "fsdp_reshard_after_forward"), "always");
  EXPECT_EQ(text("parallelism", "pipeline_parallel_schedule"), "ZBVZeroBubble");
  EXPECT_EQ(number("parallelism", "pipeline_parallel_microbatch_size"), 1);
  EXPECT_EQ(number("training", "local_batch_size"), 16) << "all microbatches of a data rank";
  EXPECT_EQ(text("activation_checkpoint", "mode"), "none");
  const Field::Array& parts = *root.find("parallelism")->find("module_fqns_per_model_part")->array();
  ASSERT_EQ(parts.size(), 8u);
  EXPECT_EQ(std::get<std::string>((*parts.front().array())[0].value), "tok_embeddings");
  EXPECT_EQ(parts.front().array()->size(), 5u);
  EXPECT_EQ(std::get<std::string>(parts.back().array()->back().value), "output");
}

TEST(Targets, DeepSpeedJson) {
  const Field root =
      read_json(target_named("deepspeed")
                    .text(plan({.pipe = 4, .data = 16, .zero = 1, .microbatches = 8, .stages = {17, 16, 16, 17}})),
                "ds");
  EXPECT_EQ(std::get<i64>(root.find("train_micro_batch_size_per_gpu")->value), 2);
  EXPECT_EQ(std::get<i64>(root.find("gradient_accumulation_steps")->value), 8);
  EXPECT_EQ(std::get<i64>(root.find("zero_optimization")->find("stage")->value), 1);
  EXPECT_EQ(std::get<i64>(root.find("pipeline")->find("stages")->value), 4);
}

TEST(Targets, JaxPpModule) {
  const std::string text = target_named("jaxpp").text(plan({.pipe = 2,
                                                            .data = 4,
                                                            .tensor = 8,
                                                            .schedule = "interleaved-1f1b",
                                                            .chunks = 2,
                                                            .microbatches = 8,
                                                            .stages = {17, 16, 16, 17}}));
  EXPECT_THAT(text, HasSubstr("shape, axes = (2, 4, 8), (\"pipe\", \"data\", \"tensor\")\n"));
  EXPECT_THAT(text, HasSubstr("schedule = jaxpp.Interleaved1F1B(num_stages=4, mpmd_dim=2)"));
  EXPECT_THAT(text, HasSubstr("stage_ends = {8, 16, 24}"));
}

// What is written of dotted and dashed keys, and of calls of jaxpp.
std::set<std::string> keys_in(const Target& t, const std::string& text) {
  std::set<std::string> all;
  const auto found = [&](const char* pattern) {
    const std::regex r(pattern);
    for (std::sregex_iterator i(text.begin(), text.end(), r), end; i != end; ++i) all.insert((*i)[1]);
  };
  const auto walk = [&](const auto& self, const Field& f, const std::string& path) -> void {
    for (const Member& m : *f.table()) {
      const std::string name = path.empty() ? m.key : path + "." + m.key;
      m.value.table() ? self(self, m.value, name) : void(all.insert(name));
    }
  };
  if (t.extension == ".sh") found("\n  (--[a-z0-9-]+)");
  if (t.extension == ".py") found("jaxpp\\.([A-Za-z0-9_]+)[(,]");
  if (t.extension == ".toml") walk(walk, read_toml(text, "text"), "");
  if (t.extension == ".json") walk(walk, read_json(text, "text"), "");
  return all;
}

// Everything that is ever written stands in the target's table, and what the table says exists in that version.
TEST(Targets, EveryKeyIsInItsTableAndInThatVersion) {
  for (const Target* t : export_targets()) {
    std::set<std::string> table, known;
    for (const Counterpart& c : t->keys) table.emplace(c.theirs);
    std::ifstream file(std::string(STRETTO_SOURCE "/tests/files/targets/") + std::string(t->name) + ".keys");
    std::string line;
    ASSERT_TRUE(std::getline(file, line)) << t->name;
    EXPECT_THAT(line, HasSubstr(std::string(t->version))) << "made by scripts/target_keys of another version";
    while (std::getline(file, line)) known.insert(line);
    for (const std::string& key : table) EXPECT_TRUE(known.contains(key)) << t->name << " has no " << key;
    for (const SameName& s : t->schedules)
      if (!s.theirs.empty()) EXPECT_TRUE(known.contains(std::string(s.theirs))) << t->name << " has no " << s.theirs;
    for (const SameName& s : t->schedules)
      for (const SameName& r : t->recompute)
        for (const int zero : t->zero)
          for (const bool whole : {false, true}) {
            const bool axes = t->context && !whole;
            RunKeys k{.pipe = 4,
                      .data = 2,
                      .tensor = t->tensor ? 2 : 1,
                      .context = axes ? 2 : 1,
                      .sequence = t->sequence,
                      .zero = zero,
                      .schedule = s.ours,
                      .chunks = find_builder(s.ours)->default_chunks(),
                      .microbatches = 16};
            if (whole) k.pipe = k.chunks = 1;
            for (const Recompute kind : by_what_is_kept)
              if (name_of(kind) == r.ours) k.recompute = kind;
            for (int i = 0; i < k.stage_count() && k.pipe > 1; ++i)
              k.stages.push_back(64 / k.stage_count() + (i == 0) + (i + 1 == k.stage_count()));
            for (const std::string& key : keys_in(*t, t->text(plan(k))))
              EXPECT_TRUE(table.contains(key)) << t->name << " writes " << key;
          }
  }
}

TEST(Targets, NamesThatAreNone) {
  const auto message = [](const char* name) { return refusal_of([&] { target_named(name); }); };
  EXPECT_THAT(message("megatrom"),
              HasSubstr("plans are not written for 'megatrom'; hint: did you mean 'megatron'? "
                        "there are megatron (megatron-core 0.16.1), torchtitan (torchtitan 0.2.2)"));
  EXPECT_EQ(message("torchtitan@0.1"),
            "[--for] 'torchtitan@0.1' names a version, and arguments are written for torchtitan 0.2.2; hint: --for "
            "torchtitan");
}

RunConfig open_run(std::vector<std::string> settings) {
  settings.insert(settings.begin(), {"--model.preset=llama-3-8b", "--train.batch=256", "--train.dtype=bf16"});
  return read_open_run("", settings);
}

TEST(Targets, OnlyWhatHasACounterpartIsSearched) {
  const RunConfig run = for_target(open_run({}), target_named("torchtitan"));
  EXPECT_THAT(run.plan.zero, ElementsAre(0, 2, 3));
  EXPECT_THAT(run.plan.schedules, testing::Not(testing::Contains("dualpipe")));
  EXPECT_THAT(run.plan.recompute, ElementsAre("none", "selective", "layer"));
  EXPECT_THAT(for_target(open_run({"--plan.zero=[1,3]"}), target_named("torchtitan")).plan.zero, ElementsAre(3));
  const RunConfig ds = for_target(open_run({}), target_named("deepspeed"));
  EXPECT_THAT(ds.plan.context, ElementsAre(1));
  EXPECT_FALSE(ds.parallel.names.sequence);
  EXPECT_FALSE(has_counterpart(target_named("deepspeed"), preset("llama-3-8b"), {.pipe = 4, .data = 2, .zero = 2}));
  EXPECT_TRUE(has_counterpart(target_named("deepspeed"), preset("llama-3-8b"), {.pipe = 4, .data = 2, .zero = 1}));
  EXPECT_FALSE(has_counterpart(target_named("deepspeed"), preset("llama-3-8b"), {.pipe = 5, .data = 2})) << "32 layers";
}

TEST(Targets, WhatIsFixedAndHasNoCounterpartIsRefused) {
  const auto message = [](const char* target, std::vector<std::string> settings) {
    return refusal_of([&] { for_target(open_run(std::move(settings)), target_named(target)); });
  };
  EXPECT_EQ(message("torchtitan", {"--parallel.zero=1"}),
            "[--for torchtitan] parallel.zero = 1 has no counterpart in torchtitan 0.2.2; hint: there are 0, 2, 3");
  EXPECT_EQ(
      message("megatron", {"--parallel.schedule=zb-v"}),
      "[--for megatron] parallel.schedule = zb-v has no counterpart in megatron-core 0.16.1; hint: there are 1f1b, "
      "interleaved-1f1b");
  RunConfig graph = open_run({});
  graph.model.graph = "net.json";
  EXPECT_THAT(refusal_of([&] { for_target(graph, target_named("jaxpp")); }), HasSubstr("a graph has no layers"));
  EXPECT_THAT(message("deepspeed", {"--parallel.context=2"}), HasSubstr("parallel.context = 2 has no counterpart"));
  EXPECT_THAT(message("jaxpp", {"--parallel.recompute=selective"}), HasSubstr("there are none, layer"));
  EXPECT_THAT(message("megatron", {"--model.head_parts=4"}), HasSubstr("model.head_parts = 4 has no counterpart"));
  EXPECT_THAT(message("megatron", {"--plan.zero=[2,3]"}), HasSubstr("plan.zero = 2, 3 has no counterpart"));
}

TEST(WholeLayers, OfPieces) {
  EXPECT_THAT(whole_layers({5, 5}, 4), ElementsAre(StageLayers{.embedding = true, .layers = 2},
                                                   StageLayers{.head = true, .first = 2, .layers = 2}));
  EXPECT_THAT(whole_layers({1, 8, 1}, 4),
              ElementsAre(StageLayers{.embedding = true}, StageLayers{.first = 0, .layers = 4},
                          StageLayers{.head = true, .first = 4}));
  EXPECT_THAT(whole_layers({4, 6}, 4), IsEmpty()) << "half a layer";
  EXPECT_THAT(whole_layers({5, 6}, 4), IsEmpty()) << "too many";
  EXPECT_EQ(pieces_of(whole_layers({1, 8, 1}, 4)), (std::vector<int>{1, 8, 1}));
}

TEST(WholeLayers, NearestCuts) {
  EXPECT_THAT(nearest_whole({4, 6}, 4), testing::UnorderedElementsAre(std::vector<int>{5, 5}, std::vector<int>{3, 7}));
  EXPECT_THAT(nearest_whole({5, 5}, 4), ElementsAre(std::vector<int>{5, 5}));
  for (const std::vector<int>& cut : nearest_whole({2, 2, 2, 2, 2}, 4)) {
    EXPECT_FALSE(whole_layers(cut, 4).empty());
    EXPECT_EQ(cut.size(), 5u);
  }
}

}  // namespace
}  // namespace stretto
