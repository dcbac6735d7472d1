#include "stretto/launch/inner/place.h"

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>

#include "stretto/base/error.h"
#include "stretto/launch/inner/system.h"
#include "stretto/launch/launch.h"

namespace stretto {
namespace {

constexpr std::string_view name_begins = "stretto-", hexadecimal = "0123456789abcdef";
constexpr std::size_t name_digits = 32;
constexpr timeval longest_greeting{.tv_sec = 1, .tv_usec = 0};

// Abstract: the name begins with a zero.
struct Address {
  explicit Address(const std::string& name) {
    name.copy(all.sun_path + 1, sizeof all.sun_path - 1);
    length = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + std::min(name.size(), sizeof all.sun_path - 1));
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&all); }
  sockaddr_un all{.sun_family = AF_UNIX, .sun_path = {}};
  socklen_t length = 0;
};

Fd new_socket(int flags) { return Fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0)); }

// A rank's number with up to two descriptors: where to read from, and the wire.
struct Greeting {
  static constexpr std::size_t most = 2;
  Greeting() {
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
  }
  Greeting(const Greeting&) = delete;
  int rank = 0;
  iovec part{&rank, sizeof rank};
  msghdr message{};
  alignas(cmsghdr) char control[CMSG_SPACE(most * sizeof(int))] = {};
};

bool send(const Fd& line, int rank, const std::vector<int>& fds) {
  Greeting g;
  g.rank = rank;
  g.message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
  cmsghdr* c = CMSG_FIRSTHDR(&g.message);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
  std::memcpy(CMSG_DATA(c), fds.data(), fds.size() * sizeof(int));
  return sendmsg(line.get(), &g.message, MSG_NOSIGNAL) == sizeof g.rank;
}

std::optional<Place> received(Fd line, pid_t holder) {
  Greeting g;
  setsockopt(line.get(), SOL_SOCKET, SO_RCVTIMEO, &longest_greeting, sizeof longest_greeting);
  const ssize_t bytes = recvmsg(line.get(), &g.message, MSG_CMSG_CLOEXEC);
  const cmsghdr* c = bytes < 0 ? nullptr : CMSG_FIRSTHDR(&g.message);
  if (!c || c->cmsg_type != SCM_RIGHTS || c->cmsg_len < CMSG_LEN(sizeof(int))) return {};
  std::vector<int> fds((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
  std::memcpy(fds.data(), CMSG_DATA(c), fds.size() * sizeof(int));
  Place p{.rank = g.rank, .holder = holder, .line = std::move(line)};
  p.input = Fd(fds.at(0));
  if (fds.size() > 1) p.wire = Fd(fds[1]);
  return bytes == sizeof g.rank ? std::optional(std::move(p)) : std::nullopt;
}

std::optional<ucred> other_end(const Fd& line) {
  ucred who{};
  socklen_t size = sizeof who;
  if (getsockopt(line.get(), SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) return {};
  return who;
}

pid_t parent_of(pid_t process) {
  std::ifstream status(fmt::format("/proc/{}/status", process));
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("PPid:")) return std::atoi(line.c_str() + 5);
  return 0;
}
bool descends(pid_t process, pid_t from) {
  while (process != from && process > 1) process = parent_of(process);
  return process == from;
}

std::string unguessable() {
  std::uint64_t words[2] = {};
  if (getrandom(words, sizeof words, 0) != sizeof words)
    throw Error("launch", "the system gives no random numbers").as(Error::Kind::run);
  return fmt::format("{}{:016x}{:016x}", name_begins, words[0], words[1]);
}

bool is_name(std::string_view name) {
  return name.size() == name_begins.size() + name_digits && name.starts_with(name_begins) &&
         name.find_first_not_of(hexadecimal, name_begins.size()) == name.npos;
}

}  // namespace

Places::Places() : name_(unguessable()), fd_(new_socket(SOCK_NONBLOCK)) {
  const Address address(name_);
  if (!fd_ || bind(fd_.get(), address.get(), address.length) != 0 || listen(fd_.get(), 4096) != 0)
    throw Error("launch", "no socket can be made: {}", std::strerror(errno)).as(Error::Kind::run);
}

std::optional<Place> Places::next(pid_t mpirun) const {
  Fd line(accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  const std::optional<ucred> who = line ? other_end(line) : std::nullopt;
  if (!who || who->uid != geteuid() || !descends(who->pid, mpirun)) return {};
  return received(std::move(line), who->pid);
}

void leave(Place& p, int code) {
  const char byte = char(code);
  ::send(p.line.get(), &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
  p.line.close();
}

void adopt_limits(const Place& p) {
  cpu_set_t cores;
  if (sched_getaffinity(p.holder, sizeof cores, &cores) == 0) sched_setaffinity(0, sizeof cores, &cores);
  for (int which = 0; which < RLIM_NLIMITS; ++which) {
    rlimit limit{};
    const auto resource = __rlimit_resource(which);
    if (prlimit(p.holder, resource, nullptr, &limit) == 0) setrlimit(resource, &limit);
  }
}

std::vector<std::string> environment_of(const Place& p) {
  std::vector<std::string> all;
  std::ifstream file(fmt::format("/proc/{}/environ", p.holder));
  for (std::string variable; std::getline(file, variable, '\0');)
    if (!variable.starts_with("PATH=")) all.push_back(variable);
  if (const char* path = std::getenv("PATH")) all.push_back(fmt::format("PATH={}", path));
  return all;
}

int hold_place(const std::string& launch, int rank) {
  if (!is_name(launch))
    throw Error("launch", "'{}' is the name of no launch", launch)
        .hint("--as-rank is for what mpirun starts; stretto launch -n 4 train run.toml")
        .as(Error::Kind::usage);
  const Fd parent = end_of(getppid());
  const Fd line = new_socket(0);
  const Address address(launch);
  const bool there = line && connect(line.get(), address.get(), address.length) == 0;
  const std::optional<ucred> who = there ? other_end(line) : std::nullopt;
  std::vector<int> fds{0};
  if (const char* wire = std::getenv("PMI_FD")) fds.push_back(std::atoi(wire));
  if (!who || who->uid != geteuid() || !send(line, rank, fds))
    throw Error("launch", "the launch that started this rank cannot be reached")
        .hint("launch is for the ranks of one machine; on several, mpirun or srun starts stretto itself")
        .as(Error::Kind::run);
  pollfd ends[] = {{line.get(), POLLIN, 0},
                   {Fd::or_none(parent ? std::optional(parent.get()) : std::nullopt), POLLIN, 0}};
  while (poll(ends, std::size(ends), -1) < 0 && errno == EINTR) continue;
  unsigned char code = 127;
  if (ends[0].revents != 0 && recv(line.get(), &code, 1, 0) != 1) code = 127;
  return code;
}

}  // namespace stretto
