// The machine for PTX: threads that work together, and each mistake that it claims to find, by a kernel that makes it.
#include <gmock/gmock.h>

#include <array>
#include <bit>
#include <numeric>

#include "support/cuda/ptx_machine.h"

namespace stretto::test {
namespace {
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

// A kernel "k" with pointers a and b; %i is the thread, %n the threads of a block, %block the block, %at where the
// thread's word of b lies and %from that of a.
std::string kernel_with(const std::string& body, const std::string& shared = "") {
  return R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(
	.param .u64 a,
	.param .u64 b
)
{
	.reg .pred 	%p<4>;
	.reg .b32 	%r<9>;
)" + shared +
         R"(
	ld.param.u64 	%a, [a];
	ld.param.u64 	%b, [b];
	cvta.to.global.u64 	%a, %a;
	mov.u32 	%i, %tid.x;
	mov.u32 	%n, %ntid.x;
	mov.u32 	%block, %ctaid.x;
	mad.lo.s32 	%all, %block, %n, %i;
	mul.wide.u32 	%off, %all, 4;
	add.s64 	%from, %a, %off;
	add.s64 	%at, %b, %off;
)" + body +
         "\n\tret;\n}\n";
}
const std::string words_32 =
    "\t.shared .align 4 .b8 part[128];\n\tmov.u64 %part, part;\n\tmul.wide.u32 %mine, %tid.x, 4;\n\tadd.s64 %mine, "
    "%mine, %part;\n\txor.b32 %o, %tid.x, 1;\n\tmul.wide.u32 %other, %o, 4;\n\tadd.s64 %other, %other, %part;";

class MachineRun {
 public:
  static constexpr std::uint64_t at_a = 0x10000, at_b = 0x20000;
  std::array<std::uint32_t, 256> a{}, b{};
  explicit MachineRun(const std::string& text) : module_(text) {
    std::iota(a.begin(), a.end(), 100);
    memory_.add(at_a, sizeof a, reinterpret_cast<std::byte*>(a.data()));
    memory_.add(at_b, sizeof b, reinterpret_cast<std::byte*>(b.data()));
  }
  void run(PtxGrid grid, std::uint64_t first = at_a, std::uint64_t second = at_b) {
    const std::array<const void*, 2> parameters{&first, &second};
    machine_.launch(module_.kernel("k"), grid, parameters.data());
  }

 private:
  PtxModule module_;
  DeviceMemory memory_;
  PtxMachine machine_{memory_};
};

std::string refusal(const std::string& text, PtxGrid grid, std::uint64_t first = MachineRun::at_a) {
  try {
    MachineRun(text).run(grid, first);
  } catch (const std::runtime_error& e) {
    return e.what();
  }
  return "nothing was refused";
}

TEST(PtxMachine, RunsBlocksAndThreads) {
  MachineRun m(
      kernel_with("ld.global.u32 %r1, [%from];\n mad.lo.s32 %r2, %block, 1000, %r1;\n st.global.u32 [%at], %r2;"));
  m.run({.grid = 3, .block = 40});
  for (unsigned i = 0; i < 120; ++i) EXPECT_EQ(m.b[i], 100 + i + 1000 * (i / 40));
  EXPECT_EQ(m.b[120], 0u);
}

TEST(PtxMachine, LoopsAndLeavesEarly) {
  MachineRun m(kernel_with(R"(
	setp.gt.u32 %p1, %i, 5;
	@%p1 bra $L_end;
	mov.u32 %r1, 0;
	mov.u32 %r2, 0;
$L_again:
	add.u32 %r2, %r2, %i;
	add.u32 %r1, %r1, 1;
	setp.lt.u32 %p2, %r1, 7;
	@%p2 bra $L_again;
	st.global.u32 [%at], %r2;
$L_end:)"));
  m.run({.block = 32});
  for (unsigned i = 0; i < 32; ++i) EXPECT_EQ(m.b[i], i > 5 ? 0 : 7 * i);
}

TEST(PtxMachine, ThreadsMeetInSharedMemory) {
  MachineRun m(kernel_with(
      "st.shared.u32 [%mine], %i;\n bar.sync 0;\n ld.shared.u32 %r1, [%other];\n st.global.u32 [%at], %r1;", words_32));
  m.run({.grid = 2, .block = 32});
  for (unsigned i = 0; i < 64; ++i) EXPECT_EQ(m.b[i], (i % 32) ^ 1);
}

TEST(PtxMachine, DynamicSharedMemoryIsAsLargeAsTheLaunchSays) {
  const std::string text =
      ".extern .shared .align 16 .b8 room[];\n" +
      kernel_with("mov.u64 %s, room;\n mul.wide.u32 %o, %i, 4;\n add.s64 %s, %s, %o;\n st.shared.u32 [%s], %i;");
  EXPECT_NO_THROW(MachineRun(text).run({.block = 32, .shared = 128}));
  EXPECT_THAT(refusal(text, {.block = 32, .shared = 124}),
              AllOf(HasSubstr("k, block 0, thread 31, PTX line"), HasSubstr("outside of shared memory")));
}

TEST(PtxMachine, ShufflesMoveBetweenLanes) {
  const auto shuffled = [](const std::string& how, const std::string& clamp) {
    MachineRun m(kernel_with("ld.global.u32 %r1, [%from];\n shfl.sync." + how + ".b32 %r2|%p1, %r1, 2, " + clamp +
                             ", -1;\n selp.u32 %r3, %r2, 7, %p1;\n st.global.u32 [%at], %r3;"));
    m.run({.block = 32});
    return m.b;
  };
  const auto bfly = shuffled("bfly", "31"), down = shuffled("down", "31"), up = shuffled("up", "0"),
             idx = shuffled("idx", "31");
  for (unsigned i = 0; i < 32; ++i) {
    EXPECT_EQ(bfly[i], 100 + (i ^ 2));
    EXPECT_EQ(down[i], i < 30 ? 102 + i : 7);
    EXPECT_EQ(up[i], i < 2 ? 7 : 98 + i);
    EXPECT_EQ(idx[i], 102u);
  }
}

TEST(PtxMachine, VotesAreCounted) {
  MachineRun m(
      kernel_with("and.b32 %r1, %i, 5;\n setp.eq.s32 %p1, %r1, 5;\n vote.sync.ballot.b32 %r2, %p1, -1;\n st.global.u32 "
                  "[%at], %r2;"));
  m.run({.block = 32});
  EXPECT_THAT(std::vector(m.b.begin(), m.b.begin() + 32), Each(0xa0a0a0a0u));
}

TEST(PtxMachine, AtomicsCountWhereThreadsMeet) {
  MachineRun m(kernel_with("atom.global.add.u32 %r1, [%b], 3;"));
  m.run({.grid = 2, .block = 50});
  EXPECT_EQ(m.b[0], 300u);
}

TEST(PtxMachine, VectorsAndHalvesAreMoved) {
  MachineRun m(kernel_with(R"(
	mul.wide.u32 %o, %i, 16;
	add.s64 %f, %a, %o;
	add.s64 %t, %b, %o;
	ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%f];
	mov.b64 %d, {%r4, %r3};
	{
	.reg .b32 %temp;
	mov.b64 {%r5, %temp}, %d;
	}
	st.global.v2.u32 [%t], {%r5, %r2};
	ld.global.s16 %h, [%f+2];
	st.global.u32 [%t+8], %h;)"));
  m.a[0] = 0x80010002;
  m.run({.block = 2});
  EXPECT_THAT(std::vector(m.b.begin(), m.b.begin() + 8), testing::ElementsAre(103, 101, 0xffff8001, 0, 107, 105, 0, 0));
}

// Fragments as the manual of PTX lays them out, of random small numbers: every sum is exact.
TEST(PtxMachine, MatricesOfAWarpAreMultiplied) {
  MachineRun m(kernel_with(R"(
	mul.wide.u32 %o, %i, 16;
	add.s64 %f, %a, %o;
	add.s64 %t, %b, %o;
	mul.wide.u32 %q, %i, 8;
	add.s64 %g, %a, %q;
	ld.global.v4.u32 {%a0, %a1, %a2, %a3}, [%f];
	ld.global.v2.u32 {%b0, %b1}, [%g+512];
	ld.global.v4.f32 {%c0, %c1, %c2, %c3}, [%t];
	mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%c0, %c1, %c2, %c3}, {%a0, %a1, %a2, %a3}, {%b0, %b1}, {%c0, %c1, %c2, %c3};
	st.global.v4.f32 [%t], {%c0, %c1, %c2, %c3};)"));
  float a[16][16], b[16][8], c[16][8];
  unsigned random = 7;
  const auto next = [&] { return float(int((random = random * 1664525 + 1013904223) >> 28) - 8) / 4; };
  for (auto& row : a)
    for (float& x : row) x = next();
  for (auto& row : b)
    for (float& x : row) x = next();
  for (auto& row : c)
    for (float& x : row) x = next();
  const auto pair = [](float low, float high) {
    return std::bit_cast<std::uint32_t>(low) >> 16 | (std::bit_cast<std::uint32_t>(high) & 0xffff0000);
  };
  for (unsigned lane = 0; lane < 32; ++lane) {
    const unsigned g = lane / 4, t = 2 * (lane % 4);
    const std::array<std::array<unsigned, 2>, 4> corners{{{g, t}, {g + 8, t}, {g, t + 8}, {g + 8, t + 8}}};
    for (unsigned r = 0; r < 4; ++r)
      m.a[4 * lane + r] = pair(a[corners[r][0]][corners[r][1]], a[corners[r][0]][corners[r][1] + 1]);
    for (unsigned r = 0; r < 2; ++r) m.a[128 + 2 * lane + r] = pair(b[t + 8 * r][g], b[t + 8 * r + 1][g]);
    for (unsigned r = 0; r < 4; ++r) m.b[4 * lane + r] = std::bit_cast<std::uint32_t>(c[g + r / 2 * 8][t + r % 2]);
  }
  m.run({.block = 32});
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned r = 0; r < 4; ++r) {
      const unsigned row = lane / 4 + r / 2 * 8, column = 2 * (lane % 4) + r % 2;
      float expected = c[row][column];
      for (unsigned k = 0; k < 16; ++k) expected += a[row][k] * b[k][column];
      EXPECT_EQ(std::bit_cast<float>(m.b[4 * lane + r]), expected) << row << " " << column;
    }
}

TEST(PtxRefusals, AccessesOutsideOfMemory) {
  const std::string reads = kernel_with("ld.global.u32 %r1, [%from];"),
                    writes = kernel_with("st.global.u32 [%from], %i;");
  EXPECT_THAT(refusal(reads, {.grid = 2, .block = 128}), HasSubstr("nothing"));
  EXPECT_THAT(refusal(reads, {.grid = 3, .block = 128}),
              AllOf(HasSubstr("k, block 2, thread 0, PTX line 23: it reads outside of all memory")));
  EXPECT_THAT(refusal(writes, {.block = 257}), HasSubstr("thread 256, PTX line 23: it writes outside of all memory"));
  EXPECT_THAT(refusal(reads, {.block = 1}, MachineRun::at_a - 4), HasSubstr("outside of all memory"));
}

TEST(PtxRefusals, MisalignedAccesses) {
  EXPECT_THAT(refusal(kernel_with("ld.global.u32 %r1, [%from];"), {.block = 1}, MachineRun::at_a + 2),
              HasSubstr("a misaligned access of 4 bytes"));
  EXPECT_THAT(refusal(kernel_with("ld.global.v2.u32 {%r1, %r2}, [%from];"), {.block = 2}),
              HasSubstr("thread 1, PTX line 23: a misaligned access of 8 bytes"));
}

TEST(PtxRefusals, RacesInSharedMemory) {
  const std::string write = "st.shared.u32 [%mine], %i;\n", read = "ld.shared.u32 %r1, [%other];\n",
                    meet = "bar.sync 0;\n";
  EXPECT_THAT(refusal(kernel_with(write + read, words_32), {.block = 32}),
              HasSubstr("a race: it writes what another thread reads"));
  EXPECT_THAT(refusal(kernel_with(write + meet + read + "st.shared.u32 [%mine], %r1;", words_32), {.block = 32}),
              HasSubstr("a race"));
  EXPECT_THAT(refusal(kernel_with("st.shared.u32 [%part], %i;", words_32), {.block = 2}),
              HasSubstr("a race: it writes what thread 0 of this block writes"));
  EXPECT_THAT(refusal(kernel_with(write + meet + read + meet + "st.shared.u32 [%mine], %r1;", words_32), {.block = 32}),
              HasSubstr("nothing"));
}

TEST(PtxRefusals, AWordThatTwoThreadsWrite) {
  const std::string all_first = kernel_with("st.global.u32 [%b], 7;");
  EXPECT_THAT(refusal(all_first, {.block = 1}), HasSubstr("nothing"));
  EXPECT_THAT(refusal(all_first, {.block = 2}), HasSubstr("it writes what thread 0 of this block writes"));
  EXPECT_THAT(refusal(all_first, {.grid = 2}), HasSubstr("it writes what thread 0 of another block writes"));
  EXPECT_THAT(refusal(kernel_with("st.global.u32 [%at], 7;\n ld.global.u32 %r1, [%b];"), {.grid = 2}),
              HasSubstr("it reads what thread 0 of another block writes"));
  EXPECT_THAT(refusal(kernel_with("ld.global.u32 %r1, [%at];\n st.global.u32 [%at], 7;"), {.grid = 2}),
              HasSubstr("nothing"));
  EXPECT_THAT(refusal(kernel_with("ld.global.u32 %r1, [%b+4];\n bar.sync 0;\n st.global.u32 [%at], 7;"), {.grid = 2}),
              HasSubstr("it writes what another thread reads"));
  // A half of a word each is two words.
  EXPECT_THAT(
      refusal(kernel_with("mul.wide.u32 %o, %i, 2;\n add.s64 %o, %o, %b;\n st.global.u16 [%o], %i;"), {.block = 64}),
      HasSubstr("nothing"));
}

TEST(PtxRefusals, AMachineForgetsTheLaunchBefore) {
  MachineRun m(kernel_with("st.global.u32 [%b], 7;"));
  EXPECT_NO_THROW(m.run({}));
  EXPECT_NO_THROW(m.run({}));
}

TEST(PtxRefusals, BarriersThatNotAllComeTo) {
  const std::string half = "setp.lt.u32 %p1, %i, 16;\n";
  EXPECT_THAT(refusal(kernel_with(half + "@%p1 bra $L_out;\n bar.sync 0;\n$L_out:"), {.block = 32}),
              AllOf(HasSubstr("a barrier that not all threads come to"), HasSubstr("thread 0")));
  EXPECT_THAT(
      refusal(kernel_with(half + "@%p1 bra $L_two;\n bar.sync 0;\n bra $L_out;\n$L_two:\n bar.sync 0;\n$L_out:"),
              {.block = 32}),
      HasSubstr("a barrier that not all threads come to"));
}

TEST(PtxRefusals, ShufflesThatNotAllComeTo) {
  const std::string shuffle = "shfl.sync.bfly.b32 %r2|%p2, %i, 1, 31, -1;\n", half = "setp.lt.u32 %p1, %i, 16;\n";
  EXPECT_THAT(refusal(kernel_with(half + "@%p1 bra $L_out;\n" + shuffle + "$L_out:"), {.block = 32}),
              HasSubstr("not all threads of the warp come here together"));
  EXPECT_THAT(refusal(kernel_with(shuffle), {.block = 31}), HasSubstr("a shuffle from a thread that is not there"));
  EXPECT_THAT(refusal(kernel_with("shfl.sync.bfly.b32 %r2|%p2, %i, 1, 31, 65535;"), {.block = 32}),
              HasSubstr("a mask that leaves out threads"));
  EXPECT_THAT(refusal(kernel_with(half + "@%p1 bra $L_out;\n bar.sync 0;\n$L_out:\n" + shuffle), {.block = 32}),
              HasSubstr("come here together"));
}

TEST(PtxRefusals, RegistersThatNobodyHasWritten) {
  EXPECT_THAT(refusal(kernel_with("st.global.u32 [%at], %r5;"), {.block = 4}),
              HasSubstr("thread 0, PTX line 23: register %r5 comes from one that nobody has written"));
  EXPECT_THAT(
      refusal(kernel_with("setp.gt.u32 %p1, %i, 2;\n@%p1 mov.u32 %r5, 1;\n st.global.u32 [%at], %r5;"), {.block = 4}),
      HasSubstr("register %r5"));
  EXPECT_THAT(refusal(kernel_with("@%p3 bra $L_out;\n$L_out:"), {}), HasSubstr("register %p3"));
  // What is only half written may be used by half: dp2a.lo looks at the lower half of its second operand.
  const auto half = [](const char* dot) {
    return refusal(kernel_with("and.b32 %h, %i, 255;\n xor.b32 %x, %h2, 5;\n mov.b32 %w, {%h, %x};\n " +
                               std::string(dot) + ".u32.u32 %r1, %i, %w, 7;\n st.global.u32 [%at], %r1;"),
                   {.block = 4});
  };
  EXPECT_THAT(half("dp2a.lo"), HasSubstr("nothing"));
  EXPECT_THAT(half("dp2a.hi"), HasSubstr("register %r1 comes from one that nobody has written"));
}

TEST(PtxRefusals, WhatIsNotKnownIsNotGuessed) {
  EXPECT_THAT(refusal(kernel_with("add.rz.f64 %d1, %d2, %d3;"), {}),
              HasSubstr("PTX line 23: no instruction add.rz.f64"));
  EXPECT_THAT(refusal(kernel_with("atom.global.add.f32 %r1, [%at], %r2;"), {}),
              HasSubstr("no instruction atom.global.add.f32"));
  EXPECT_THAT(refusal(kernel_with("ld.local.u32 %r1, [%from];"), {}), HasSubstr("no known kind of memory"));
  EXPECT_THAT(refusal(kernel_with("", "\t.local .align 4 .b8 __local_depot0[28];"), {}), HasSubstr("local memory"));
  EXPECT_THAT(refusal(kernel_with("bra $L_nowhere;"), {}), HasSubstr("no label $L_nowhere"));
  EXPECT_THAT(refusal(".func (.param .b64 r) pow (.param .b64 x)\n", {}), HasSubstr("PTX line 1: functions"));
  EXPECT_THAT(refusal(".visible .entry other()\n{\n\tret;\n}\n", {}), HasSubstr("no kernel k"));
  EXPECT_THAT(refusal(".visible .entry k(\n)\n{\n\tret;\n", {}), HasSubstr("a kernel that does not end"));
}

}  // namespace
}  // namespace stretto::test
