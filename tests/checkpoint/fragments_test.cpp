// Checkpoints whose tensors lie in fragments, as several processes write them.
#include <gmock/gmock.h>
#include <rapidcheck.h>

#include <numeric>
#include <random>

#include "stretto/checkpoint/checkpoint.h"
#include "stretto/train/snapshot.h"
#include "support/files.h"
#include "support/message.h"
#include "support/small_models.h"

namespace stretto {
namespace {

using test::Folder;
using testing::HasSubstr;

// Cut at random along every dim, and the boxes into ranges.
std::vector<Fragment> random_fragments(std::mt19937& random, const std::vector<i64>& shape) {
  std::vector<Fragment> all{{.shape = shape, .offsets = std::vector<i64>(shape.size(), 0), .sizes = shape}};
  for (std::size_t d = 0; d < shape.size(); ++d)
    for (std::size_t i = 0, n = all.size(); i < n; ++i)
      if (const i64 size = all[i].sizes[d]; size > 1 && random() % 3 > 0) {
        const i64 cut = 1 + i64(random() % u64(size - 1));
        Fragment rest = all[i];
        all[i].sizes[d] = cut;
        rest.offsets[d] += cut;
        rest.sizes[d] -= cut;
        all.push_back(rest);
      }
  std::vector<Fragment> fragments;
  for (Fragment p : all)
    for (i64 first = 0, box = elements_of(p.sizes); first < box; first += p.count) {
      p.first = first;
      p.count = random() % 2 ? box - first : 1 + i64(random() % u64(box - first));
      fragments.push_back(p);
    }
  std::shuffle(fragments.begin(), fragments.end(), random);
  return fragments;
}

// Whether an element of the tensor is in the box.
bool within(const Fragment& p, i64 element) {
  for (std::size_t d = p.shape.size(); d-- > 0; element /= p.shape[d])
    if (const i64 i = element % p.shape[d]; i < p.offsets[d] || i >= p.offsets[d] + p.sizes[d]) return false;
  return true;
}

TEST(Fragments, HoldEveryElementOnce) {
  rc::check([](unsigned seed) {
    std::mt19937 random(seed);
    std::vector<i64> shape(random() % 5);
    for (i64& s : shape) s = 1 + i64(random() % 6);
    std::vector<Fragment> fragments = random_fragments(random, shape);
    RC_ASSERT(wrong_with(std::span(fragments)).empty());
    std::vector<int> whole(std::size_t(elements_of(shape)), 0);
    int next = 1;
    for (const Fragment& p : fragments) {
      RC_ASSERT(wrong_with(p).empty());
      std::vector<int> values(std::size_t(p.count));
      std::iota(values.begin(), values.end(), next);
      put_fragment(p, sizeof(int), std::as_bytes(std::span(values)), std::as_writable_bytes(std::span(whole)));
      i64 in_box = 0;
      for (std::size_t at = 0; at < whole.size(); ++at) {
        if (!within(p, i64(at))) continue;
        const i64 k = in_box++ - p.first;
        if (k >= 0 && k < p.count) RC_ASSERT(whole[at] == next + int(k));
      }
      next += int(p.count);
    }
    std::sort(whole.begin(), whole.end());
    for (int i = 0; i < int(whole.size()); ++i) RC_ASSERT(whole[std::size_t(i)] == i + 1);

    // One is gone, is there twice, or has moved.
    const std::size_t i = random() % fragments.size();
    std::vector<Fragment> fewer = fragments, twice = fragments;
    fewer.erase(fewer.begin() + std::ptrdiff_t(i));
    twice.push_back(fragments[i]);
    if (!fewer.empty()) RC_ASSERT(!wrong_with(std::span(fewer)).empty());
    RC_ASSERT(!wrong_with(std::span(twice)).empty());
    for (std::size_t d = 0; d < shape.size(); ++d) {
      std::vector<Fragment> moved = fragments;
      ++moved[i].offsets[d];
      RC_ASSERT(!wrong_with(moved[i]).empty() || !wrong_with(std::span(moved)).empty());
    }
  });
}

Manifest in_fragments() {
  const auto half = [](i64 offset) {
    return Fragment{.shape = {4, 6}, .offsets = {0, offset}, .sizes = {4, 3}, .first = 0, .count = 12};
  };
  return {.shards = {{"a", 48, 1, {{"parameter/x", 2, half(0)}, {"parameter/y", 3}}},
                     {"b", 48, 1, {{"parameter/x", 2, half(3)}}}}};
}

TEST(Fragments, AreInTheManifest) {
  const Manifest m = in_fragments();
  EXPECT_EQ(parse_manifest(manifest_text(m), "m"), m);
  EXPECT_THAT(manifest_text(m), HasSubstr("\"version\": 2"));
  EXPECT_TRUE(incomplete(m).empty());
  Manifest whole = m;
  whole.shards.pop_back();
  EXPECT_THAT(incomplete(whole), testing::ElementsAre("'parameter/x': its fragments hold 12 of its 24 elements"));
  whole.shards[0].tensors[0].fragment.reset();
  EXPECT_THAT(manifest_text(whole), HasSubstr("\"version\": 1"));
  Manifest both = m;
  both.shards[0].tensors[0].fragment.reset();
  EXPECT_THAT(incomplete(both), testing::ElementsAre(HasSubstr("are there beside the whole")));
}

TEST(Fragments, ThatCannotBeAreRefused) {
  const auto said_with = [](auto change) {
    Manifest m = in_fragments();
    change(*m.shards[1].tensors[0].fragment);
    return refusal_of([&] { parse_manifest(manifest_text(m), "m"); });
  };
  EXPECT_THAT(said_with([](Fragment& p) { p.offsets[1] = 4; }), HasSubstr("does not lie within the tensor"));
  EXPECT_THAT(said_with([](Fragment& p) { p.offsets[1] = -1; }), HasSubstr("does not lie within the tensor"));
  EXPECT_THAT(said_with([](Fragment& p) { p.sizes[0] = 0; }), HasSubstr("does not lie within the tensor"));
  EXPECT_THAT(said_with([](Fragment& p) { p.first = 1; }), HasSubstr("does not lie within its box"));
  EXPECT_THAT(said_with([](Fragment& p) { p.count = 0; }), HasSubstr("does not lie within its box"));
  EXPECT_THAT(said_with([](Fragment& p) { p.sizes.pop_back(); }), HasSubstr("not as many offsets"));
  EXPECT_THAT(said_with([](Fragment& p) {
                p = {.shape = {i64(1) << 40, i64(1) << 40}, .offsets = {0, 0}, .sizes = {1, 1}, .count = 1};
              }),
              HasSubstr("too large"));
}

struct Placed {
  std::string name;
  Parallel parallel;
  double most = 1;  // of all bytes, for one rank
};

std::vector<Placed> placements() {
  return {{"pipe=2", {.mesh = {{"pipe", 2}}}, 0.7},
          {"data=4", {.names = {.data = 4}}, 0.3},
          {"tensor=2", {.names = {.tensor = 2}}, 0.55},
          {"data=2 zero=1", {.names = {.data = 2, .zero = 1}}, 0.55},
          {"data=2 tensor=2 zero=3", {.names = {.data = 2, .tensor = 2, .zero = 3}}, 0.3},
          {"pipe=2 data=2 zero=2", {.mesh = {{"pipe", 2}}, .names = {.data = 2, .zero = 2}}, 0.4}};
}

Trainer trainer_of(const Parallel& parallel) {
  ModelConfig c = tiny("gpt2", 2);
  c.pad_vocab = 16;
  return Trainer(compile(make_model(c, 16, 4), adamw({.lr = 1e-2}), {.microbatches = 4, .seed = 3}, parallel));
}

// As if every rank were a process.
void write_shares(const Trainer& t, const std::filesystem::path& path, double most) {
  UnfinishedCheckpoint unfinished(path);
  std::vector<ManifestFile> shards;
  u64 all = 0;
  std::vector<u64> bytes;
  for (int rank = 0; rank < t.engine().ranks(); ++rank) {
    const Snapshot s = share_of(t, rank, "config");
    bytes.push_back(s.bytes());
    all += s.bytes();
    for (ManifestFile& f : write_shards(unfinished.directory(), s, "rank-" + std::to_string(rank), 50000))
      shards.push_back(std::move(f));
  }
  for (const u64 b : bytes) EXPECT_LE(double(b), most * double(all));
  EXPECT_EQ(all, snapshot_of(t, "").bytes());
  unfinished.publish(share_of(t, 0, "config"), std::move(shards));
}

TEST(Fragments, OfAllRanksAreTheWholeUnderEveryLayout) {
  const Folder folder;
  for (const Placed& l : placements()) {
    SCOPED_TRACE(l.name);
    Trainer t = trainer_of(l.parallel);
    const Batch batch = random_batch(t.compiled(), 50, 1);
    for (int i = 0; i < 2; ++i) t.step(batch);
    write_shares(t, folder / "fragments", l.most);
    write_checkpoint(folder / "whole", snapshot_of(t, "config"));
    const Checkpoint fragments(folder / "fragments"), whole(folder / "whole");
    EXPECT_EQ(fragments.manifest().step, 2);
    EXPECT_EQ(fragments.parameters(), whole.parameters());
    EXPECT_EQ(fragments.tensors().size(), whole.tensors().size());
    for (const std::string& name : whole.parameters()) {
      EXPECT_EQ(fragments.parameter(name).sizes, whole.parameter(name).sizes) << name;
      EXPECT_EQ(fragments.parameter(name).bytes, whole.parameter(name).bytes) << name;
      for (const char* state : {"m", "v"})
        EXPECT_EQ(fragments.state(state, name).bytes, whole.state(state, name).bytes) << state << " of " << name;
    }
    Trainer other = trainer_of({});
    restore(other, fragments);
    EXPECT_EQ(other.parameters_hash(), t.parameters_hash());
    write_checkpoint(folder / "again", snapshot_of(other, "config"));
    EXPECT_EQ(test::text_of(folder / "again/manifest.json"), test::text_of(folder / "whole/manifest.json"));
  }
}

TEST(Fragments, OfWhichOneIsMissingMakeNoCheckpoint) {
  const Folder folder;
  const Trainer t = trainer_of({.names = {.tensor = 2}});
  {
    UnfinishedCheckpoint unfinished(folder / "step-00000000");
    const Snapshot s = share_of(t, 0, "");
    const std::vector<ManifestFile> shards = write_shards(unfinished.directory(), s);
    EXPECT_THAT(refusal_of([&] { unfinished.publish(s, shards); }), HasSubstr("its fragments hold"));
    EXPECT_TRUE(checkpoints_in(folder.str()).empty());
    EXPECT_TRUE(std::filesystem::exists(unfinished.directory()));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.str()));
}

TEST(Fragments, DamageIsFoundAndNamed) {
  const Folder folder;
  const Trainer t = trainer_of({.names = {.tensor = 2}});
  write_shares(t, folder / "c", 1);
  const std::string whole = test::text_of(folder / "c/rank-1-00001.safetensors");
  std::string changed = whole;
  changed.back() = char(changed.back() ^ 1);
  folder.write("c/rank-1-00001.safetensors", changed);
  EXPECT_THAT(refusal_of([&] { Checkpoint{folder / "c"}; }),
              testing::AllOf(HasSubstr("rank-1-00001.safetensors"), HasSubstr("has changed")));
  std::filesystem::remove(folder / "c/rank-1-00001.safetensors");
  EXPECT_THAT(refusal_of([&] { Checkpoint{folder / "c"}; }), HasSubstr("is missing, but the manifest names it"));
}

}  // namespace
}  // namespace stretto
