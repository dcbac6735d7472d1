// f32 against bf16, in every form that products of bf16 have here: by the processor's instructions, and widened, where
// products gain nothing. First a step on one core, its processor time; then a pipeline of four actors with real
// kernels, its messages over a link that is emulated, and without one.
//   build/bench/bf16 [rounds = 3] [Gbit/s of the link = 10]
// Forms are chosen once per process, so every run is a process of its own; they take turns.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <numeric>

#include "stretto/base/text.h"
#include "stretto/kernels/cpu/bf16_tiles.h"
#include "stretto/kernels/cpu/product_forms.h"
#include "stretto/models/family.h"
#include "stretto/stretto.h"

using namespace stretto;

namespace {

constexpr int steps = 3;  // of a process, after one that is not counted

struct Shape {
  i64 width = 512, context = 512, rows = 4;  // rows: of a microbatch
  int actors = 1, microbatches = 1;
  double gigabits = 0;  // of the link; 0: none
};
struct Kind {
  std::string name, kernels;  // kernels: the best form that is allowed; empty: that of this processor
  DType dtype, state;
};
struct Measured {
  double seconds = 1e9;
  double sent = 0, planned = 0;  // bytes of a step, and of the actor that needs the most
};

Batch some_ids(const Shape& s) {
  const i64 rows = s.microbatches * s.rows;
  std::vector<std::int32_t> ids;
  for (i64 i = 0; i < rows * s.context; ++i) ids.push_back(std::int32_t(i * 7919 % 256));
  const Array all = Array::of<std::int32_t>(ids, {rows, s.context});
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

double processor_time() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

// In a process of its own.
void measure(DType dtype, DType state, const Shape& s) {
  const ModelConfig c{.family = "gpt2", .layers = 4, .width = s.width, .heads = 4, .context = s.context, .vocab = 256};
  Optimizer o = adamw();
  o.state_dtype = state;
  RunOptions run;
  if (s.gigabits > 0) run.link = Link{.latency = 10e-6, .bandwidth = s.gigabits * 1e9 / 8};
  Parallel parallel;
  if (s.actors > 1) parallel = {.mesh = {{"pipe", s.actors}}, .schedule = "1f1b"};
  Trainer t(
      compile(make_model(c, s.microbatches * s.rows), o, {.microbatches = s.microbatches, .dtype = dtype}, parallel),
      run);
  const Batch batch = some_ids(s);
  t.step(batch);
  double best = 1e9;
  for (int i = 0; i < steps; ++i) {
    const double before = processor_time(), took = t.step(batch).seconds;
    best = std::min(best, s.actors > 1 ? took : processor_time() - before);
  }
  fmt::print("{} {} {}\n", best, sent(*t.compiled().program), planned(*t.compiled().program));
}

Measured measured(const Kind& k, const Shape& s) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string kernels = k.kernels.empty() ? "" : "STRETTO_KERNELS=" + k.kernels + " ";
  const std::string command =
      fmt::format("{}'{}' --one {} {} {} {} {} {} {} {}", kernels, self, name_of(k.dtype), name_of(k.state), s.width,
                  s.context, s.rows, s.actors, s.microbatches, s.gigabits);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> out(popen(command.c_str(), "r"), &pclose);
  Measured m;
  if (!out || std::fscanf(out.get(), "%lf %lf %lf", &m.seconds, &m.sent, &m.planned) != 3)
    throw Error("bf16", "'{}' printed no numbers", command);
  return m;
}

// Everybody's best, over rounds in turn: one per kind and shape.
using Table = std::vector<std::vector<Measured>>;
Table in_turn(const std::vector<Kind>& kinds, const std::vector<Shape>& shapes, int rounds) {
  Table all(kinds.size(), std::vector<Measured>(shapes.size()));
  for (int round = 0; round < rounds; ++round)
    for (std::size_t k = 0; k < kinds.size(); ++k)
      for (std::size_t s = 0; s < shapes.size(); ++s) {
        const Measured now = measured(kinds[k], shapes[s]);
        if (now.seconds < all[k][s].seconds) all[k][s] = now;
      }
  return all;
}

std::string ms(double seconds) { return fmt::format("{:.1f}", seconds * 1e3); }
std::string times(const Measured& f32, const Measured& m) { return fmt::format("{:.2f}", f32.seconds / m.seconds); }

void one_core(const std::vector<Kind>& kinds, int rounds) {
  const Shape s;
  const Table all = in_turn(kinds, {s}, rounds);
  std::vector<std::vector<std::string>> lines{{"one core", "memory", "ms", "f32 / this", "at least"}};
  for (std::size_t k = 0; k < kinds.size(); ++k)
    lines.push_back({kinds[k].name, human_bytes(all[k][0].planned), ms(all[k][0].seconds), times(all[0][0], all[k][0]),
                     k == 0 ? "" : "0.90"});
  fmt::print("GPT, 4 layers, width {}, context {}, {} rows; products of f32: {}\n{}\n", s.width, s.context, s.rows,
             product_form<float>().name, table(lines));
}

void four_actors(const std::vector<Kind>& kinds, int rounds, double gigabits) {
  const Shape s{.width = 128, .rows = 2, .actors = 4, .microbatches = 8, .gigabits = gigabits};
  Shape alone = s;
  alone.gigabits = 0;
  const Table all = in_turn(kinds, {s, alone}, rounds);
  std::vector<std::vector<std::string>> lines{{"pipe=4", "messages", "most memory", "with link, ms", "no link, ms",
                                               "link takes", "f32 / this, with link", "more than", "without"}};
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    const Measured &with = all[k][0], &without = all[k][1];
    lines.push_back({kinds[k].name, human_bytes(with.sent), human_bytes(with.planned), ms(with.seconds),
                     ms(without.seconds), ms(with.seconds - without.seconds), times(all[0][0], with), k == 0 ? "" : "1",
                     times(all[0][1], without)});
  }
  fmt::print("GPT, 4 layers, width {}, context {}; {} actors, {} microbatches of {}; {} Gbit/s\n{}", s.width, s.context,
             s.actors, s.microbatches, s.rows, s.gigabits, table(lines));
}

}  // namespace

int main(int argc, char** argv) try {
  const auto number = [&](int i, i64 otherwise) { return argc > i ? std::atoll(argv[i]) : otherwise; };
  const auto real = [&](int i, double otherwise) { return argc > i ? std::atof(argv[i]) : otherwise; };
  if (argc == 10 && std::string(argv[1]) == "--one") {
    measure(dtype_named(argv[2]).value_or(f32), dtype_named(argv[3]).value_or(f32),
            {number(4, 0), number(5, 0), number(6, 0), int(number(7, 0)), int(number(8, 0)), real(9, 0)});
    return 0;
  }
  std::vector<Kind> kinds{{"f32", "", f32, f32}, {"bf16, widened", "avx512", bf16, f32}};
  if (const std::string form(bf16_form()); !form.empty()) {
    kinds.push_back({"bf16, " + form, "", bf16, f32});
    kinds.push_back({"bf16, " + form + ", states too", "", bf16, bf16});
  }
  const int rounds = int(number(1, 3));
  one_core(kinds, rounds);
  four_actors(kinds, rounds, real(2, 10));
  return 0;
} catch (const Error& e) {
  fmt::print(stderr, "{}\n", e.what());
  return e.exit_code();
}
