// Processes give the bits of threads.
#include <fstream>

#include "processes.h"
#include "support/chats.h"

namespace stretto {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class SameNumbers : public test::Processes {
 protected:
  void expect_same(int ranks, const std::string& settings, const std::string& how = "", unsigned steps = 4) {
    static int count = 0;
    const std::string number = std::to_string(++count);
    const test::Result threads = run("train small.toml " + settings + " --log.dir=threads" + number);
    ASSERT_EQ(threads.code, 0) << threads.error;
    const test::Result processes = launch(ranks, "train small.toml " + settings + " --log.dir=mpi" + number + how);
    ASSERT_EQ(processes.code, 0) << processes.out << processes.error << log(0) << log(ranks - 1);
    EXPECT_THAT(numbers(threads.out), SizeIs(steps + 1)) << threads.out;
    EXPECT_EQ(numbers(processes.out), numbers(threads.out)) << settings << how;
  }
};

TEST_F(SameNumbers, FourActors) { expect_same(4, "--parallel.pipe=4 --parallel.schedule=zb-v"); }
TEST_F(SameNumbers, ActorsThatMakeThingsAgainThroughMpiAlone) {
  expect_same(3, "--parallel.pipe=3 --parallel.schedule=1f1b --parallel.recompute=full", " --no-shared-memory");
}
TEST_F(SameNumbers, DataAndTensorRanks) { expect_same(4, "--parallel.data=2 --parallel.tensor=2"); }
TEST_F(SameNumbers, APipelineOfDataRanksThatShareTheirStateThroughMpiAlone) {
  expect_same(4, "--parallel.pipe=2 --parallel.data=2 --parallel.zero=3", " --no-shared-memory");
}

TEST_F(SameNumbers, RanksThatReadOneCopyOfWhatIsFrozen) {
  expect_same(4, "--finetune.lora.rank=2 --parallel.pipe=2 --parallel.data=2");
  expect_same(2, "--finetune.lora.rank=2 --parallel.data=2", " --no-shared-memory");
}

// A python3 that counts how often it is asked.
TEST_F(SameNumbers, ConversationsAreRenderedByTheFirstRankAlone) {
  STRETTO_NEEDS_JINJA();
  folder_.write("t.jinja", "{{ strftime_now('%d') }}{% for m in messages %}{{ m.content }}|{% endfor %}");
  std::string chats;
  for (int i = 0; i < 60; ++i)
    chats +=
        fmt::format(R"({{"messages": [{{"role": "user", "content": "{}"}}, {{"role": "assistant", "content": "{}"}}]}})"
                    "\n",
                    i * 7 % 10, i % 10);
  folder_.write("c.jsonl", chats);
  const std::string python = test::shell("command -v python3", "/").out;
  folder_.write("bin/python3", "#!/bin/sh\necho asked >> '" + folder_.str() + "/asked'\nexec " +
                                   python.substr(0, python.size() - 1) + " \"$@\"\n");
  std::filesystem::permissions(folder_ / "bin/python3", std::filesystem::perms::owner_all);
  const std::string path = std::getenv("PATH");
  setenv("PATH", (folder_.str() + "/bin:" + path).c_str(), 1);
  expect_same(2, "--parallel.pipe=2 --data.field=messages --data.path=c.jsonl --data.template=t.jinja");
  setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(test::text_of(folder_ / "asked"), "asked\nasked\n") << "once with threads, once with processes";
}

// As on several machines: a node is so many processes.
class SameNumbersOnNodes : public SameNumbers {
 protected:
  void on_nodes_of(int ranks, int total, const std::string& settings) {
    setenv("STRETTO_RANKS_PER_NODE", std::to_string(ranks).c_str(), 1);
    expect_same(total, settings + " --train.steps=2", "", 2);
    unsetenv("STRETTO_RANKS_PER_NODE");
  }
};
TEST_F(SameNumbersOnNodes, TwoOfFour) {
  on_nodes_of(4, 8, "--parallel.data=8 --train.microbatches=1");
  on_nodes_of(4, 8, "--parallel.data=4 --parallel.tensor=2 --parallel.zero=3 --train.microbatches=2");
}
TEST_F(SameNumbersOnNodes, FourOfTwo) {
  on_nodes_of(2, 8, "--parallel.data=8 --parallel.zero=2 --train.microbatches=1");
  on_nodes_of(2, 8, "--parallel.pipe=2 --parallel.data=4 --train.microbatches=2 --finetune.lora.rank=2");
}
TEST_F(SameNumbersOnNodes, NodesThatAreNoSubtreesOfTheSum) {
  on_nodes_of(3, 6, "--parallel.data=6 --train.batch=12 --train.microbatches=2");
}
TEST_F(SameNumbersOnNodes, AWrongNumberIsRefused) {
  setenv("STRETTO_RANKS_PER_NODE", "two", 1);
  const test::Result r = launch(2, "train small.toml --parallel.data=2 --log.dir=run");
  unsetenv("STRETTO_RANKS_PER_NODE");
  EXPECT_EQ(r.code, 1);
  EXPECT_THAT(r.error, HasSubstr("STRETTO_RANKS_PER_NODE = 'two'"));
}

TEST_F(SameNumbers, ARunGoesOnAsThreads) {
  const test::Result whole = run("train small.toml --parallel.pipe=2 --log.dir=whole");
  const test::Result half = launch(2, "train small.toml --parallel.pipe=2 --train.steps=2 --log.dir=run");
  ASSERT_EQ(half.code, 0) << half.error;
  const test::Result rest = run("train small.toml --parallel.pipe=1 --resume --log.dir=run");
  ASSERT_EQ(rest.code, 0) << rest.error;
  EXPECT_EQ(numbers(rest.out).back(), numbers(whole.out).back());
  const test::Result more = launch(3, "train small.toml --parallel.pipe=3 --resume --train.steps=5 --log.dir=run");
  ASSERT_EQ(more.code, 0) << more.error << log(0);
  EXPECT_THAT(more.out, HasSubstr("resume   after step 4"));
}

TEST_F(SameNumbers, TheRunSaysWhereItsRanksAre) {
  const test::Result r =
      launch(2, "train small.toml --parallel.pipe=2 --train.steps=1 --log.timeline=last --log.dir=run");
  ASSERT_EQ(r.code, 0) << r.error;
  EXPECT_THAT(r.out, ContainsRegex("ranks    2 processes on 1 node, [^\n]*MPI"));
  EXPECT_THAT(r.out, HasSubstr("timeline run/timeline.html"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "run/report.html"));
  EXPECT_THAT(log(1), IsEmpty()) << "the first rank prints";
}

TEST_F(SameNumbers, TheNumberOfProcessesMustFit) {
  const test::Result r = launch(3, "train small.toml --parallel.pipe=2 --log.dir=run");
  EXPECT_EQ(r.code, 1);
  EXPECT_THAT(r.error, HasSubstr("there are 3 processes"));
  EXPECT_THAT(r.error, HasSubstr("pipe=2 has 2 ranks"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run"));
}

TEST_F(SameNumbers, InputThatIsWrongIsSaidOnce) {
  const test::Result r = launch(2, "train small.toml --parallel.pipe=2 --train.btch=8");
  EXPECT_EQ(r.code, 1);
  EXPECT_THAT(r.error, HasSubstr("rank 0: [command line] key 'train.btch' is unknown"));
  EXPECT_EQ(r.error.find("btch"), r.error.rfind("'train.btch'") + 7);
}

// The same command on all ranks but one, where `other` takes its place or stands after it.
TEST_F(SameNumbers, ARankWithAnotherProgramSettingsOrDataIsRefused) {
  const auto differing = [&](const std::string& program, const std::string& more) {
    std::ofstream(folder_ / "differ") << "#!/bin/bash\nprogram='" << test::binaries() << "/stretto'\n"
                                      << "if [ \"${OMPI_COMM_WORLD_RANK:-$PMI_RANK}\" = 1 ]; then set -- \"$@\" "
                                      << more << "; " << program << "; fi\nexec \"$program\" \"$@\"\n";
    return test::shell("chmod +x differ; " + mpirun(2) + "./differ train small.toml --parallel.pipe=2", folder_.str());
  };
  std::ofstream(folder_ / "other.txt") << std::string(20000, 'x') << "y";
  const test::Result settings = differing(":", "--optimizer.lr=0.5");
  EXPECT_NE(settings.code, 0);
  EXPECT_THAT(settings.error, HasSubstr("[rank 1] optimizer.lr is 0.5, and on rank 0 it is 0.0003"));
  const test::Result data = differing(":", "--data.path=other.txt");
  EXPECT_NE(data.code, 0);
  EXPECT_THAT(data.error, HasSubstr("[rank 1] data is "));
  const test::Result program = differing("cp $program other; echo >> other; program=./other", "");
  EXPECT_NE(program.code, 0);
  EXPECT_THAT(program.error, ContainsRegex("\\[rank 1\\] executable is [0-9a-f]+, and on rank 0 it is [0-9a-f]+"));
}

}  // namespace
}  // namespace stretto
