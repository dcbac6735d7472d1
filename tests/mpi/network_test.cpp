// Two machines, made of network namespaces and a cable between them, which is cut: the ranks on both sides end, and say
// what they were waiting for. Needs root, iproute2, util-linux and Open MPI.
#include "launched.h"

namespace stretto {
namespace {

using test::soon;
using testing::AllOf;
using testing::HasSubstr;

class Network : public test::Launched {
 protected:
  void SetUp() override {
    Launched::SetUp();
    if (IsSkipped()) return;
    if (mpirun(1).find("--oversubscribe") == std::string::npos) GTEST_SKIP() << "needs Open MPI";
    const test::Result r = test::shell("command -v unshare\nip netns add " + a_ + "\nip netns add " + b_ + "\nip -n " +
                                           a_ + " link add cable type veth peer name cable netns " + b_ + "\nip -n " +
                                           a_ + " addr add 10.213.7.1/24 dev cable\nip -n " + b_ +
                                           " addr add 10.213.7.2/24 dev cable\nfor n in " + a_ + " " + b_ +
                                           "; do ip -n $n link set lo up; ip -n $n link set cable up; done",
                                       "/");
    if (r.code != 0) GTEST_SKIP() << "no network namespaces here: " << r.error;
  }
  ~Network() override {
    // mpirun and its daemon wait for each other for minutes.
    test::shell("for n in " + a_ + " " + b_ +
                    "; do ip netns pids $n 2> /dev/null | xargs -r kill -9; ip netns del $n 2> /dev/null || true; done",
                "/");
  }
  // mpirun on the first machine, with one rank on each; what a rank says goes to a file.
  void begin_on_both(const std::string& arguments) {
    folder_.write(
        "agent", "#!/bin/bash\nshift\nexec ip netns exec " + b_ + " unshare --uts sh -c \"hostname " + b_ + "; $*\"\n");
    folder_.write("rank", "#!/bin/bash\necho $$ > pid.$OMPI_COMM_WORLD_RANK\nexec '" + test::binaries() + "/stretto' " +
                              arguments + " > out.$OMPI_COMM_WORLD_RANK 2> error.$OMPI_COMM_WORLD_RANK\n");
    folder_.write("go",
                  "#!/bin/bash\nhostname " + a_ +
                      "\nexport OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1\nexec " + mpirun_program() +
                      " --mca plm_rsh_agent ./agent --mca oob_tcp_if_include cable --mca btl_tcp_if_include cable"
                      " --mca pml ob1 --mca btl self,tcp -H 10.213.7.1:1,10.213.7.2:1 -n 2 ./rank > out 2> error\n");
    test::shell("chmod +x agent rank go", folder_.str());
    launched_ = fork();
    if (launched_ != 0) return;
    if (chdir(folder_.str().c_str()) != 0) _exit(1);
    execlp("ip", "ip", "netns", "exec", a_.c_str(), "unshare", "--uts", "./go", nullptr);
    _exit(1);
  }
  std::string file(const std::string& name, int rank) const {
    return test::text_of(folder_ / (name + "." + std::to_string(rank)));
  }
  const std::string a_ = "stretto-a" + std::to_string(getpid()), b_ = "stretto-b" + std::to_string(getpid());
};

TEST_F(Network, IsCut) {
  begin_on_both("train small.toml --parallel.pipe=2 --parallel.timeout=2 --checkpoint.every=0 --train.steps=100000 "
                "--log.dir=run");
  ASSERT_TRUE(soon([&] { return has_steps("run", 3); })) << said() << file("error", 0) << file("error", 1);
  EXPECT_THAT(file("out", 0), HasSubstr("2 processes on 2 nodes"));
  ASSERT_EQ(test::shell("ip -n " + a_ + " link set cable down", "/").code, 0);
  for (const int rank : {0, 1}) {
    const pid_t process = std::stoi(file("pid", rank));
    EXPECT_TRUE(soon([&] { return kill(process, 0) != 0; })) << "rank " << rank << " is left";
    EXPECT_THAT(file("error", rank), AllOf(HasSubstr("rank " + std::to_string(rank) + ": ["), HasSubstr("[watchdog]"),
                                           HasSubstr("parallel.timeout")));
  }
}

}  // namespace
}  // namespace stretto
