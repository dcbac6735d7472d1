// What benchmarks of whole steps share: a batch of the reference model, numbers over interleaved rounds, and where a
// step's time goes.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "stretto/base/text.h"
#include "stretto/stretto.h"

namespace stretto {

inline Batch some_batch(int rows, int context, unsigned vocab = 8192) {
  std::vector<std::int32_t> ids, targets;
  std::uint32_t x = 1;
  for (int i = 0; i < rows * context; ++i)
    ids.push_back(std::int32_t(((x = x * 1664525u + 1013904223u) >> 19) % vocab));
  targets.assign(ids.begin() + 1, ids.end());
  targets.push_back(0);
  return {{"ids", Array::of<std::int32_t>(ids, {rows, context})},
          {"targets", Array::of<std::int32_t>(targets, {rows, context})}};
}

inline double median(std::vector<double> all) {
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}
inline std::string interval(std::vector<double> all) {
  std::sort(all.begin(), all.end());
  return fmt::format("{:.3f} [{:.3f}, {:.3f}]", all[all.size() / 2], all.front(), all.back());
}

// Where the time of one step goes, after one to get warm. The trainer was made with TrainerOptions::profile.
inline void print_profile(Trainer& trainer, const Batch& batch) {
  trainer.step(batch);
  const auto before = trainer.profile();
  const auto start = std::chrono::steady_clock::now();
  trainer.step(batch);
  const double total = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const auto times = trainer.profile();
  std::map<std::string, std::pair<double, i64>> by_op;
  for (std::size_t i = 0; i < times.size(); ++i) {
    auto& [seconds, runs] = by_op[times[i].op + " (" + times[i].kernel + ")"];
    seconds += times[i].seconds - before[i].seconds, runs += times[i].runs - before[i].runs;
  }
  std::vector<std::pair<std::string, std::pair<double, i64>>> sorted(by_op.begin(), by_op.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second.first > b.second.first; });
  std::vector<std::vector<std::string>> rows{{"kernel", "ms", "share", "calls"}};
  const auto line = [&](const std::string& name, double seconds, const std::string& runs) {
    rows.push_back({name, fmt::format("{:.1f}", seconds * 1e3), fmt::format("{:.2f}%", 100 * seconds / total), runs});
  };
  double rest = total;
  for (const auto& [name, t] : sorted) line(name, t.first, fmt::format("{}", t.second)), rest -= t.first;
  line("between kernels", rest, "");
  fmt::print("{}", table(rows));
}

}  // namespace stretto
