// Losses of a small model in f32 and in bf16, and of runs whose parameters have noise of the size of a bf16 rounding:
// whether two runs part because of the arithmetic, or because any small difference grows.
//   build/bench/losses [family = llama] [seed = 1] [peak of the rate = 1e-3] [draws of noise = 1] [steps = 200]
// Prints, per run, its last smoothed loss and the largest difference of smoothed losses from f32 and from bf16.
//   build/bench/losses bar
// Prints whether bf16 is as near to f32 as it should be: both families, three seeds.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>

#include "stretto/base/philox.h"
#include "stretto/base/text.h"
#include "stretto/models/family.h"
#include "stretto/stretto.h"

using namespace stretto;

namespace {

constexpr i64 rows = 16, context = 64;
constexpr double bar = 0.001, bar_peak = 5e-4;  // the largest difference that is allowed, and the rate it is for
constexpr double half_step = 1.0 / 512;         // of bf16, relative: the most that rounding changes a number by

struct Course {
  std::string family;
  u64 seed = 1;
  double peak = 1e-3;
  int steps = 200;
};

// The same stretches of text for every run.
Batch lesson(const std::string& text, u64 step) {
  std::vector<std::int32_t> ids, targets;
  for (i64 r = 0; r < rows; ++r) {
    const double u = uniform_at(philox_key(step, "rows"), u64(r));
    const std::size_t first = std::size_t(u * double(text.size() - std::size_t(context) - 1));
    for (std::size_t i = first; i < first + std::size_t(context); ++i) {
      ids.push_back(static_cast<unsigned char>(text[i]));
      targets.push_back(static_cast<unsigned char>(text[i + 1]));
    }
  }
  return {{"ids", Array::of<std::int32_t>(ids, {rows, context})},
          {"targets", Array::of<std::int32_t>(targets, {rows, context})}};
}

// When the parameters get noise: never, before the first step, or in every step, which sees them with noise and changes
// them without.
enum class Noise { none, once, always };
struct Variant {
  DType dtype;
  Noise noise = Noise::none;
  u64 draw = 0;
  std::string str() const {
    const char* when[] = {"", ", noise at the start {}", ", noise in every step {}"};
    return fmt::format("{}{}", name_of(dtype), fmt::format(fmt::runtime(when[int(noise)]), draw));
  }
};

// Every number times 1 + sign * half_step * [-1, 1); the same numbers for the same key.
void add_noise(Array& a, const PhiloxKey& key, float sign, const Array& of) {
  auto* x = reinterpret_cast<float*>(a.bytes.data());
  const auto* size = reinterpret_cast<const float*>(of.bytes.data());
  for (std::size_t i = 0; i < a.bytes.size() / sizeof(float); ++i)
    x[i] += sign * size[i] * float(half_step * (2 * uniform_at(key, i) - 1));
}

double noisy_step(Trainer& t, const Batch& batch, u64 draw, bool for_good) {
  std::map<std::string, Array> before;
  for (const CompiledParam& p : t.compiled().params) {
    Array a = before[p.name] = t.parameter(p.name);
    add_noise(a, philox_key(draw, p.name), 1, before[p.name]);
    t.set_parameter(p.name, a);
  }
  const double loss = t.step(batch).loss;
  for (const auto& [name, size] : before) {
    if (for_good) break;
    Array a = t.parameter(name);
    add_noise(a, philox_key(draw, name), -1, size);
    t.set_parameter(name, a);
  }
  return loss;
}

// Losses smoothed over ten steps.
std::vector<double> smoothed(const Course& c, const std::string& text, const Variant& run) {
  const ModelConfig model{.family = c.family, .layers = 4, .width = 128, .heads = 4, .context = context, .vocab = 256};
  const LrShape shape{.peak = c.peak, .warmup = 20, .steps = c.steps, .floor = 0.1};
  const Training training{.seed = c.seed, .dtype = run.dtype, .clip = 0.5};
  Trainer t(compile(make_model(model, rows, context), with_lr(adamw(), lr_named("cosine", shape)), training));
  std::vector<double> losses, smooth;
  for (int i = 1; i <= c.steps; ++i) {
    const Batch batch = lesson(text, c.seed * 1000 + u64(i));
    const bool noisy = run.noise == Noise::always || (run.noise == Noise::once && i == 1);
    losses.push_back(noisy ? noisy_step(t, batch, run.draw * 1000 + u64(i), run.noise == Noise::once)
                           : t.step(batch).loss);
    double sum = 0;
    const int from = std::max(0, i - 10);
    for (int k = from; k < i; ++k) sum += losses[std::size_t(k)];
    smooth.push_back(sum / (i - from));
  }
  return smooth;
}

struct Apart {
  double most = 0;  // of a
  std::size_t step = 0;
};
Apart largest(const std::vector<double>& a, const std::vector<double>& b) {
  Apart x;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (const double d = std::abs(a[i] - b[i]) / a[i]; d > x.most) x = {d, i + 1};
  return x;
}
std::string apart(const std::vector<double>& a, const std::vector<double>& b) {
  const Apart x = largest(a, b);
  return x.most > 0 ? fmt::format("{:.2f}% at {}", 100 * x.most, x.step) : "";
}

void hold_against_bar(const std::string& text) {
  std::vector<std::vector<std::string>> lines{{"model", "seed", "bf16 from f32", "at most"}};
  bool kept = true;
  for (const char* family : {"gpt2", "llama"})
    for (const u64 seed : {1, 2, 3}) {
      const Course c{.family = family, .seed = seed, .peak = bar_peak};
      const Apart x = largest(smoothed(c, text, {f32}), smoothed(c, text, {bf16}));
      kept = kept && x.most <= bar;
      lines.push_back({family, fmt::format("{}", seed), fmt::format("{:.3f}%", 100 * x.most), "0.1%"});
    }
  fmt::print("peak {}, 200 steps\n{}{}\n", bar_peak, table(lines), kept ? "the bar is kept" : "the bar is not kept");
}

}  // namespace

int main(int argc, char** argv) try {
  std::ifstream file(STRETTO_SOURCE "/examples/data/tales.txt");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (argc > 1 && std::string_view(argv[1]) == "bar") return hold_against_bar(text), 0;
  Course c{.family = argc > 1 ? argv[1] : "llama"};
  if (argc > 2) c.seed = u64(std::atoll(argv[2]));
  if (argc > 3) c.peak = std::atof(argv[3]);
  const u64 draws = argc > 4 ? u64(std::atoll(argv[4])) : 1;
  if (argc > 5) c.steps = std::atoi(argv[5]);
  std::vector<Variant> runs{{f32}, {bf16}};
  for (u64 draw = 1; draw <= draws; ++draw)
    for (const Variant& r : {Variant{f32, Noise::once, draw}, {f32, Noise::always, draw}, {bf16, Noise::once, draw}})
      runs.push_back(r);
  std::vector<std::vector<std::string>> lines{{"run", "last", "from f32", "from bf16"}};
  std::vector<std::vector<double>> losses;
  for (const Variant& r : runs) losses.push_back(smoothed(c, text, r));
  for (std::size_t i = 0; i < runs.size(); ++i)
    lines.push_back({runs[i].str(), fmt::format("{:.4f}", losses[i].back()), apart(losses[0], losses[i]),
                     apart(losses[1], losses[i])});
  fmt::print("{}, seed {}, peak {}, {} steps\n{}", c.family, c.seed, c.peak, c.steps, table(lines));
  return 0;
} catch (const Error& e) {
  fmt::print(stderr, "{}\n", e.what());
  return e.exit_code();
}
