// `stretto launch` in the background, so that something can be done to its ranks; and what must not be left of them.
//
//   begin(3, "train small.toml --parallel.pipe=3");
//   ASSERT_TRUE(soon([&] { return has_steps("run", 4); }));
//   ASSERT_TRUE(tell(rank_process(1), SIGKILL));
//   EXPECT_EQ(end(), 128 + SIGKILL);
//   expect_nothing_left();
#pragma once
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <set>
#include <thread>

#include "processes.h"

namespace stretto::test {

using namespace std::string_literals;

inline void pause(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

// Looks again and again, for a minute.
template <class Holds>
bool soon(Holds holds, double between = 0.02) {
  const auto start = std::chrono::steady_clock::now();
  for (; std::chrono::steady_clock::now() - start < std::chrono::minutes(1); pause(between))
    if (holds()) return true;
  return false;
}

class Launched : public Processes {
 protected:
  ~Launched() override {
    if (launched_ > 0) kill(launched_, SIGKILL), waitpid(launched_, nullptr, 0);
  }

  void begin(int ranks, const std::string& arguments, const std::string& flags = "") {
    remove_all(folder_ / "logs");
    launched_ = fork();
    if (launched_ != 0) return;
    if (chdir(folder_.str().c_str()) != 0) _exit(1);
    const int out = open("out", O_CREAT | O_WRONLY | O_TRUNC, 0644),
              error = open("error", O_CREAT | O_WRONLY | O_TRUNC, 0644);
    dup2(out, 1);
    dup2(error, 2);
    const std::string all = "exec '" + binaries() + "/stretto' launch -n " + std::to_string(ranks) + " --logs=logs " +
                            flags + " -- " + arguments;
    execl("/bin/sh", "sh", "-c", all.c_str(), nullptr);
    _exit(1);
  }
  // Its exit code; -1 when it has not ended after a minute.
  int end() {
    int status = 0;
    if (!soon([&] { return waitpid(launched_, &status, WNOHANG) == launched_; })) return -1;
    launched_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  // False when there is no such process: to 0 a signal would go to everybody here, whoever runs the tests among them.
  static bool tell(pid_t process, int signal) { return process > 0 && kill(process, signal) == 0; }
  std::string said() const { return text_of(folder_ / "error"); }
  // The process that computes, not one of those around it; 0: it is not there (any more).
  pid_t rank_process(int rank) const {
    pid_t found = 0;
    each_process_here([&](const std::filesystem::path& process) {
      const std::string words = text_of(process / "cmdline"), set = '\0' + text_of(process / "environ");
      const bool launches = words.find(std::string("\0launch\0", 8)) != words.npos;
      const bool several = set.find("\0OMPI_COMM_WORLD_RANK="s) != set.npos || set.find("\0PMI_RANK="s) != set.npos;
      const std::string number = "RANK=" + std::to_string(rank) + '\0';
      const bool it =
          several ? set.find("\0OMPI_COMM_WORLD_"s + number) != set.npos || set.find("\0PMI_"s + number) != set.npos
                  : rank == 0 && set.find("\0STRETTO_LAST_WORD="s) != set.npos;
      if (words.find("/stretto\0"s) != words.npos && !launches && it) found = std::stoi(process.filename());
    });
    return found;
  }
  // The child of the launch, not a child of its own that is still about to become another program.
  pid_t mpirun_process() const {
    pid_t found = 0;
    each_process_here([&](const std::filesystem::path& process) {
      const std::string name = text_of(process / "comm"), words = text_of(process / "cmdline");
      const bool starts = words.find("\0launch\0--as-rank\0"s) != words.npos;  // not one that is asked for its version
      const pid_t id = std::stoi(process.filename());
      if ((name.starts_with("mpirun") || name.starts_with("mpiexec")) && starts && parent_of(id) == launched_)
        found = id;
    });
    return found;
  }
  // Of a rank's place: mpirun itself, or one of its children.
  pid_t starter_of(int rank) const {
    pid_t found = 0;
    each_process_here([&](const std::filesystem::path& process) {
      const std::string words = text_of(process / "cmdline"), set = '\0' + text_of(process / "environ");
      const std::string number = "RANK=" + std::to_string(rank) + '\0';
      const bool it = set.find("\0OMPI_COMM_WORLD_"s + number) != set.npos || set.find("\0PMI_"s + number) != set.npos;
      if (words.find("/stretto\0launch\0--as-rank\0"s) != words.npos && it)
        found = parent_of(std::stoi(process.filename()));
    });
    return found;
  }
  bool has_steps(const std::string& run, std::size_t steps) const { return losses(run).size() >= steps; }
  // Loss and gradient norm of every step, with all digits.
  std::vector<std::string> losses(const std::string& run) const {
    static const std::regex numbers(R"re("loss": ?([^,]+),.*"grad_norm": ?([^,]+),)re");
    std::vector<std::string> all;
    std::ifstream lines(folder_ / (run + "/metrics.jsonl"));
    for (std::string line; std::getline(lines, line) && !lines.eof();) {
      std::smatch m;
      EXPECT_TRUE(std::regex_search(line, m, numbers)) << line;
      all.push_back(m[1].str() + " " + m[2].str());
    }
    return all;
  }

  // Neither processes of the run nor files in shared memory.
  void expect_nothing_left() const {
    std::string left;
    EXPECT_TRUE(soon([&] { return (left = processes_here()).empty(); })) << left;
    EXPECT_TRUE(soon([&] { return (left = unused_shared_files()).empty(); })) << left;
  }

 private:
  template <class F>
  static void each_process(F f) {
    for (const auto& entry : std::filesystem::directory_iterator("/proc"))
      if (const std::string name = entry.path().filename(); name.find_first_not_of("0123456789") == name.npos)
        f(entry.path());
  }
  // 0: it is not there any more.
  static pid_t parent_of(pid_t process) {
    const std::string status = text_of("/proc/" + std::to_string(process) + "/status");
    const std::size_t line = status.find("\nPPid:");
    return line == status.npos ? 0 : std::stoi(status.substr(line + 6));
  }
  // Whoever works in the test's folder.
  template <class F>
  void each_process_here(F f) const {
    each_process([&](const std::filesystem::path& process) {
      std::error_code gone;
      if (read_symlink(process / "cwd", gone) == folder_.str() && !gone) f(process);
    });
  }
  std::string processes_here() const {
    std::string all;
    each_process_here([&](const std::filesystem::path& process) {
      all += process.filename().string() + " " + text_of(process / "comm");
    });
    return all;
  }
  // New ones that nobody has mapped; those of other runs on this machine are in use.
  std::string unused_shared_files() const {
    std::set<std::string> files = shared_files();
    for (const std::string& name : before_) files.erase(name);
    if (files.empty()) return "";
    each_process([&](const std::filesystem::path& process) {
      const std::string maps = text_of(process / "maps");
      std::erase_if(files, [&](const std::string& name) { return maps.find("/dev/shm/" + name) != maps.npos; });
    });
    std::string all;
    for (const std::string& name : files) all += name + "\n";
    return all;
  }
  // Without those that MPICH, and UCX below it, have while they start: they remove them as soon as all have mapped
  // them, a kill right before that leaves one, and nothing says whose it was.
  static std::set<std::string> shared_files() {
    std::set<std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
      if (const std::string name = entry.path().filename();
          !name.starts_with("ucx_shm_") && !name.starts_with("mpich_shar_tmp"))
        all.insert(name);
    return all;
  }
  static void remove_all(const std::filesystem::path& path) {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }

  const std::set<std::string> before_ = shared_files();

 protected:
  pid_t launched_ = 0;
};

class OneRankDiffers : public Launched {
 protected:
  // An mpirun under which `words` of the shell are said on one rank before it becomes what it should.
  std::string mpirun_with(int rank, const std::string& words) const {
    folder_.write("rank", "#!/bin/bash\nif [ \"${OMPI_COMM_WORLD_RANK:-$PMI_RANK}\" = " + std::to_string(rank) +
                              " ]; then " + words + "; fi\nexec \"$@\"\n");
    folder_.write("mpirun", "#!/bin/bash\nwords=()\nfor w in \"$@\"; do [ \"$w\" = '" + binaries() +
                                "/stretto' ] && words+=(./rank)\n  words+=(\"$w\"); done\nexec " + mpirun_program() +
                                " \"${words[@]}\"\n");
    shell("chmod +x rank mpirun", folder_.str());
    return "--mpirun=" + (folder_ / "mpirun").string();
  }
};

}  // namespace stretto::test
