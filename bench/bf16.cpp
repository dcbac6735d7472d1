// A pipeline of four actors in f32 and in bf16: real kernels, messages over a link that is emulated, and without one.
// bf16 in every form that products have here: by the processor's instructions, and widened, where products gain nothing
// and what a link takes less is due to messages alone.
//   build/bench/bf16 [width = 128] [context = 512] [rounds = 5] [Gbit/s of the link = 10]
// Forms are chosen once per process, so every run is a process of its own; they take turns.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <numeric>

#include "stretto/base/text.h"
#include "stretto/kernels/cpu/bf16_tiles.h"
#include "stretto/kernels/cpu/products.h"
#include "stretto/models/family.h"
#include "stretto/stretto.h"

using namespace stretto;

namespace {

constexpr int actors = 4, microbatches = 8, rows = 2, steps = 3;  // steps: of a process, after one that is not counted

struct Shape {
  i64 width = 128, context = 512;
  double gigabits = 10;  // of the link
};
struct Kind {
  std::string name, kernels;  // kernels: the best form that is allowed; empty: that of this processor
  DType dtype, state;
};
struct Measured {
  double seconds = 1e9;
  double sent = 0, planned = 0;  // bytes of a step, and of the actor that needs the most
};

Batch some_ids(i64 context) {
  std::vector<std::int32_t> ids;
  for (i64 i = 0; i < microbatches * rows * context; ++i) ids.push_back(std::int32_t(i * 7919 % 256));
  const Array all = Array::of<std::int32_t>(ids, {microbatches * rows, context});
  return {{"ids", all}, {"targets", all}};
}

double planned(const Program& p) {
  u64 most = 0;
  for (const ActorProgram& a : p.actors) most = std::max(most, std::accumulate(a.bytes.begin(), a.bytes.end(), u64(0)));
  return double(most);
}
double sent(const Program& p) {
  u64 bytes = 0;
  for (const Transfer& t : p.transfers)
    for (const Extent& e : t.extents) bytes += e.bytes;
  return double(bytes);
}

// In a process of its own.
void measure(DType dtype, DType state, bool link, const Shape& s) {
  const ModelConfig c{.family = "gpt2", .layers = 4, .width = s.width, .heads = 4, .context = s.context, .vocab = 256};
  Optimizer o = adamw();
  o.state_dtype = state;
  RunOptions run;
  if (link) run.link = Link{.latency = 10e-6, .bandwidth = s.gigabits * 1e9 / 8};
  Trainer t(compile(make_model(c, microbatches * rows), o, {.microbatches = microbatches, .dtype = dtype},
                    {.mesh = {{"pipe", actors}}, .schedule = "1f1b"}),
            run);
  const Batch batch = some_ids(s.context);
  t.step(batch);
  double best = 1e9;
  for (int i = 0; i < steps; ++i) best = std::min(best, t.step(batch).seconds);
  fmt::print("{} {} {}\n", best, sent(*t.compiled().program), planned(*t.compiled().program));
}

Measured measured(const Kind& k, bool link, const Shape& s) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string kernels = k.kernels.empty() ? "" : "STRETTO_KERNELS=" + k.kernels + " ";
  const std::string command = fmt::format("{}'{}' --one {} {} {} {} {} {}", kernels, self, name_of(k.dtype),
                                          name_of(k.state), int(link), s.width, s.context, s.gigabits);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> out(popen(command.c_str(), "r"), &pclose);
  Measured m;
  if (!out || std::fscanf(out.get(), "%lf %lf %lf", &m.seconds, &m.sent, &m.planned) != 3)
    throw Error("bf16", "'{}' printed no numbers", command);
  return m;
}

struct Row {
  Kind kind;
  Measured with, without;  // a link
};

void compare(const Shape& s, int rounds) {
  std::vector<Row> all{{{"f32", "", f32, f32}}, {{"bf16, widened", "avx512", bf16, f32}}};
  if (const std::string form(bf16_form()); !form.empty()) {
    all.push_back({{"bf16, " + form, "", bf16, f32}});
    all.push_back({{"bf16, " + form + ", states too", "", bf16, bf16}});
  }
  for (int round = 0; round < rounds; ++round)
    for (Row& r : all)
      for (Measured* m : {&r.with, &r.without}) {
        const Measured now = measured(r.kind, m == &r.with, s);
        if (now.seconds < m->seconds) *m = now;
      }
  std::vector<std::vector<std::string>> lines{{"run", "messages", "most memory", "with link, ms", "no link, ms",
                                               "link takes", "f32 / this, with link", "without"}};
  const auto ms = [](double seconds) { return fmt::format("{:.1f}", seconds * 1e3); };
  for (const Row& r : all)
    lines.push_back({r.kind.name, human_bytes(r.with.sent), human_bytes(r.with.planned), ms(r.with.seconds),
                     ms(r.without.seconds), ms(r.with.seconds - r.without.seconds),
                     fmt::format("{:.2f}", all[0].with.seconds / r.with.seconds),
                     fmt::format("{:.2f}", all[0].without.seconds / r.without.seconds)});
  fmt::print(
      "GPT, 4 layers, width {}, context {}; {} actors, {} microbatches of {}; {} Gbit/s; products of f32: {}\n{}",
      s.width, s.context, actors, microbatches, rows, s.gigabits, choose_product_form(), table(lines));
}

}  // namespace

int main(int argc, char** argv) try {
  const auto number = [&](int i, i64 otherwise) { return argc > i ? std::atoll(argv[i]) : otherwise; };
  const auto real = [&](int i, double otherwise) { return argc > i ? std::atof(argv[i]) : otherwise; };
  if (argc > 6 && std::string(argv[1]) == "--one")
    measure(dtype_named(argv[2]).value_or(f32), dtype_named(argv[3]).value_or(f32), number(4, 0) != 0,
            {number(5, 128), number(6, 512), real(7, 10)});
  else
    compare({number(1, 128), number(2, 512), real(4, 10)}, int(number(3, 5)));
  return 0;
} catch (const Error& e) {
  fmt::print(stderr, "{}\n", e.what());
  return e.exit_code();
}
