#include "stretto/run/inner/stragglers.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace stretto {
namespace {

constexpr std::size_t window = 8;  // steps: what lasts shorter is noise
constexpr double told_from = 0.10, behind = 0.05;

double middle(std::vector<double> all) {
  const auto half = all.begin() + (all.size() - 1) / 2;
  std::nth_element(all.begin(), half, all.end());
  return *half;
}

}  // namespace

double Stragglers::more(int rank, std::span<const double> worked) const {
  std::vector<double> others;
  const int first = each_ > 1 ? rank / each_ * each_ : 0, last = each_ > 1 ? first + each_ : int(state_.size());
  const auto usual_of = [&](int r) { return each_ > 1 ? 1 : state_[r].first; };
  for (int r = first; r < last; ++r)
    if (r != rank && usual_of(r) > 0) others.push_back(worked[r] / usual_of(r));
  if (others.empty() || usual_of(rank) == 0) return 0;
  const double usual = middle(std::move(others));
  return usual > 0 ? worked[rank] / usual_of(rank) / usual - 1 : 0;
}

std::vector<std::string> Stragglers::step(i64 step, std::span<const double> worked) {
  last_.emplace_back(worked.begin(), worked.end());
  if (last_.size() > window) last_.pop_front();
  std::vector<double> mean(state_.size(), 0);
  for (const std::vector<double>& s : last_)
    for (std::size_t r = 0; r < mean.size(); ++r) mean[r] += s[r] / last_.size();
  std::vector<std::string> lines;
  for (int r = 0; r < std::ssize(state_); ++r) {
    Rank& rank = state_[r];
    const double longer = more(r, mean);
    if (more(r, worked) < behind)
      rank.since = 0;
    else if (rank.since == 0)
      rank.since = step;
    if (longer < behind) rank.told = false;
    if (rank.since == 0 || step - rank.since + 1 < i64(window) || longer < told_from) continue;
    if (std::exchange(rank.told, true)) continue;
    lines.push_back(fmt::format("straggler: rank {} +{:.0f}% since step {}", r, 100 * longer, rank.since));
  }
  if (last_.size() == window)
    for (std::size_t r = 0; r < mean.size(); ++r)
      if (state_[r].first == 0) state_[r].first = mean[r];
  return lines;
}

}  // namespace stretto
