#include "stretto/generate/sample.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "stretto/base/error.h"

namespace stretto {

void check(const SampleOptions& o) {
  std::vector<Fault> faults;
  if (!(o.temperature >= 0) || !std::isfinite(o.temperature))
    faults.push_back({"temperature", fmt::format("is {}", o.temperature), "use 0 for the most likely token, or more"});
  if (o.top_k < 0) faults.push_back({"top-k", fmt::format("is {}", o.top_k), "use 0 for all, or more"});
  if (!(o.top_p > 0 && o.top_p <= 1))
    faults.push_back({"top-p", fmt::format("is {}", o.top_p), "use a probability above 0, up to 1"});
  refuse(std::move(faults));
}

std::int32_t sample(std::span<const double> logits, const SampleOptions& o, double u) {
  STRETTO_ASSERT(!logits.empty());
  for (std::size_t i = 0; i < logits.size(); ++i)
    if (std::isnan(logits[i]))
      throw Error("generate", "the logit of token {} is not a number", i)
          .hint("the weights are damaged, or training has diverged")
          .as(Error::Kind::run);
  const auto best = std::max_element(logits.begin(), logits.end());
  if (o.temperature == 0) return best - logits.begin();
  std::vector<std::int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto more_likely = [&](std::int32_t a, std::int32_t b) {
    const double x = logits[a], y = logits[b];
    return x != y ? x > y : a < b;
  };
  const std::size_t some = o.top_k > 0 ? std::min<std::size_t>(ids.size(), o.top_k) : ids.size();
  std::partial_sort(ids.begin(), ids.begin() + some, ids.end(), more_likely);
  ids.resize(some);
  std::vector<double> weights;
  double total = 0;
  for (const std::int32_t id : ids) {
    weights.push_back(std::exp((logits[id] - *best) / o.temperature));
    total += weights.back();
  }
  double kept = 0;
  std::size_t n = 0;
  while (n < weights.size() && (n == 0 || kept < o.top_p * total)) kept += weights[n++];
  double left = u * kept;
  for (std::size_t i = 0; i < n; ++i)
    if ((left -= weights[i]) < 0) return ids[i];
  return ids[n - 1];
}

}  // namespace stretto
