#include "stretto/checkpoint/checkpoint.h"

#include <gmock/gmock.h>

#include <fstream>

#include "formats/testing.h"
#include "stretto/checkpoint/writer.h"
#include "support/files.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;
using test::Folder;
using test::message_of;
using test::text_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Array array_of(int n, float first) {
  std::vector<float> v(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) v[std::size_t(i)] = first + float(i);
  return Array::of<float>(v, {n});
}

Snapshot sample(i64 step = 100) {
  Snapshot s{.step = step, .seed = 7, .config = "[train]\nsteps = 3\n", .optimizer = "adamw", .states = {"m"}};
  s.tensors = {{parameter_tensor("x"), array_of(10, float(step))},
               {parameter_tensor("y"), array_of(300, 2)},
               {state_tensor("m", "x"), array_of(10, 3)}};
  s.extras = {{"tokenizer.json", "{}"}};
  return s;
}

std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> all;
  for (const auto& entry : fs::directory_iterator(directory)) all.push_back(entry.path().filename().string());
  std::sort(all.begin(), all.end());
  return all;
}

TEST(Checkpoint, IsReadBackAsItWas) {
  const Folder folder;
  const fs::path path = folder / "deep/er/step-00000100";
  write_checkpoint(path, sample());
  const Checkpoint c(path);
  EXPECT_EQ(c.manifest().step, 100);
  EXPECT_EQ(c.manifest().seed, 7u);
  EXPECT_EQ(c.manifest().config, sample().config);
  EXPECT_THAT(c.parameters(), ElementsAre("x", "y"));
  EXPECT_EQ(c.parameter("y").bytes, array_of(300, 2).bytes);
  EXPECT_EQ(c.state("m", "x").bytes, array_of(10, 3).bytes);
  EXPECT_EQ(c.state("m", "x").sizes, std::vector<i64>{10});
  EXPECT_EQ(text_of(path / "tokenizer.json"), "{}");
  EXPECT_THAT(names_in(folder / "deep/er"), ElementsAre("step-00000100"));  // nothing temporary is left
  EXPECT_THAT(message_of([&] { c.parameter("z"); }), HasSubstr("has no tensor 'parameter/z'; hint: it has"));
}

TEST(Checkpoint, ShardsAreFilledBySize) {
  const Folder folder;
  write_checkpoint(folder / "c", sample(), 1000);  // 40 bytes, 1200 alone, 40
  EXPECT_THAT(names_in(folder / "c"), ElementsAre("manifest.json", "shard-00001.safetensors", "shard-00002.safetensors",
                                                  "shard-00003.safetensors", "tokenizer.json"));
  EXPECT_EQ(Checkpoint(folder / "c").parameter("y").bytes, array_of(300, 2).bytes);
}

TEST(Checkpoint, OneOfTheSameNameIsReplaced) {
  const Folder folder;
  write_checkpoint(folder / "c", sample(1));
  write_checkpoint(folder / "c", sample(2), 1000);
  EXPECT_EQ(Checkpoint(folder / "c").manifest().step, 2);
  EXPECT_THAT(names_in(folder.str()), ElementsAre("c"));
  write_checkpoint(folder / "c", sample(3));
  EXPECT_EQ(names_in(folder / "c").size(), 3u);
}

// Every file cut at several places, every byte of small ones changed, every file gone.
TEST(Checkpoint, DamageIsFoundAndNamed) {
  const Folder folder;
  write_checkpoint(folder / "good", sample(), 1000);
  int changes = 0;
  for (const std::string& name : names_in(folder / "good")) {
    const std::string whole = text_of(folder / ("good/" + name));
    const auto said_with = [&](const std::optional<std::string>& content) {
      fs::remove_all(folder / "bad");
      fs::copy(folder / "good", folder / "bad");
      fs::remove(folder / ("bad/" + name));
      if (content) folder.write("bad/" + name, *content);
      return message_of([&] { Checkpoint{folder / "bad"}; });
    };
    EXPECT_THAT(said_with(std::nullopt), HasSubstr(name));
    if (name == "manifest.json") {
      EXPECT_THAT(said_with(std::nullopt), HasSubstr("has no manifest.json and so is no whole checkpoint"));
    } else {
      EXPECT_THAT(said_with(std::nullopt), HasSubstr("is missing, but the manifest names it"));
      EXPECT_THAT(said_with(whole.substr(0, whole.size() - 1)), HasSubstr("hint: the file is cut off"));
      EXPECT_THAT(said_with(whole + "x"), HasSubstr("something is appended"));
    }
    for (std::size_t n : {std::size_t(0), std::size_t(1), whole.size() / 2})
      EXPECT_NE(said_with(whole.substr(0, n)), "") << name << " cut at " << n;
    for (std::size_t i = 0; i < whole.size(); i += 1 + whole.size() / 40) {
      std::string changed = whole;
      changed[i] = char(changed[i] ^ 4);
      EXPECT_NE(said_with(changed), "") << name << " byte " << i;
      ++changes;
    }
    if (name == "shard-00002.safetensors") {
      std::string changed = whole;
      changed.back() = char(changed.back() ^ 1);
      EXPECT_THAT(said_with(changed), HasSubstr("tensor 'parameter/y' has changed; hint: the file is damaged"));
    }
  }
  EXPECT_GT(changes, 100);
}

TEST(Checkpoint, TheNewestWholeOneIsFound) {
  const Folder folder;
  EXPECT_FALSE(newest_checkpoint(folder / "none").checkpoint);
  for (const i64 step : {5, 50, 500}) write_checkpoint(folder / checkpoint_name(step), sample(step));
  fs::create_directory(folder / "step-99999999");  // interrupted
  fs::create_directory(folder / "step-7");         // not a name we write
  fs::create_directory(folder / ".step-00000600-1.tmp");
  folder.write("step-00000500/shard-00001.safetensors", "damaged");
  const Newest n = newest_checkpoint(folder.str());
  ASSERT_TRUE(n.checkpoint);
  EXPECT_EQ(n.checkpoint->manifest().step, 50);
  EXPECT_THAT(n.damaged, ElementsAre(HasSubstr("step-99999999"), HasSubstr("step-00000500/shard-00001.safetensors")));
}

TEST(Checkpoint, OldOnesArePruned) {
  const Folder folder;
  CheckpointWriter writer(folder.str(), 2);
  for (const i64 step : {10, 20, 30, 40}) {
    fs::create_directory(folder / ".step-00000033-1.tmp");  // left by a run that was killed
    writer.save(sample(step));
    const auto saved = writer.wait();
    ASSERT_TRUE(saved);
    EXPECT_EQ(saved->error, "");
    EXPECT_EQ(saved->path, folder / checkpoint_name(step));
  }
  EXPECT_THAT(names_in(folder.str()), ElementsAre("step-00000030", "step-00000040"));
  // A run that went on from step 30 leaves nothing of the other one's future.
  writer.save(sample(35));
  EXPECT_EQ(writer.wait()->error, "");
  EXPECT_THAT(names_in(folder.str()), ElementsAre("step-00000030", "step-00000035"));
  EXPECT_FALSE(writer.wait());
  EXPECT_FALSE(writer.poll());
}

TEST(Checkpoint, AFailureIsReportedAndHarmsNothing) {
  const Folder folder;
  folder.write("file", "");
  CheckpointWriter writer(folder / "file", 2);
  writer.save(sample());
  const auto saved = writer.wait();
  ASSERT_TRUE(saved);
  EXPECT_THAT(saved->error, HasSubstr("Not a directory"));
  EXPECT_THAT(names_in(folder.str()), ElementsAre("file"));
}

}  // namespace
}  // namespace stretto
