// Experts against dense models of equal work, many experts against few, documents against one long text, and experts on
// two ranks against two serial runs side by side. One thread but for the last, and its processor time; interleaved
// rounds, because machines are noisy: what is compared runs one after the other in every round, and ratios are taken
// per round.
//   build/bench/experts [rounds = 9] [case ...] [--profile]
// Cases are numbered as they are printed, from 1 (all); --profile: where their steps' time goes, instead of rounds.
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>

#include "rounds.h"
#include "stretto/base/text.h"
#include "stretto/models/family.h"
#include "stretto/stretto.h"
#include "turns.h"

using namespace stretto;

namespace {

bool profile = false;
constexpr i64 vocab = 512, document = 300;

struct Shape {
  i64 rows, context, layers, width;
  int microbatches = 1;
};

// Attention and all sizes but those of the feed-forward part are the same for all.
ModelConfig model(const Shape& s) {
  return {.layers = s.layers,
          .width = s.width,
          .heads = s.width / 64,
          .context = s.context,
          .vocab = vocab,
          .init_std = 0.2};  // a router that has something to choose from
}
ModelConfig dense(const Shape& s, i64 ff) {
  ModelConfig c = model(s);
  c.family = "llama", c.ff = ff;
  return c;
}
ModelConfig experts(const Shape& s, i64 experts, i64 top_k, i64 ff) {
  ModelConfig c = model(s);
  c.family = "mixtral", c.experts = experts, c.top_k = top_k, c.ff = ff;
  return c;
}

// `length`: of the documents that rows are cut into; 0: the model does not ask.
Batch batch_of(const Shape& s, i64 length) {
  std::vector<std::int32_t> ids, targets, segments;
  std::uint32_t x = 1;
  for (i64 i = 0; i < s.rows * s.context; ++i) {
    ids.push_back(std::int32_t((x = x * 1664525u + 1013904223u) >> 10) & 511);
    segments.push_back(std::int32_t(i % s.context / std::max<i64>(length, 1)));
  }
  targets.assign(ids.begin() + 1, ids.end());
  targets.push_back(0);
  const std::vector<i64> sizes{s.rows, s.context};
  Batch b{{"ids", Array::of<std::int32_t>(ids, sizes)}, {"targets", Array::of<std::int32_t>(targets, sizes)}};
  if (length > 0) b.emplace("segments", Array::of<std::int32_t>(segments, sizes));
  return b;
}

struct Run {
  Trainer trainer;
  Batch batch;
  Run(ModelConfig c, const Shape& s, i64 length = 0, const ParallelNames& names = {})
      : trainer(
            [&] {
              c.documents = length > 0;
              return compile(make_model(c, s.rows), adamw({.lr = 1e-5}), {.microbatches = s.microbatches},
                             {.names = names});
            }(),
            {.profile = profile}),
        batch(batch_of(s, length)) {}
  double step() { return trainer.step(batch).seconds; }
  double processor_time() {
    const auto now = [] {
      timespec t;
      clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
      return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
    };
    const double before = now();
    trainer.step(batch);
    return now() - before;
  }
  // What a step needs beside parameters, gradients and the optimizer's state.
  double working() const {
    const ActorProgram& a = trainer.compiled().program->actors[ActorId(0)];
    return double(a.bytes[Arena::activations]) + double(a.bytes[Arena::scratch]);
  }
};

struct Pair {
  std::string name, other_name, bar;
  std::function<std::unique_ptr<Run>()> make_one, make_other;
  std::unique_ptr<Run> one = {}, other = {};
  std::vector<double> seconds = {}, other_seconds = {}, ratios = {};
  void round(bool counts) {
    const double x = one->processor_time(), y = other->processor_time();
    if (!counts) return;
    seconds.push_back(x), other_seconds.push_back(y), ratios.push_back(x / y);
  }
  void profiles() {
    fmt::print("{}\n", name), print_profile(one->trainer, one->batch);
    fmt::print("{}\n", other_name), print_profile(other->trainer, other->batch);
  }
  std::vector<std::string> line() const {
    const double bytes = one->working(), others = other->working();
    return {name,
            other_name,
            fmt::format("{:.0f}", 1e3 * median(seconds)),
            fmt::format("{:.0f}", 1e3 * median(other_seconds)),
            interval(ratios),
            bar,
            human_bytes(bytes),
            human_bytes(others),
            fmt::format("{:.2f}", bytes / others)};
  }
};

std::vector<Pair> pairs() {
  const auto run = [](const ModelConfig& c, const Shape& s, i64 length = 0) {
    return [=] { return std::make_unique<Run>(c, s, length); };
  };
  const Shape few{4, 256, 2, 512}, fine{1, 1024, 1, 512}, many{4, 1024, 1, 512}, text{1, 4096, 2, 256};
  const Shape more{16, 256, 2, 512, 4};  // the update, which all experts need, is a smaller part
  const ModelConfig plain = dense(text, 512);
  std::vector<Pair> all;
  all.push_back({"8 experts, top-2 of width 1024", "dense, width 2048", "1.10", run(experts(few, 8, 2, 1024), few),
                 run(dense(few, 2048), few)});
  all.push_back({"the same, 4 microbatches", "dense, width 2048", "1.10", run(experts(more, 8, 2, 1024), more),
                 run(dense(more, 2048), more)});
  all.push_back({"64 experts, top-8 of width 128", "dense, width 1024", "1.35", run(experts(fine, 64, 8, 128), fine),
                 run(dense(fine, 1024), fine)});
  all.push_back({"64 experts, top-4 of width 128", "8 experts, top-4", "1.20", run(experts(many, 64, 4, 128), many),
                 run(experts(many, 8, 4, 128), many)});
  all.push_back({"4096 tokens, documents of 300", "one text", "1", run(plain, text, document), run(plain, text)});
  // What plain causal attention would take if it had an interval per query.
  all.push_back({"4096 tokens as one document", "one text", "", run(plain, text, text.context), run(plain, text)});
  return all;
}

void one_core(int rounds, const std::vector<std::size_t>& cases) {
  std::vector<Pair> all = pairs(), asked;
  for (std::size_t i : cases)
    if (i <= all.size()) asked.push_back(std::move(all[i - 1]));
  if (asked.empty()) return;
  for (Pair& p : asked) p.one = p.make_one(), p.other = p.make_other();
  for (int round = 0; round <= rounds && !profile; ++round)
    for (Pair& p : asked) p.round(round > 0);
  std::vector<std::vector<std::string>> lines{
      {"step of", "against", "ms", "ms", "ratio", "at most", "working memory", "its", "ratio"}};
  for (Pair& p : asked) profile ? p.profiles() : lines.push_back(p.line());
  if (!profile) fmt::print("{}", table(lines));
}

// Every rank has as many tokens as one serial run.
void two_cores(int rounds) {
  const Shape s{4, 256, 2, 512}, twice{8, 256, 2, 512};
  const ModelConfig c = experts(s, 8, 2, 1024);
  Run one(c, s), two(c, s), both(c, twice, 0, {.expert = 2});
  const double tokens = double(s.rows * s.context);
  std::vector<double> limits, speeds, shares;
  for (int round = 0; round <= rounds; ++round) {
    const double limit = side_by_side(one.trainer, two.trainer, one.batch, tokens), speed = 2 * tokens / both.step();
    if (round > 0) limits.push_back(limit), speeds.push_back(speed), shares.push_back(speed / limit);
  }
  fmt::print("\n{}", table({{"two cores, 8 experts, top-2", "tok/s", "of the limit", "at least"},
                            {"two serial runs", fmt::format("{:.0f}", median(limits)), "1", ""},
                            {"expert=2", fmt::format("{:.0f}", median(speeds)), interval(shares), "0.85"}}));
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::size_t> numbers, cases;
  for (int i = 1; i < argc; ++i)
    if (!std::strcmp(argv[i], "--profile"))
      profile = true;
    else
      numbers.push_back(std::size_t(std::max(1, std::atoi(argv[i]))));
  cases.assign(numbers.begin() + !numbers.empty(), numbers.end());
  if (cases.empty()) cases = {1, 2, 3, 4, 5, 6, 7};
  const int rounds = numbers.empty() ? 9 : int(numbers[0]);
  one_core(rounds, cases);
  if (std::ranges::find(cases, 7) != cases.end() && !profile) two_cores(rounds);
}
