#include "stretto/launch/inner/scratch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <filesystem>
#include <limits>
#include <new>

#include "stretto/base/text.h"

namespace stretto {
namespace {

constexpr const char* shared_memory = "/dev/shm";
constexpr double little = 16 << 20;  // bytes: what MPI makes for a few ranks may not fit

void remove(const std::string& path) try {
  std::error_code ignored;
  if (!path.empty()) std::filesystem::remove_all(path, ignored);
} catch (const std::bad_alloc&) {  // a run ends as it ends
}

// Knows nothing of terminals, folders and signals that end runs.
void keep(const std::string& path, const Pipe& alive) {
  setsid();
  for (const int s : {SIGINT, SIGTERM, SIGHUP}) signal(s, SIG_IGN);
  dup2(alive.out.get(), 3);
  for (const int fd : {0, 1, 2}) dup2(3, fd);  // in place of our console
  close_range(4, std::numeric_limits<unsigned>::max(), 0);
  std::string nothing;
  [[maybe_unused]] const int out_of_the_way = chdir("/");  // of who removes the folder that we were started in
  while (read_into(nothing, 3)) continue;
  remove(path);
}

}  // namespace

Scratch::Scratch(const std::string& name) : path_(std::string(shared_memory) + "/" + name) {
  keeper_ = start_process([this] { keep(path_, alive_); });  // before there is anything to remove
  alive_.out.close();
  fcntl(alive_.in.get(), F_SETFD, 0);  // mpirun has it, too: it makes files until its end
  if (mkdir(path_.c_str(), 0700) != 0) path_.clear();
}

Scratch::~Scratch() {
  remove(path_);
  ::kill(keeper_, SIGKILL);
  wait_for(keeper_);
}

std::string Scratch::full() {
  struct statvfs info {};
  if (statvfs(shared_memory, &info) != 0) return "";
  const double unit = double(info.f_frsize), room = double(info.f_bavail) * unit;
  if (room >= little && (info.f_files == 0 || info.f_ffree > 0)) return "";
  return fmt::format(
      "{} is full but for {} of {}, and what ranks share lies there; hint: remove what other programs have left there, "
      "or have it larger (docker run --shm-size=1g)",
      shared_memory, human_bytes(room), human_bytes(double(info.f_blocks) * unit));
}

}  // namespace stretto
