// Collectives between threads of one process against what the machine can copy, in one interleaved run: gigabytes read
// and written per second, and as a share of two threads that call memcpy.
//   build/bench/collectives
#include <fmt/format.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "stretto/comm/threads/thread_group.h"

using namespace stretto;

namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double median(std::vector<double> all) {
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

// Seconds of one round, of `rounds` back to back, with a thread for each of n.
double together(int n, int rounds, const std::function<void(int)>& round) {
  std::barrier meet(n + 1);
  std::vector<std::thread> threads;
  for (int m = 0; m < n; ++m)
    threads.emplace_back([&, m] {
      round(m);  // memory is there from now on
      meet.arrive_and_wait();
      for (int i = 0; i < rounds; ++i) round(m);
    });
  meet.arrive_and_wait();
  const double start = now();
  for (std::thread& t : threads) t.join();
  return (now() - start) / rounds;
}

struct Memory {
  explicit Memory(int n, std::size_t in, std::size_t out)
      : from(std::size_t(n), std::vector<std::byte>(in)), to(std::size_t(n), std::vector<std::byte>(out)) {}
  std::vector<std::vector<std::byte>> from, to;
};

// A dense collective of so many bytes: of a member's whole operand or result, whichever is larger.
CollectiveShape shape(CollectiveKind kind, int members, i64 bytes) {
  const i64 box = kind == CollectiveKind::reduce ? bytes / 4 : bytes / 4 / members;
  CollectiveShape s{.kind = kind, .members = members, .axes = {"data"}, .sizes = {box}};
  s.in_strides = s.out_strides = {1};
  if (kind == CollectiveKind::scatter || kind == CollectiveKind::exchange) s.in_step = box;
  if (kind == CollectiveKind::gather || kind == CollectiveKind::exchange) s.out_step = box;
  return s;
}

}  // namespace

int main() {
  constexpr std::size_t copied = 32 << 20;
  Memory copies(2, copied, copied);
  const auto copy_speed = [&] {
    const double t = together(2, 4, [&](int m) {
      std::memcpy(copies.to[std::size_t(m)].data(), copies.from[std::size_t(m)].data(), copied);
    });
    return 2 * 2 * double(copied) / t;
  };
  fmt::print("{:<15} {:>7} {:>9} {:>11} {:>9} {:>10}\n", "kind", "members", "bytes", "us", "GB/s", "of memcpy");
  for (CollectiveKind kind :
       {CollectiveKind::reduce, CollectiveKind::gather, CollectiveKind::scatter, CollectiveKind::exchange})
    for (int members : {2, 4, 8})
      for (i64 bytes : {i64(4) << 10, i64(256) << 10, i64(16) << 20}) {
        const CollectiveShape s = shape(kind, members, bytes);
        Memory memory(members, std::size_t(s.operand()) * 4, std::size_t(s.result()) * 4);
        const double moved = double(CollectiveWork(s).bytes());
        const int rounds = int(std::clamp(2e8 / moved, 3.0, 300.0));
        std::vector<double> seconds, shares;
        for (int i = 0; i < 5; ++i) {
          const double machine = copy_speed();
          ThreadGroup group(members);
          const std::uint32_t what = group.prepare(s);
          seconds.push_back(together(members, rounds, [&](int m) {
            const std::size_t k = std::size_t(m);
            group.wait(m, group.start(m, what, memory.from[k].data(), memory.to[k].data()));
          }));
          shares.push_back(moved / seconds.back() / machine);
        }
        const double t = median(seconds);
        fmt::print("{:<15} {:>7} {:>9} {:>11.1f} {:>9.2f} {:>10.2f}\n", name_of(kind), members, bytes, 1e6 * t,
                   moved / t / 1e9, median(shares));
      }
}
