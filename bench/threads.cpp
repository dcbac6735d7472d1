// Threads in a rank: one rank whose kernels two threads share, against two independent serial runs side by side on the
// same two cores, what the machine can do at all; and a rank with more threads than there are cores. They take turns,
// because machines are noisy.
//   build/bench/threads [rounds = 6]
//   build/bench/threads asked 2        a step of the reference with two threads for every line that is read
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "rounds.h"
#include "stretto/base/text.h"
#include "stretto/models/family.h"
#include "stretto/stretto.h"
#include "turns.h"

using namespace stretto;

namespace {

constexpr int microbatches = 4, rows = 16, context = 256;

struct Case {
  const char* name;
  i64 width, vocab;
  DType dtype;
};
constexpr Case cases[] = {{"reference", 512, 8192, f32}, {"width 256", 256, 8192, f32}, {"in bf16", 512, 8192, bf16}};
constexpr int thread_counts[] = {1, 2, 8};

Compiled compiled(const Case& m, int threads) {
  const ModelConfig config{
      .family = "gpt2", .layers = 4, .width = m.width, .heads = 8, .context = context, .vocab = m.vocab, .tied = false};
  return compile(make_model(config, rows), adamw({.lr = 3e-4}),
                 {.microbatches = microbatches, .dtype = m.dtype, .clip = 1}, {.threads = threads});
}

void measure(const Case& m, int rounds, std::vector<std::vector<std::string>>& lines) {
  const Batch batch = some_batch(rows, context, unsigned(m.vocab));
  const double tokens = double(rows) * context;
  Trainer one(compiled(m, 1), {}), two(compiled(m, 1), {});
  std::vector<std::unique_ptr<Trainer>> trainers;
  for (const int threads : thread_counts)
    trainers.push_back(std::make_unique<Trainer>(compiled(m, threads), RunOptions{}));
  const Turns turns = take_turns(
      rounds, int(trainers.size()), 3, [&] { return side_by_side(one, two, batch, tokens); },
      [&](int r) { return MeasuredTurn{.speed = tokens / trainers[r]->step(batch).seconds, .other = {}}; });
  lines.push_back({m.name, "two serial runs", fmt::format("{:.0f}", median(turns.limits)), "1"});
  for (std::size_t r = 0; r < trainers.size(); ++r)
    lines.push_back({"", fmt::format("1 rank × {} thread{}", thread_counts[r], r == 0 ? "" : "s"),
                     fmt::format("{:.0f}", median(turns.speeds[r])), interval(turns.shares[r])});
}

// For a program that takes turns with it: tokens per second, line by line.
void asked(int threads) {
  const Batch batch = some_batch(rows, context);
  Trainer trainer(compiled(cases[0], threads), {});
  while (std::getchar() != EOF) {
    fmt::print("{:.1f}\n", double(rows) * context / trainer.step(batch).seconds);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "asked") return asked(std::atoi(argv[2])), 0;
  std::vector<std::vector<std::string>> lines{{"model", "run", "tok/s", "of the limit"}};
  for (const Case& m : cases) measure(m, argc > 1 ? std::atoi(argv[1]) : 6, lines);
  fmt::print("{}", table(lines));
}
