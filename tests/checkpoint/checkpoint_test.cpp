#include "stretto/checkpoint/checkpoint.h"

#include <gmock/gmock.h>

#include <fstream>

#include "stretto/checkpoint/writer.h"
#include "support/files.h"
#include "support/message.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;
using test::Folder;
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

// A run that was begun from another's checkpoint, or a checkpoint that was moved to another disk.
TEST(Checkpoint, PruningRemovesLinksAndNotWhatTheyLeadTo) {
  const Folder folder;
  write_checkpoint(folder / "other/step-00000010", sample(10));
  fs::create_directory(folder / "any");
  folder.write("any/manifest.json", "mine");
  fs::create_directory(folder / "run");
  fs::create_directory_symlink(folder / "other/step-00000010", folder / "run/step-00000010");
  fs::create_directory_symlink(folder / "any", folder / "run/step-00000005");
  write_checkpoint(folder / "run/step-00000020", sample(20));
  prune_checkpoints(folder / "run", 1, 20);
  EXPECT_THAT(names_in(folder / "run"), ElementsAre("step-00000020"));
  EXPECT_EQ(Checkpoint(folder / "other/step-00000010").manifest().step, 10);
  EXPECT_EQ(text_of(folder / "any/manifest.json"), "mine");
  // The same when one takes the place of a link.
  fs::create_directory_symlink(folder / "other/step-00000010", folder / "run/step-00000030");
  write_checkpoint(folder / "run/step-00000030", sample(30));
  EXPECT_EQ(Checkpoint(folder / "run/step-00000030").manifest().step, 30);
  EXPECT_EQ(Checkpoint(folder / "other/step-00000010").manifest().step, 10);
}

TEST(Checkpoint, ALinkToItselfIsPassedOver) {
  const Folder folder;
  write_checkpoint(folder / "step-00000010", sample(10));
  fs::create_symlink("step-00000020", folder / "step-00000020");
  const Newest newest = newest_checkpoint(folder.str());
  ASSERT_TRUE(newest.checkpoint);
  EXPECT_EQ(newest.checkpoint->manifest().step, 10);
  EXPECT_THAT(newest.damaged, ElementsAre(HasSubstr("step-00000020] cannot be looked at: Too many levels")));
}

TEST(Checkpoint, RoomIsMadeOfTheOldestAndNeverOfTheNewestThatIsWhole) {
  const Folder folder;
  for (const i64 step : {10, 20, 30}) write_checkpoint(folder / checkpoint_name(step), sample(step));
  fs::create_directory(folder / ".step-00000040-1.tmp");
  EXPECT_TRUE(make_room(folder.str(), 4));  // what a killed run has left
  EXPECT_FALSE(make_room(folder.str(), 4));
  EXPECT_TRUE(make_room(folder.str(), 3));
  EXPECT_FALSE(make_room(folder.str(), 3));
  EXPECT_THAT(names_in(folder.str()), ElementsAre("step-00000020", "step-00000030"));
  fs::resize_file(folder / "step-00000030/shard-00001.safetensors", 30);
  EXPECT_TRUE(make_room(folder.str(), 2));
  EXPECT_THAT(names_in(folder.str()), ElementsAre("step-00000020"));
  EXPECT_FALSE(make_room(folder.str(), 1));
  fs::resize_file(folder / "step-00000020/shard-00001.safetensors", 30);
  write_checkpoint(folder / checkpoint_name(5), sample(5));
  fs::resize_file(folder / "step-00000005/shard-00001.safetensors", 30);
  EXPECT_FALSE(make_room(folder.str(), 2));  // nothing is whole: nothing is touched
}

// An export puts them beside the weights.
TEST(Checkpoint, CarriesOnlyFilesOfKnownNames) {
  const Folder folder;
  Snapshot s = sample();
  s.extras = {{"config.json", "{}"}};
  EXPECT_THAT(refusal_of([&] { write_checkpoint(folder / "c", s); }), HasSubstr("cannot carry 'config.json' along"));
  for (const char* name : {"config.json", "model.safetensors", "model.safetensors.index.json"}) {
    Manifest m{.step = 1};
    m.extras = {{.name = name, .bytes = 2, .hash = 5}};
    EXPECT_THAT(refusal_of([&] { parse_manifest(manifest_text(m), "manifest.json"); }),
                HasSubstr(std::string("is '") + name + "', and must be one of tokenizer.json, "));
  }
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
  EXPECT_THAT(refusal_of([&] { c.parameter("z"); }), HasSubstr("has no tensor 'parameter/z'; hint: it has"));
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
      return refusal_of([&] { Checkpoint{folder / "bad"}; });
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
      EXPECT_NE(said_with(whole.substr(0, n)), "no error") << name << " cut at " << n;
    for (std::size_t i = 0; i < whole.size(); i += 1 + whole.size() / 40) {
      std::string changed = whole;
      changed[i] = char(changed[i] ^ 4);
      EXPECT_NE(said_with(changed), "no error") << name << " byte " << i;
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
