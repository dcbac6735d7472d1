// What goes wrong with CUDA devices ends in one clear message.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "stretto/base/hash.h"
#include "stretto/kernels/cuda/compile.h"
#include "stretto/kernels/cuda/cuda_device.h"
#include "stretto/kernels/cuda/kernel.h"
#include "stretto/ops/embedding.h"
#include "support/cuda/make_believe.h"
#include "support/evaluate.h"
#include "support/files.h"

namespace stretto {
namespace {
using testing::AllOf;
using testing::HasSubstr;

template <class F>
std::string message_of(const F& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing was refused";
}

TEST(CudaLibraries, WhatIsMissingIsSaid) {
  CudaDriver driver;
  CudaCompiler compiler;
  EXPECT_THAT(message_of([&] { find_library(driver, {"libno_such_driver.so.1"}, {"/no/such/folder"}); }),
              AllOf(HasSubstr("[cuda] there is no libno_such_driver.so.1"), HasSubstr("in /no/such/folder"),
                    HasSubstr("hint: install NVIDIA's driver")));
  EXPECT_THAT(message_of([&] { find_library(compiler, {"libc.so.6"}, {}); }),
              AllOf(HasSubstr("libc.so.6 has no function nvrtcVersion"), HasSubstr("older than CUDA 12")));
}

class CudaDevices : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::make_believe_cuda()) GTEST_SKIP() << "there is no NVRTC on this machine";
  }
  void TearDown() override { test::make_believe() = {}; }
  const CudaApi& api() { return *test::make_believe_cuda(); }
};

TEST_F(CudaDevices, MoreRanksThanDevicesAreRefused) {
  test::make_believe().devices = 2;
  EXPECT_NO_THROW(CudaDevice(api(), 1));
  EXPECT_THAT(message_of([&] { CudaDevice(api(), 2); }),
              AllOf(HasSubstr("[parallel.device] rank 2 needs a CUDA device of its own, and there are 2"),
                    HasSubstr("CUDA_VISIBLE_DEVICES")));
}

TEST_F(CudaDevices, OldChipsAreRefused) {
  test::make_believe().sm = 75;
  EXPECT_THAT(message_of([&] { CudaDevice(api(), 0); }),
              HasSubstr("CUDA device 0 is a make-believe (sm_75), and kernels are for sm_80 and later"));
}

TEST_F(CudaDevices, TooLittleMemoryIsSaidWithWhatIsThere) {
  CudaDevice device(api(), 0);
  test::make_believe().memory = std::size_t(64) << 20;
  EXPECT_THAT(
      message_of([&] { device.allocate(std::size_t(1) << 30); }),
      AllOf(HasSubstr("[memory] CUDA device 0 (make-believe) has"),
            HasSubstr("free of 64.0 MiB, and 1.00 GiB more are needed"), HasSubstr("hint: use a smaller batch")));
}

TEST_F(CudaDevices, TextThatDoesNotCompileIsKept) {
  const std::string text = "extern \"C\" __global__ void kernel() { no_such_function(); }";
  const std::string message = message_of([&] { compiled(api(), 80, text); });
  ASSERT_THAT(message, AllOf(HasSubstr("[cuda] a kernel does not compile"), HasSubstr("no_such_function")));
  const std::string path = message.substr(message.rfind("its text is in ") + 15);
  EXPECT_EQ(test::text_of(path), text);
  std::filesystem::remove(path);
}

TEST_F(CudaDevices, ImagesAreKeptAndCheckedWhenTheyAreRead) {
  const test::Folder folder;
  CudaApi own = api();
  own.cache = folder.str() + "/kernels";
  const std::string text = "extern \"C\" __global__ void kernel(int* x) { *x = 41; }", image = compiled(own, 80, text);
  std::vector<std::filesystem::path> kept;
  for (const auto& entry : std::filesystem::directory_iterator(own.cache)) kept.push_back(entry.path());
  ASSERT_EQ(kept.size(), 1u);
  const std::string file = test::text_of(kept[0]);
  EXPECT_THAT(file, testing::EndsWith(image));
  EXPECT_EQ(file.size(), image.size() + 8);
  // What another run finds there: its hash and other words, which are taken; or half of a file, which is not.
  const auto found = [&](const std::string& name, const std::string& content) {
    own.cache = folder.str() + "/" + name;
    folder.write(name + "/" + kept[0].filename().string(), content);
    return compiled(own, 80, text);
  };
  const std::string other = "other words";
  const u64 hash = hash_bytes(other.data(), other.size());
  EXPECT_EQ(found("own", std::string(reinterpret_cast<const char*>(&hash), 8) + other), other);
  EXPECT_EQ(found("cut", file.substr(0, file.size() / 2)), image);
  EXPECT_EQ(test::text_of(own.cache + "/" + kept[0].filename().string()), file);
  EXPECT_EQ(found("empty", ""), image);
}

// One call of an op, prepared and launched by hand.
struct Embedded {
  Examples e;
  Tensor table = e.real({{"vocab", 4}, {"model", 2}}), ids = e.ids({{"seq", 3}}, 4),
         y = embedding(table, ids, {"vocab", 4});
  const Graph& graph = e.builder.graph;
  Call call = test::contiguous_call(graph, graph.node(y.value.node));
};

TEST_F(CudaDevices, AnIdOutOfRangeIsToldOnce) {
  Embedded x;
  CudaDevice device(api(), 0);
  const KernelId k = device.prepare(x.call);
  const std::vector<double> table(8, 1);
  const std::vector<std::int32_t> ids{1, 9, 2};
  std::array<std::byte*, 2> in{device.allocate(64), device.allocate(64)};
  std::array<std::byte*, 1> out{device.allocate(64)};
  device.write(in[0], table.data(), 64), device.write(in[1], ids.data(), 12);
  device.launch(DeviceLane::compute, k, {.in = in.data(), .out = out.data(), .now = {}, .launch = {7, 2}});
  const auto fault = device.finish();
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->value, 9);
  EXPECT_EQ(fault->limit, 4);
  EXPECT_EQ(fault->launch.instruction, 7u);
  EXPECT_EQ(fault->launch.call, 2u);
  EXPECT_FALSE(device.finish());
}

TEST_F(CudaDevices, AKernelThatGoesWrongIsNamed) {
  Embedded x;
  CudaDevice device(api(), 0);
  const KernelId k = device.prepare(x.call);
  std::array<std::byte*, 2> in{device.allocate(64), device.allocate(64)};
  std::array<std::byte*, 1> out{in[0] + (std::size_t(1) << 40)};
  device.launch(DeviceLane::compute, k, {.in = in.data(), .out = out.data(), .now = {}});
  EXPECT_THAT(message_of([&] { device.finish(); }),
              AllOf(HasSubstr("stretto_embedding, block 0, thread 0"), HasSubstr("it writes outside of all memory")));
}

TEST_F(CudaDevices, EventsTellHowFarTheDeviceIs) {
  Embedded x;
  CudaDevice device(api(), 0);
  EXPECT_FALSE(device.newest());
  const EventId first = device.event(), second = device.event(), other = device.event();
  device.record(first, DeviceLane::compute), device.record(second, DeviceLane::compute);
  device.record(other, DeviceLane::messages), device.wait(DeviceLane::compute, other);
  device.finish();
  EXPECT_EQ(device.newest(), second);
  EXPECT_LE(device.seconds(first), device.seconds(second));
}

TEST(CudaKernels, EveryOpHasOne) {
  std::vector<std::string_view> none;
  for (const Op* op : all_ops())
    if (!cpu_kernels(*op).empty() && cuda_kernels(*op).empty()) none.push_back(op->name);
  EXPECT_THAT(none, testing::IsEmpty());
}

}  // namespace
}  // namespace stretto
