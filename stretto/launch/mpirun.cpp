#include "stretto/launch/inner/mpirun.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

#include "stretto/base/error.h"
#include "stretto/launch/inner/system.h"

#ifndef STRETTO_MPIRUN
#define STRETTO_MPIRUN ""
#endif

namespace stretto {
namespace {

namespace fs = std::filesystem;

std::string in_path(const std::string& name) {
  if (name.find('/') != std::string::npos) return access(name.c_str(), X_OK) == 0 ? name : "";
  const char* path = std::getenv("PATH");
  std::string all = path ? path : "/usr/bin:/bin";
  for (std::size_t start = 0; start <= all.size();) {
    const std::size_t end = std::min(all.find(':', start), all.size());
    const std::string candidate = all.substr(start, end - start) + "/" + name;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
    start = end + 1;
  }
  return "";
}

bool is_open_mpi(const std::string& mpirun) {
  Pipe pipe;
  const pid_t pid = start_process([&] {
    dup2(pipe.in.get(), 1);
    dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), 2);
    execute({mpirun, "--version"});
  });
  pipe.in.close();
  std::string text;
  while (read_into(text, pipe.out.get())) continue;
  wait_for(pid);
  return text.find("Open MPI") != std::string::npos || text.find("OpenRTE") != std::string::npos;
}

// What is right for ranks of one machine, unless the user has said otherwise: no rank listens on the network, and what
// lies in shared memory lies in one place.
void set_environment(const std::string& scratch) {
  const auto unless_set = [](const char* name, const std::string& value) { setenv(name, value.c_str(), 0); };
  for (const char* name : {"RANK", "WORLD_SIZE"}) unsetenv(name);  // another launcher's, or left over
  setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
  setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  unless_set("OMPI_MCA_btl", "^tcp,ofi");
  unless_set("UCX_TLS", "sm,self");
  if (scratch.empty()) return;
  for (const char* name : {"OMPI_MCA_btl_vader_backing_directory", "OMPI_MCA_osc_sm_backing_directory",
                           "OMPI_MCA_osc_rdma_backing_directory", "OMPI_MCA_orte_tmpdir_base", "UCX_POSIX_DIR"})
    unless_set(name, scratch);
}

std::vector<std::string> command_of(const LaunchOptions& o, const std::string& launch) {
  std::vector<std::string> command;
  if (o.ranks > 1) {
    const std::string mpirun = find_mpirun(o.mpirun);
    command = {mpirun, "-n", std::to_string(o.ranks)};
    const bool each =
        int(std::thread::hardware_concurrency()) / o.ranks == 1;  // a core: it stays there, for one thread
    if (is_open_mpi(mpirun)) command.insert(command.end(), {"--oversubscribe", "--bind-to", each ? "core" : "none"});
  }
  command.insert(command.end(), {o.program, "launch", "--as-rank", launch});
  return command;
}

}  // namespace

std::string find_mpirun(const std::string& wanted) {
  std::vector<std::string> names;
  if (!wanted.empty())
    names = {wanted};
  else
    names = {STRETTO_MPIRUN, "mpirun", "mpiexec"};
  for (const std::string& name : names)
    if (const std::string found = name.empty() ? "" : in_path(name); !found.empty()) return found;
  throw Error("launch", "{} is not there", wanted.empty() ? "no mpirun" : "'" + wanted + "'")
      .hint("install an MPI (Debian: openmpi-bin), or run on the threads of one process: stretto train RUN.toml");
}

fs::path mpirun_log(const fs::path& logs) { return logs / "mpirun.log"; }

pid_t start_mpirun(const LaunchOptions& o, const std::string& launch, const std::string& scratch) {
  const std::vector<std::string> command = command_of(o, launch);
  // What mpirun itself says about ranks that failed is said better by us.
  const bool quiet = o.ranks > 1 && o.console == ConsoleRanks::first;
  const Fd said = quiet ? open_log(mpirun_log(o.logs), O_TRUNC) : Fd();
  const pid_t own = getpid();
  return start_process([&] {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != own) _exit(127);
    set_environment(scratch);
    if (quiet) dup2(said.get(), 2);
    execute(command);
  });
}

}  // namespace stretto
