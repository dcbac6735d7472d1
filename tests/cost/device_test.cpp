#include "stretto/cost/device.h"

#include <gmock/gmock.h>

#include "stretto/cost/cluster_file.h"
#include "stretto/cost/inner/shipped.h"
#include "support/files.h"
#include "support/message.h"

namespace stretto {
namespace {

using test::Folder;
using testing::HasSubstr;

TEST(Devices, EveryFileIsWholeAndWithinReason) {
  EXPECT_THAT(names_of(shipped_devices()), testing::ElementsAre("a100-40g", "a100-80g", "b200", "gb200", "gb300",
                                                                "h100-500w", "h100-sxm", "h200-sxm", "mi300x"));
  for (const ShippedFile& file : shipped_devices()) {
    SCOPED_TRACE(file.name);
    const DeviceModel d = read_device(std::string(file.name));
    EXPECT_GT(d.bf16, d.f32);
    EXPECT_GT(d.memory, 10e9);
    EXPECT_LT(d.memory, 1e12);
    EXPECT_GT(d.memory_bandwidth, 1e12);
    for (double share : {d.rates.product, d.rates.attention, d.rates.attention_backward, d.rates.elements,
                         d.inside.share, d.between.share}) {
      EXPECT_GT(share, 0.1);
      EXPECT_LE(share, 1);
    }
    EXPECT_GT(d.inside.bandwidth, d.between.bandwidth);
    EXPECT_GE(d.domain, 8);
  }
}

// Whoever changes a number says where it is from.
TEST(Devices, EveryNumberHasASource) {
  for (const ShippedFile& file : shipped_devices()) {
    std::string section;
    for (std::size_t at = 0; at < file.text.size();) {
      const std::size_t end = std::min(file.text.find('\n', at), file.text.size());
      const std::string_view line = file.text.substr(at, end - at);
      at = end + 1;
      if (line.starts_with('[')) section = line;
      if (line.find('=') == line.npos || line.starts_with('#')) continue;
      EXPECT_TRUE(line.find('#') != line.npos || section.find('#') != section.npos) << file.name << ": " << line;
    }
  }
}

TEST(Devices, AnUnknownOneIsAnsweredWithTheNearest) {
  EXPECT_THAT(refusal_of([] { read_device("h100-sxn"); }), HasSubstr("did you mean 'h100-sxm'?"));
  EXPECT_THAT(refusal_of([] { read_device("h100"); }), HasSubstr("did you mean 'h100-500w' or 'h100-sxm'?"));
  EXPECT_THAT(refusal_of([] { read_device("tpu"); }), HasSubstr("there are a100-40g, a100-80g"));
}

TEST(Devices, AFileOfOnesOwnReadsBack) {
  const Folder folder;
  DeviceModel d{
      .name = (folder / "mine.toml").string(), .f32 = 1e12, .bf16 = 2e12, .memory = 8e9, .memory_bandwidth = 1e11};
  d.rates = {.product = 0.7, .small = 30, .attention = 0.3, .attention_backward = 0.9, .elements = 0.8, .kernel = 1e-6};
  d.attention = {{"mine", 0.25}};
  d.inside = {1e9, 1e-6, 0.5}, d.between = {1e8, 1e-5, 0.5};
  d.linked = true, d.domain = 4;
  folder.write("mine.toml", device_toml(d, {"measured"}));
  EXPECT_EQ(read_device(d.name), d);
}

TEST(Devices, WhatIsWrongInAFileHasItsPlace) {
  const Folder folder;
  const std::string file = (folder / "bad.toml").string();
  folder.write("bad.toml", "memory_bandwidth = 1e12\n[peak]\nf32 = -1\n[rates]\nprodukt = 0.5\n");
  const std::string message = refusal_of([&] { read_device(file); });
  EXPECT_THAT(message, HasSubstr("bad.toml:3"));
  EXPECT_THAT(message, HasSubstr("did you mean 'rates.product'?"));
}

TEST(Devices, TheStackChoosesTheKernelOfAttention) {
  const DeviceModel d = read_device("h100-sxm");
  Stack stack;
  EXPECT_EQ(cluster_of(d, stack).machine.rates->attention, d.rates.attention);
  stack.kernel = "triton";
  EXPECT_EQ(cluster_of(d, stack).machine.rates->attention, d.attention.at("triton"));
  stack.kernel = "unheard of";
  EXPECT_EQ(cluster_of(d, stack).machine.rates->attention, d.rates.attention);
  EXPECT_EQ(cluster_of(d, stack).machine.rates->scores_forward, 0);
  stack.kept = true;
  EXPECT_EQ(cluster_of(d, stack).machine.rates->scores_forward, stack.scores_forward);
  stack.factors = {{"h100-sxm", 1.5}, {"b200", 3}};
  stack.factor = 2;
  EXPECT_EQ(cluster_of(d, stack).stack.factor, 3);
  EXPECT_GT(cluster_of(d, stack, ProductType::fp8).machine.rates->narrow, 1);
}

TEST(Stacks, EveryFileReads) {
  for (const ShippedFile& file : shipped_stacks()) EXPECT_EQ(read_stack(std::string(file.name)).name, file.name);
  EXPECT_EQ(read_stack("stretto"), Stack{}) << "the default says nothing";
  EXPECT_THAT(refusal_of([] { read_stack("megatron-202"); }), HasSubstr("did you mean "));
}

TEST(Stacks, MemoryHasASectionOfItsOwn) {
  const Folder folder;
  const std::string file = (folder / "mine.toml").string();
  folder.write("mine.toml", "[memory]\ncopies = false\ncontext = true\nlogits = 8\nreserved = 1.1\n");
  EXPECT_EQ(read_stack(file).memory, (Stack::Memory{.copies = false, .context = true, .logits = 8, .reserved = 1.1}));
  folder.write("mine.toml", "[memory]\nreserved = 0.5\nlogit = 1\n");
  const std::string message = refusal_of([&] { read_stack(file); });
  EXPECT_THAT(message, HasSubstr("mine.toml:2"));
  EXPECT_THAT(message, HasSubstr("did you mean 'memory.logits'?"));
}

TEST(ClusterFile, NamesADeviceAndItsSoftware) {
  const Folder folder;
  const std::string file = (folder / "c.toml").string();
  folder.write("c.toml",
               "device = \"a100-80g\"\nstack = \"megatron-2021\"\nranks = 64\nnic = 12.5e9\nfactor = 2\n"
               "[rates]\nproduct = 0.5\n");
  const ClusterFile c = read_cluster(file);
  EXPECT_EQ(c.cluster.machine.flops_bf16, 312e12);
  EXPECT_EQ(c.cluster.machine.rates->product, 0.5);
  EXPECT_GT(c.cluster.machine.rates->scores_forward, 0);
  EXPECT_EQ(c.cluster.ranks_per_node, 8);
  EXPECT_EQ(c.memory, 80e9);
  EXPECT_EQ(c.ranks, 64);
  EXPECT_DOUBLE_EQ(c.cluster.between.bandwidth, 12.5e9 * c.device->between.share);
  const double own = read_cluster(file, {"factor=1"}).cluster.stack.factor;
  EXPECT_DOUBLE_EQ(c.cluster.stack.factor, 2 * own);
  folder.write("c.toml", cluster_toml(c));
  EXPECT_EQ(read_cluster(file).cluster.inside, c.cluster.inside);
}

TEST(ClusterFile, NamesAreBlamedOnTheirKeys) {
  const Folder folder;
  const std::string file = (folder / "c.toml").string();
  folder.write("c.toml", "device = \"a100-80h\"\nstack = \"nemoo\"\n");
  const std::string message = refusal_of([&] { read_cluster(file); });
  EXPECT_THAT(message, HasSubstr("c.toml:1"));
  EXPECT_THAT(message, HasSubstr("did you mean 'a100-80g'?"));
  EXPECT_THAT(message, HasSubstr("did you mean 'nemo'?"));
  folder.write("c.toml", "stack = \"nemo\"\n");
  EXPECT_THAT(refusal_of([&] { read_cluster(file); }), HasSubstr("give device ="));
}

}  // namespace
}  // namespace stretto
