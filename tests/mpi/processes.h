// Runs of several processes: a folder with a small run file, started as a user would.
#pragma once
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <regex>

#include "stretto/comm/peers.h"
#include "support/command.h"
#include "support/files.h"

namespace stretto::test {

class Processes : public testing::Test {
 protected:
  Processes() {
    std::filesystem::create_directory_symlink(STRETTO_SOURCE "/examples", folder_ / "examples");
    folder_.write("small.toml", R"([model]
layers = 3
width = 32
heads = 2
context = 16
dropout = 0.1
tied = true
[data]
path = "examples/data/tales.txt"
validation = 0.1
[train]
steps = 4
batch = 8
microbatches = 4
validate = 2
validate_batches = 2
[parallel]
timeout = 20
[optimizer]
schedule = "constant"
[checkpoint]
every = 2
[log]
every = 1
)");
  }
  void SetUp() override {
    if (!has_mpi()) GTEST_SKIP() << "built without MPI";
  }
  Result run(const std::string& arguments) const { return stretto(arguments, folder_.str()); }
  Result launch(int ranks, const std::string& arguments, const std::string& flags = "") const {
    return run("launch -n " + std::to_string(ranks) + " --logs=logs " + flags + " -- " + arguments);
  }
  // What must be the same: losses, gradient norms and the hash of the parameters.
  static std::vector<std::string> numbers(const std::string& out) {
    std::vector<std::string> all;
    static const std::regex row(R"( +(\d+ +[\d.]+ +[\d.]+ +[\d.e+-]+) .*?(validation loss [\d.]+)?)"),
        hash("parameters [0-9a-f]{16}");
    std::istringstream lines(out);
    for (std::string line; std::getline(lines, line);) {
      std::smatch m;
      if (std::regex_match(line, m, row)) all.push_back(m[1].str() + " " + m[2].str());
      if (std::regex_match(line, hash)) all.push_back(line);
    }
    return all;
  }
  static std::string mpirun_program() {
    const char* other = std::getenv("STRETTO_TEST_MPIRUN");
    return other ? other : STRETTO_MPIRUN;
  }
  // mpirun with what root and too few cores need.
  static std::string mpirun(int ranks) {
    const std::string program = "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 " + mpirun_program();
    static const bool open = shell(program + " --version", "/").out.find("open-mpi") != std::string::npos;
    return program + (open ? " --oversubscribe --bind-to none" : "") + " -n " + std::to_string(ranks) + " ";
  }
  std::string log(int rank) const { return text_of(folder_ / ("logs/rank-" + std::to_string(rank) + ".log")); }
  Folder folder_;
};

}  // namespace stretto::test
