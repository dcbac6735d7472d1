#include "stretto/config/describe.h"

#include <gmock/gmock.h>

#include <functional>
#include <map>
#include <set>

#include "stretto/base/error.h"
#include "stretto/config/run.h"
#include "support/files.h"

namespace stretto {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::set<std::string> names() {
  std::set<std::string> all;
  for (const KeyInfo& k : all_keys()) all.insert(k.name);
  return all;
}

TEST(Keys, AreDescribed) {
  for (const KeyInfo& k : all_keys()) {
    EXPECT_FALSE(k.meaning.empty()) << k.name;
    EXPECT_FALSE(k.otherwise.empty()) << k.name;
    EXPECT_FALSE(k.takes.empty()) << k.name;
    EXPECT_EQ(k.meaning.find('\n'), std::string::npos) << k.name;
  }
  EXPECT_EQ(names().size(), all_keys().size()) << "a key stands there twice";
}

// What `show config` writes.
TEST(Keys, AreAllThatAResolvedRunHas) {
  std::set<std::string> missing;
  const std::function<void(const std::string&, const Field&)> visit = [&](const std::string& name, const Field& field) {
    if (!field.table()) missing.insert(name);
    if (field.table())
      for (const Member& m : *field.table()) visit(name.empty() ? m.key : name + "." + m.key, m.value);
  };
  for (const char* toml :
       {"", "[optimizer]\nname = \"sgd\"\nschedule = \"wsd\"", "[parallel]\nlink = {latency = 1}",
        "[model]\nfamily = \"llama\"\nrope_scaling = {kind = \"llama3\", factor = 8}",
        "[data]\nmixture = [{path = \"a\"}]", "[model]\nfrom = \"" STRETTO_TEST_DATA "/hf/gpt2/model\""})
    visit("", read_toml(resolved_toml(parse_run(toml, "run.toml")), "config.toml"));
  EXPECT_GT(missing.size(), 80u);
  for (const std::string& name : names()) missing.erase(name);
  EXPECT_THAT(missing, IsEmpty());
}

bool is_a_value(const std::string& text) {
  try {
    read_toml("x = " + text, "default");
  } catch (const Error&) {
    return false;
  }
  return true;
}

// Unless they are said in words.
TEST(Keys, DefaultsAreThoseOfARun) {
  const Field root = read_toml(resolved_toml(read_run("")), "config.toml");
  int compared = 0;
  for (const KeyInfo& k : all_keys()) {
    const std::size_t dot = k.name.find('.');
    const Field* value = root.find(k.name.substr(0, dot))->find(k.name.substr(dot + 1));
    if (!value || !is_a_value(k.otherwise)) continue;
    EXPECT_EQ(k.otherwise, value->str()) << k.name;
    ++compared;
  }
  EXPECT_GT(compared, 50);
}

TEST(Keys, ARangeIsInItsDescription) {
  std::map<std::string, std::string> takes;
  for (const KeyInfo& k : all_keys()) takes[k.name] = k.takes;
  EXPECT_EQ(takes["train.batch"], "whole number from 1 to 16777216");
  EXPECT_EQ(takes["train.dtype"], "f32, f64, bf16, fp8, fp4");
  EXPECT_EQ(takes["model.dropout"], "number from 0 up to, not including, 1");
  EXPECT_EQ(takes["optimizer.lr"], "number above 0 and at most 1e+30");
  EXPECT_THAT(takes["parallel.stages"], HasSubstr("auto, or a list of whole numbers from 1 to"));
  EXPECT_THAT(takes["parallel.schedule"], HasSubstr("zb-v"));
  EXPECT_THAT(keys_text(), HasSubstr("--train.leaf = 1"));
}

TEST(Keys, OtherToolsNamesLeadToOnesThatExist) {
  const std::set<std::string> known = names();
  std::set<std::string> theirs;
  for (const Renamed& r : synonyms()) {
    EXPECT_THAT(known, Contains(std::string(r.ours))) << r.theirs;
    EXPECT_FALSE(known.contains(std::string(r.theirs))) << r.theirs;
    EXPECT_TRUE(theirs.insert(std::string(r.theirs)).second) << r.theirs << " stands there twice";
  }
  EXPECT_THAT(keys_named("pipe"), ElementsAre("parallel.pipe"));
  EXPECT_THAT(keys_named("schedule"), ElementsAre("optimizer.schedule", "parallel.schedule"));
  EXPECT_THAT(keys_named("global-batch-size"), ElementsAre("train.batch"));
  EXPECT_THAT(keys_named("nothing"), IsEmpty());
}

std::string refused(const std::string& toml) {
  try {
    parse_run(toml, "run.toml");
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(Keys, OtherToolsNamesAreAnswered) {
  EXPECT_EQ(refused("[train]\nlearning_rate = 1"),
            "[run.toml:2] key 'train.learning_rate' is unknown; hint: it is 'optimizer.lr' here");
  EXPECT_EQ(refused("batch_size = 1"), "[run.toml:1] key 'batch_size' is unknown; hint: it is 'train.batch' here");
  EXPECT_EQ(refused("[model]\nhidden_size = 1"),
            "[run.toml:2] key 'model.hidden_size' is unknown; hint: it is 'model.width' here");
  EXPECT_EQ(refused("[model]\nseq_len = 1"),
            "[run.toml:2] key 'model.seq_len' is unknown; hint: it is 'model.context' here");
  EXPECT_EQ(refused("[optimizer]\nmin_lr = 1"),
            "[run.toml:2] key 'optimizer.min_lr' is unknown; hint: it is 'optimizer.floor' here, as a part of lr");
}

// Kernels of earlier versions could be told when to pause. Runs that were made with its default go on.
TEST(Keys, ThatAreGoneAreReadOverWhereTheyAskForNothing) {
  for (const std::string section : {"parallel", "train"}) {
    EXPECT_THAT(refused("[" + section + "]\npoll = 2.0"), HasSubstr("key '" + section + ".poll' is unknown"));
    EXPECT_EQ(refused("[" + section + "]\npoll = 0.0"), "");
  }
}

}  // namespace
}  // namespace stretto
