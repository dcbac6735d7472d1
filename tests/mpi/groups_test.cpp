// Collectives between processes, on one node and on several: every one must give what the plain formula gives, bit for
// bit. The tests named InsideMpi are run by the others, under mpirun.
#include <sys/resource.h>

#include <cstdlib>
#include <cstring>
#include <thread>

#include "comm/plain_collective.h"
#include "processes.h"
#include "stretto/base/clock.h"
#include "stretto/comm/world.h"
#include "stretto/cost/collective.h"

namespace stretto {
namespace {

using test::Plain;

class InsideMpi : public testing::Test {
 protected:
  void SetUp() override {
    if (find_world(environment()).size == 1) GTEST_SKIP() << "is run under mpirun by other tests";
  }
  void TearDown() override {
    if (HasFailure()) peers().abort(1);  // the others would wait
  }
  static Peers& peers() {
    static const std::shared_ptr<Peers> all = mpi_peers({.world = find_world(environment()), .timeouts = Timeouts::all(100)});
    return *all;
  }
  static std::unique_ptr<CollectiveGroup> everybody(int under_way, std::optional<Link> link = {}, bool content = true) {
    std::vector<int> ranks;
    for (int r = 0; r < peers().size(); ++r) ranks.push_back(r);
    std::unique_ptr<Wiring> wires = process_wiring(peers());
    if (link) wires = emulated_wiring(std::move(wires), {.links = equal_links(*link), .content = content});
    return wires->group(ranks, peers().rank(), under_way);
  }
  // Memory that collectives can use.
  static std::byte* memory(u64 bytes) {
    Program p;
    p.actors.resize(std::size_t(peers().size()));
    for (ActorProgram& a : p.actors) a.bytes[Arena::activations] = bytes;
    const ArenaBases own =
        peers().shares_memory() ? peers().share(p, true)[std::size_t(peers().rank())] : peers().arenas(p, true);
    return own[Arena::activations];
  }
};

TEST_F(InsideMpi, AnyStridesSeveralUnderWayInAnyOrderOfWaiting) {
  const int members = peers().size(), me = peers().rank(), count = 5;
  std::byte* const all_memory = memory(64 << 20);
  const auto group = everybody(count);
  const unsigned seeds = std::getenv("STRETTO_LONG") ? 20 : 5;
  for (unsigned seed = 0; seed < seeds; ++seed) {
    std::mt19937 random(seed), mine(seed * 100 + unsigned(me));
    std::vector<Plain> all;
    std::vector<std::uint32_t> prepared;
    std::vector<std::byte*> in, out;
    std::byte* at = all_memory;
    const auto put = [&](const test::Buffer& b) {
      const std::size_t bytes = std::size_t(b.count()) * size_of(b.dtype());
      std::memcpy(at, b.data(), bytes);
      at += (bytes + 127) / 64 * 64;
      return at - (bytes + 127) / 64 * 64;
    };
    for (int i = 0; i < 2 * count; ++i) {
      CollectiveShape s = test::random_shape(random, members);
      const bool in_place = s.kind == CollectiveKind::reduce && random() % 2;
      if (in_place) s.out_strides = s.in_strides;
      all.emplace_back(s, seed + unsigned(i), in_place);
      in.push_back(put(all.back().operand(me)));
      out.push_back(in_place ? in.back() : put(all.back().result(me)));
      prepared.push_back(group->prepare(s));
    }
    for (int turn = 0; turn < 2; ++turn) {
      std::vector<u64> tickets;
      for (std::size_t k = std::size_t(turn * count); k < std::size_t((turn + 1) * count); ++k) {
        if (mine() % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(mine() % 300));
        tickets.push_back(group->start(me, prepared[k], in[k], out[k]));
      }
      std::shuffle(tickets.begin(), tickets.end(), mine);
      for (const u64 t : tickets) {
        for (int look = int(mine() % 4); look > 0 && !group->progress(me, t); --look) continue;
        group->wait(me, t);
      }
    }
    for (std::size_t k = 0; k < all.size(); ++k) {
      test::Buffer& b = all[k].result(me);
      std::memcpy(b.data(), out[k], std::size_t(b.count()) * size_of(b.dtype()));
      ASSERT_TRUE(all[k].right(me)) << "seed " << seed;
    }
  }
}

// Who only looks, while others start it, end it and use its memory again, must not do any of it a second time.
TEST_F(InsideMpi, SmallOnesAreDoneOnce) {
  const int members = peers().size(), me = peers().rank(), rounds = 3000;
  const i64 box = 16;
  const auto group = everybody(4);
  const std::uint32_t sum = group->prepare(test::dense(CollectiveKind::reduce, f32, members, {box}));
  float* const in = reinterpret_cast<float*>(memory(4096));
  float* const out = in + box;
  for (int round = 0; round < rounds; ++round) {
    std::fill_n(in, box, float(round + me));
    const u64 ticket = group->start(me, sum, in, out);
    while (!group->progress(me, ticket)) std::this_thread::yield();
    for (i64 i = 0; i < box; ++i)
      ASSERT_EQ(out[i], float(members * round + members * (members - 1) / 2)) << "round " << round;
    std::fill_n(in, 2 * box, -1e5f);
  }
}

TEST_F(InsideMpi, LargeOnesOfManySlices) {
  const int me = peers().rank(), n = peers().size();
  const i64 size = 3'000'000, box = size / n;
  auto* const in = reinterpret_cast<float*>(memory(u64(8 * size)));
  float* const out = in + size;
  const auto group = everybody(2);
  const auto shaped = [&](CollectiveKind kind, i64 elements) {
    return group->prepare(test::dense(kind, f32, n, {elements}));
  };
  const std::uint32_t sum = shaped(CollectiveKind::reduce, size), parts = shaped(CollectiveKind::scatter, box),
                      gather = shaped(CollectiveKind::gather, box);
  for (i64 i = 0; i < size; ++i) in[i] = float(i % 1000 + me);
  // Which of them is the first that is not what it should be.
  const auto wrong = [&](const float* at, i64 count, i64 from) {
    for (i64 i = 0; i < count; ++i)
      if (at[i] != float(n * ((from + i) % 1000) + n * (n - 1) / 2)) return i;
    return i64(-1);
  };
  group->wait(me, group->start(me, parts, in, out));
  ASSERT_EQ(wrong(out, box, me * box), -1);
  group->wait(me, group->start(me, sum, in, in));
  ASSERT_EQ(wrong(in, size, 0), -1);
  group->wait(me, group->start(me, gather, in + me * box, out));
  ASSERT_EQ(wrong(out, n * box, 0), -1);
}

TEST_F(InsideMpi, NothingIsCompleteBeforeItsEmulatedLinkAllows) {
  const Link link{.latency = 2e-3, .bandwidth = 1e8};
  const int me = peers().rank(), n = peers().size();
  const CollectiveShape s = test::dense(CollectiveKind::reduce, f32, n, {10'000});
  std::byte* const at = memory(1 << 20);
  for (const bool content : {true, false}) {
    const auto group = everybody(2, link, content);
    const std::uint32_t what = group->prepare(s);
    for (int round = 0; round < 3; ++round) {
      const double start = now();
      const u64 a = group->start(me, what, at, at), b = group->start(me, what, at + 65536, at + 65536);
      group->wait(me, b);
      EXPECT_GE(now() - start, 2 * collective_seconds(s, link)) << "one at a time";
      group->wait(me, a);
    }
  }
}

// However many ranks there are for each core: the one that is late is not held up by those that wait for it.
TEST_F(InsideMpi, WhoWaitsUsesNextToNoProcessorTime) {
  const int me = peers().rank();
  std::byte* const at = memory(1 << 20);
  const auto group = everybody(1);
  const std::uint32_t what = group->prepare(test::dense(CollectiveKind::reduce, f32, peers().size(), {100}));
  group->wait(me, group->start(me, what, at, at));
  const auto processor_seconds = [] {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    return double(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-6 * double(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
  };
  const double before = processor_seconds();
  if (me == 0) std::this_thread::sleep_for(std::chrono::milliseconds(700));
  group->wait(me, group->start(me, what, at, at));
  EXPECT_LT(processor_seconds() - before, 0.2) << "of at least 0.7 s";
}

// One message and one sum of more than 2 GiB.
TEST_F(InsideMpi, MoreThanTwoGibibytesAtOnce) {
  if (!std::getenv("STRETTO_LONG")) GTEST_SKIP() << "STRETTO_LONG is not set";
  const int me = peers().rank();
  const u64 bytes = (u64(2) << 30) + (u64(200) << 20);
  std::vector<u64> words(bytes / 8);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = me == 0 ? i * 0x9e3779b97f4a7c15u : 0;
  Program p;
  p.actors.resize(2);
  for (ActorProgram& a : p.actors) a.code = Code(std::vector<Instruction>(1));
  p.routes.push_back({ActorId(0), ActorId(1), bytes, "large"});
  const TransferId large =
      p.transfers.push_back({.route = RouteId(0), .extents = {{.bytes = bytes}}, .released = InstructionId(1)});
  ArenaBases own{};
  own[Arena::activations] = reinterpret_cast<std::byte*>(words.data());
  const auto transport = peers().transport(p, {&own, 1});
  transport->at(InstructionId(0));
  if (me == 0) transport->send(large, 1);
  if (me == 1) transport->receive(large, 1);
  transport->at(InstructionId(1));
  for (std::size_t i = 0; i < words.size(); ++i) ASSERT_EQ(words[i], i * 0x9e3779b97f4a7c15u) << i;

  const auto group = everybody(1);
  auto* const numbers = reinterpret_cast<float*>(words.data());
  const i64 n = i64(bytes / 4);
  for (i64 i = 0; i < n; ++i) numbers[i] = float(i % 1000 + me);
  group->wait(me, group->start(me, group->prepare(test::dense(CollectiveKind::reduce, f32, 2, {n})), numbers, numbers));
  for (i64 i = 0; i < n; ++i) ASSERT_EQ(numbers[i], float(2 * (i % 1000) + 1)) << i;
}

class GroupsOfProcesses : public test::Processes {
 protected:
  void SetUp() override {
    test::Processes::SetUp();
    if (std::getenv("STRETTO_TEST_MPIRUN")) GTEST_SKIP() << "this program has one MPI, and that mpirun is of another";
  }
  static constexpr const char* all_tests = "InsideMpi.*-InsideMpi.MoreThan*";
  static constexpr const char* all_but_waiting = "InsideMpi.*-InsideMpi.MoreThan*:InsideMpi.WhoWaits*";
  static void inside(int ranks, int per_node, const std::string& tests = all_tests) {
    const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
    const test::Result r =
        test::shell("export STRETTO_RANKS_PER_NODE=" + std::to_string(per_node) + "\ntimeout 120 env " + mpirun(ranks) +
                        "'" + self + "' --gtest_filter='" + tests + "'",
                    ".");
    EXPECT_EQ(r.code, 0) << r.out << r.error;
  }
};

TEST_F(GroupsOfProcesses, OnOneNode) { inside(4, 4); }
TEST_F(GroupsOfProcesses, OnANodeEach) { inside(4, 1); }
TEST_F(GroupsOfProcesses, OnTwoNodesOfFour) { inside(8, 4); }
TEST_F(GroupsOfProcesses, OnFourNodesOfTwo) { inside(8, 2, all_but_waiting); }
TEST_F(GroupsOfProcesses, OnNodesThatAreNoSubtrees) { inside(6, 3, all_but_waiting); }
TEST_F(GroupsOfProcesses, OnUnequalNodes) { inside(5, 2, all_but_waiting); }
TEST_F(GroupsOfProcesses, ManyForEachCore) { inside(16, 8, "InsideMpi.WhoWaits*:InsideMpi.Nothing*"); }
TEST_F(GroupsOfProcesses, MoreThanTwoGibibytesAtOnce) {
  if (!std::getenv("STRETTO_LONG")) GTEST_SKIP() << "STRETTO_LONG is not set";
  inside(2, 1, "InsideMpi.MoreThan*");
}

}  // namespace
}  // namespace stretto
