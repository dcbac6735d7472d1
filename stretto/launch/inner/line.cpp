#include "stretto/launch/inner/line.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <utility>

#include "stretto/base/error.h"

namespace stretto {
namespace {

constexpr std::size_t longest_text = 16384;  // bytes of a word

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

std::string written(const Word& w) {
  return fmt::format("{} {} {} {:.6f} {}\n{}", int(w.kind), w.rank, w.number, w.time, int(w.told),
                     w.text.substr(0, longest_text));
}

std::optional<Word> parsed(const std::string& bytes) {
  Word w;
  int kind = 0, told = 0;
  std::size_t length = 0;
  if (std::sscanf(bytes.c_str(), "%d %d %d %lf %d%zn", &kind, &w.rank, &w.number, &w.time, &told, &length) != 5)
    return {};
  w.kind = Word::Kind(kind);
  w.told = told != 0;
  w.text = bytes.substr(std::min(bytes.size(), length + 1));
  return w;
}

bool put(int fd, const void* bytes, std::size_t count, int flags) {
  ssize_t n = 0;
  do n = send(fd, bytes, count, MSG_NOSIGNAL | flags);
  while (n < 0 && errno == EINTR);
  return n == ssize_t(count);
}

std::optional<std::string> received(int fd) {
  std::array<char, longest_text + 256> bytes;
  ssize_t n = 0;
  // Whoever closes its end before reading everything resets the line; what it said before that can still be read.
  do n = recv(fd, bytes.data(), bytes.size(), 0);
  while (n < 0 && (errno == EINTR || errno == ECONNRESET));
  if (n <= 0) return {};
  return std::string(bytes.data(), n);
}

std::string unguessable() {
  std::uint64_t words[2] = {};
  if (getrandom(words, sizeof words, 0) != sizeof words)
    throw Error("launch", "the system gives no random numbers").as(Error::Kind::run);
  return fmt::format("stretto-{:016x}{:016x}", words[0], words[1]);
}

}  // namespace

Line Line::to(const std::string& name) {
  Line line(new_socket(0));
  const Address address(name);
  if (!line.open() || connect(line.fd_.get(), address.get(), address.length) != 0 || !line.same_user())
    throw Error("launch", "the launch that started this rank cannot be reached: {}", std::strerror(errno))
        .hint("launch is for the ranks of one machine; on several, mpirun or srun starts stretto itself")
        .as(Error::Kind::run);
  return line;
}

bool Line::same_user() {
  ucred who{};
  socklen_t size = sizeof who;
  if (getsockopt(fd_.get(), SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) return false;
  other_ = who.pid;
  errno = EPERM;
  return who.uid == geteuid();
}

bool Line::tell(const Word& w) const {
  const std::string bytes = written(w);
  return put(fd_.get(), bytes.data(), bytes.size(), 0);
}
bool Line::tell(Command c) const { return put(fd_.get(), &c, 1, MSG_DONTWAIT); }
std::optional<Word> Line::word() const {
  const auto bytes = received(fd_.get());
  return bytes ? parsed(*bytes) : std::nullopt;
}
std::optional<Command> Line::command() const {
  const auto bytes = received(fd_.get());
  return bytes ? std::optional(Command(bytes->front())) : std::nullopt;
}

Switchboard::Switchboard() : name_(unguessable()), fd_(new_socket(SOCK_NONBLOCK)) {
  const Address address(name_);
  if (!fd_ || bind(fd_.get(), address.get(), address.length) != 0 || listen(fd_.get(), 4096) != 0)
    throw Error("launch", "no socket can be made: {}", std::strerror(errno)).as(Error::Kind::run);
}
std::optional<Line> Switchboard::accept() const {
  Line line(Fd(accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC)));
  if (!line.open() || !line.same_user()) return {};
  return line;
}

}  // namespace stretto
