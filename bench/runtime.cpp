// What the runtime itself costs: per action without work, per message, to wake a sleeping receiver.
//   build/bench/runtime
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "stretto/base/text.h"
#include "stretto/comm/threads/thread_transport.h"
#include "stretto/models/family.h"
#include "stretto/stretto.h"

using namespace stretto;

namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

template <class Measure>
double median(Measure measure, int rounds = 21) {
  std::vector<double> all;
  for (int i = 0; i < rounds; ++i) all.push_back(measure());
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

// Tasks that take no time at all on real actors.
double per_action(int actors, const char* schedule) {
  const int microbatches = 256;
  Trainer t(compile(make_model({.family = "mlp", .layers = 1, .width = 8, .vocab = 8}, microbatches), sgd(),
                    {.microbatches = microbatches}, {.mesh = {{"pipe", actors}}, .schedule = schedule}),
            {.device = DeviceKind::emulated, .times = Times{.F = 0, .I = 0, .W = 0}});
  Batch batch;
  for (const TracedInput& in : t.compiled().inputs) {
    std::vector<i64> sizes;
    i64 n = 1;
    for (const Dim& d : in.dims)
      sizes.push_back(d.name == t.compiled().batch ? microbatches : d.size), n *= sizes.back();
    batch[in.name] = Array{in.dtype, sizes, std::vector<std::byte>(std::size_t(n) * size_of(in.dtype))};
  }
  double actions = 0;
  for (const Row& row : t.compiled().program->schedule.rows) actions = std::max(actions, double(row.size()));
  return median([&] { return t.step(batch).seconds; }) / actions;
}

// Two actors' memory and one transfer per message, without a model behind it.
struct Line {
  Program program;
  std::vector<std::vector<std::byte>> memory;
  std::vector<ArenaBases> arenas;
  Line(std::uint32_t messages, u64 bytes) : memory(2, std::vector<std::byte>(bytes * 2)), arenas(2) {
    program.actors.resize(2);
    program.routes.push_back({ActorId(0), ActorId(1), bytes, "there"});
    program.routes.push_back({ActorId(1), ActorId(0), bytes, "back"});
    for (std::uint32_t i = 0; i < messages; ++i)
      program.transfers.push_back(
          {.route = RouteId(i % 2),
           .extents = {{.from = {.offset = i % 2 * bytes}, .to = {.offset = i % 2 * bytes}, .bytes = bytes}}});
    for (int a = 0; a < 2; ++a) arenas[std::size_t(a)][Arena::activations] = memory[std::size_t(a)].data();
  }
};

double per_message_awake(u64 bytes) {  // announced before it is wanted
  Line line(2000, bytes);
  ThreadTransport t(line.program, line.arenas);
  std::uint32_t round = 0;
  return median([&] {
           ++round;
           const double start = now();
           for (TransferId i : line.program.transfers.ids()) t.send(i, round);
           for (TransferId i : line.program.transfers.ids()) t.receive(i, round);
           return now() - start;
         }) /
         2000;
}

double one_way(int spins) {  // two threads, one message at a time
  constexpr std::uint32_t n = 2000;
  Line line(n, 64);
  ThreadTransport t(line.program, line.arenas, spins);
  std::uint32_t round = 0;
  return median(
             [&] {
               ++round;
               std::thread other([&] {
                 for (std::uint32_t i = 0; i < n; i += 2)
                   t.receive(TransferId(i), round), t.send(TransferId(i + 1), round);
               });
               const double start = now();
               for (std::uint32_t i = 0; i < n; i += 2)
                 t.send(TransferId(i), round), t.receive(TransferId(i + 1), round);
               const double seconds = now() - start;
               other.join();
               return seconds;
             },
             7) /
         n;
}

}  // namespace

int main() {
  const auto us = [](double s) { return fmt::format("{:.2f}", s * 1e6); };
  std::vector<std::vector<std::string>> rows{{"what", "microseconds"}};
  rows.push_back({"action without work, 1 actor", us(per_action(1, "1f1b"))});
  rows.push_back({"action without work, 2 actors, gpipe (messages and waits included)", us(per_action(2, "gpipe"))});
  rows.push_back({"action without work, 2 actors, 1f1b (messages and waits included)", us(per_action(2, "1f1b"))});
  rows.push_back({"message of 64 bytes, receiver awake (send and receive)", us(per_message_awake(64))});
  rows.push_back({"message of 64 KiB, receiver awake, copy included", us(per_message_awake(65536))});
  rows.push_back({"one way between two threads, the receiver looks before it sleeps", us(one_way(500))});
  rows.push_back({"one way between two threads, the receiver sleeps (wake-up)", us(one_way(0))});
  fmt::print("{}", table(rows));
}
