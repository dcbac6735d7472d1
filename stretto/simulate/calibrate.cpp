#include "stretto/simulate/calibrate.h"

#include <array>
#include <cmath>

namespace stretto {
namespace {

constexpr double prior_of_rates = 0.3;  // how far logarithms of attention and elements are likely to be off
constexpr double prior_of_runs = 0.05;  // ... and a prediction with the right numbers
constexpr int fit_rounds = 50;

// What is fitted: logarithms of factor, attention, elements.
using Logs = std::array<double, 3>;

CalibrationFit fit_of(const Logs& x) { return {std::exp(x[0]), std::exp(x[1]), std::exp(x[2])}; }

double total(const Spent& s) { return s.busy() + s.bubble; }

double badness(const Logs& x, std::span<const MeasuredRun> runs) {
  double sum = 0;
  for (const MeasuredRun& r : runs) {
    const double off = std::log(fit_of(x).seconds(r.predicted) / r.seconds) / prior_of_runs;
    sum += off * off;
  }
  for (double rate : {x[1], x[2]}) sum += rate / prior_of_rates * rate / prior_of_rates;
  return sum;
}

// The factor that suits the rest: the mean of what is left.
void settle_factor(Logs& x, std::span<const MeasuredRun> runs) {
  double sum = 0;
  for (const MeasuredRun& r : runs) sum += std::log(r.seconds / fit_of(x).seconds(r.predicted));
  x[0] += sum / runs.size();
}

}  // namespace

// A bubble is as long as the work around it.
double CalibrationFit::seconds(const Spent& s) const {
  const double busy = s.busy() + (attention - 1) * s.attention + (elements - 1) * s.elements;
  return factor * busy * (s.busy() > 0 ? total(s) / s.busy() : 1);
}

CalibrationFit fit_runs(std::span<const MeasuredRun> runs) {
  Logs x{};
  settle_factor(x, runs);
  if (runs.size() < runs_for_rates) return fit_of(x);
  // Two numbers near 0: coordinate by coordinate, with steps that get smaller, is enough.
  double step = 0.2;
  for (int round = 0; round < fit_rounds; ++round) {
    bool better = false;
    for (std::size_t rate : {1u, 2u})
      for (double change : {step, -step}) {
        Logs y = x;
        y[rate] += change;
        settle_factor(y, runs);
        if (badness(y, runs) < badness(x, runs)) x = y, better = true;
      }
    if (!better) step /= 2;
  }
  return fit_of(x);
}

Calibration calibrate(std::span<const MeasuredRun> runs) {
  if (runs.empty()) throw Error("calibrate", "no run was measured").hint("give at least one");
  Calibration c{.fit = fit_runs(runs)};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto off = [&](const CalibrationFit& f) { return f.seconds(runs[i].predicted) / runs[i].seconds - 1; };
    c.before.push_back(off({}));
    c.after.push_back(off(c.fit));
    std::vector<MeasuredRun> others(runs.begin(), runs.end());
    others.erase(others.begin() + i);
    if (!others.empty()) c.left_out.push_back(off(fit_runs(others)));
  }
  return c;
}

double mean_error(std::span<const double> offs) {
  double sum = 0;
  for (double x : offs) sum += std::abs(x);
  return offs.empty() ? 0 : sum / offs.size();
}

}  // namespace stretto
