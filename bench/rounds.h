// What benchmarks of whole steps share: a batch of the reference model, and numbers over interleaved rounds.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "stretto/stretto.h"

namespace stretto {

inline Batch some_batch(int rows, int context) {
  std::vector<std::int32_t> ids, targets;
  std::uint32_t x = 1;
  for (int i = 0; i < rows * context; ++i) ids.push_back(std::int32_t((x = x * 1664525u + 1013904223u) >> 19));
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

// Tokens per second of two independent runs that make one step each, at the same time.
inline double side_by_side(Trainer& one, Trainer& two, const Batch& batch, double tokens) {
  double first = 0, second = 0;
  std::thread other([&] { second = two.step(batch).seconds; });
  first = one.step(batch).seconds;
  other.join();
  return tokens / first + tokens / second;
}

}  // namespace stretto
