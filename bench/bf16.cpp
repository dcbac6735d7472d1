// A pipeline of four actors in f32 and in bf16: real kernels, and messages over a link of 10 Gbit/s that is emulated.
//   build/bench/bf16 [width = 128] [context = 512] [rounds = 7]
// STRETTO_KERNELS=avx512 shows what is left where the processor has no instructions for bf16.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "stretto/base/text.h"
#include "stretto/kernels/cpu/bf16_tiles.h"
#include "stretto/kernels/cpu/products.h"
#include "stretto/models/family.h"
#include "stretto/stretto.h"

using namespace stretto;

namespace {

constexpr int actors = 4, microbatches = 8, rows = 2;

struct Candidate {
  std::string name;
  std::unique_ptr<Trainer> trainer;
  Batch batch;
  double best = 1e9;
};

Batch some_ids(i64 context) {
  std::vector<std::int32_t> ids;
  for (i64 i = 0; i < microbatches * rows * context; ++i) ids.push_back(std::int32_t(i * 7919 % 256));
  const Array all = Array::of<std::int32_t>(ids, {microbatches * rows, context});
  return {{"ids", all}, {"targets", all}};
}

Candidate candidate(std::string name, DType dtype, DType state, bool link, const ModelConfig& c) {
  Optimizer o = adamw();
  o.state_dtype = state;
  const Parallel parallel{.mesh = {{"pipe", actors}}, .schedule = "1f1b"};
  RunOptions run;
  if (link) run.link = Link{.latency = 10e-6, .bandwidth = 10e9 / 8};
  Compiled compiled =
      compile(make_model(c, microbatches * rows), o, {.microbatches = microbatches, .dtype = dtype}, parallel);
  return {std::move(name), std::make_unique<Trainer>(std::move(compiled), run), some_ids(c.context)};
}

u64 planned(const Program& p) {
  u64 most = 0;
  for (const ActorProgram& a : p.actors) {
    u64 bytes = 0;
    for (const u64 b : a.bytes) bytes += b;
    most = std::max(most, bytes);
  }
  return most;
}

u64 sent(const Program& p) {
  u64 bytes = 0;
  for (const Transfer& t : p.transfers)
    for (const Extent& e : t.extents) bytes += e.bytes;
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  const i64 width = argc > 1 ? std::atoll(argv[1]) : 128, context = argc > 2 ? std::atoll(argv[2]) : 512;
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 7;
  const ModelConfig c{.family = "gpt2", .layers = 4, .width = width, .heads = 4, .context = context, .vocab = 256};
  std::vector<Candidate> all;
  all.push_back(candidate("f32", f32, f32, true, c));
  all.push_back(candidate("bf16", bf16, f32, true, c));
  all.push_back(candidate("bf16, states too", bf16, bf16, true, c));
  all.push_back(candidate("f32, no link", f32, f32, false, c));
  all.push_back(candidate("bf16, no link", bf16, f32, false, c));
  for (int round = 0; round < rounds; ++round)
    for (Candidate& x : all) x.best = std::min(x.best, x.trainer->step(x.batch).seconds);
  std::vector<std::vector<std::string>> table_rows{{"run", "messages", "most memory", "step ms", "beside f32"}};
  for (const Candidate& x : all) {
    const Program& p = *x.trainer->compiled().program;
    table_rows.push_back({x.name, human_bytes(double(sent(p))), human_bytes(double(planned(p))),
                          fmt::format("{:.1f}", x.best * 1e3), fmt::format("{:.2f}", all[0].best / x.best)});
  }
  fmt::print("{}, {} actors, {} microbatches of {}; products of f32: {}, of bf16: {}\n{}", c.str(), actors,
             microbatches, rows, choose_product_form(), bf16_form().empty() ? "widened to f32" : bf16_form(),
             table(table_rows));
}
