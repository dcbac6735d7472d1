#include "stretto/cost/link_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace stretto {
namespace {

constexpr int fit_steps = 40;

// Latency and seconds per byte inside a node, then between nodes.
using Unknowns = std::array<double, 4>;

Unknowns coefficients(const LinkUse& u) { return {u.latencies[0], u.bytes[0], u.latencies[1], u.bytes[1]}; }

double dot(const Unknowns& a, const Unknowns& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3]; }

// Weighted equations in the unknowns, and their least squares.
class Linear {
 public:
  void add(const Unknowns& c, double target, double weight) {
    for (std::size_t i = 0; i < 4; ++i) {
      right_[i] += c[i] * target * weight * weight;
      for (std::size_t j = 0; j < 4; ++j) square_[i][j] += c[i] * c[j] * weight * weight;
    }
  }
  // None below 0. Four unknowns have sixteen choices of those that are not 0: all are tried.
  Unknowns solve(unsigned used) const {
    Unknowns best{};
    double least = std::numeric_limits<double>::infinity();
    for (unsigned chosen = 1; chosen < 16; ++chosen) {
      Unknowns x;
      if ((chosen & ~used) != 0 || !solve(chosen, x)) continue;
      bool possible = true;
      for (const double v : x) possible = possible && v >= 0;
      Unknowns product{};
      for (std::size_t i = 0; i < 4; ++i) product[i] = dot(square_[i], x);
      const double error = dot(product, x) - 2 * dot(right_, x);
      if (possible && error < least) least = error, best = x;
    }
    return best;
  }

 private:
  // The chosen ones, the others being 0, by elimination with pivots; false when they cannot be told apart.
  bool solve(unsigned chosen, Unknowns& x) const {
    std::vector<std::size_t> at;
    for (std::size_t i = 0; i < 4; ++i)
      if (chosen >> i & 1) at.push_back(i);
    const std::size_t n = at.size();
    // Latencies are counted in ones and bytes in millions: every unknown is scaled to a diagonal of 1.
    const auto scale = [&](std::size_t i) { return std::sqrt(square_[at[i]][at[i]]); };
    std::vector<std::vector<double>> rows(n, std::vector<double>(n + 1));
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) rows[i][j] = square_[at[i]][at[j]] / (scale(i) * scale(j));
      rows[i][n] = right_[at[i]] / scale(i);
    }
    for (std::size_t k = 0; k < n; ++k) {
      std::size_t best = k;
      for (std::size_t i = k + 1; i < n; ++i)
        if (std::abs(rows[i][k]) > std::abs(rows[best][k])) best = i;
      if (!(std::abs(rows[best][k]) > 1e-10)) return false;
      std::swap(rows[k], rows[best]);
      for (std::size_t i = 0; i < n; ++i) {
        if (i == k) continue;
        const double f = rows[i][k] / rows[k][k];
        for (std::size_t j = k; j <= n; ++j) rows[i][j] -= f * rows[k][j];
      }
    }
    x = {};
    for (std::size_t i = 0; i < n; ++i) x[at[i]] = rows[i][n] / rows[i][i] / scale(i);
    return true;
  }

  std::array<Unknowns, 4> square_{};
  Unknowns right_{};
};

Link link_of(double latency, double per_byte) {
  return {.latency = latency, .bandwidth = per_byte > 0 ? 1 / per_byte : std::numeric_limits<double>::infinity()};
}

}  // namespace

LinkUse message_use(bool between, double bytes) {
  LinkUse u;
  u.latencies[between] = 1;
  u.bytes[between] = bytes;
  return u;
}

LinkUse collective_use(const CollectiveShape& s, int ranks_per_node, std::span<const int> ranks) {
  LinkUse u;
  const Link latency{.latency = 1}, byte{.bandwidth = 1};
  const auto with = [&](const Link& inside, const Link& between) {
    return collective_seconds(s, Cluster{.inside = inside, .between = between, .ranks_per_node = ranks_per_node},
                              ranks);
  };
  u.latencies = {with(latency, {}), with({}, latency)};
  u.bytes = {with(byte, {}), with({}, byte)};
  return u;
}

double seconds(const LinkFit& f, const LinkUse& u) {
  return u.latencies[0] * f.inside.latency + u.bytes[0] / f.inside.bandwidth + u.latencies[1] * f.between.latency +
         u.bytes[1] / f.between.bandwidth;
}

LinkFit fit_links(std::span<const LinkSample> samples) {
  std::vector<LinkSample> usable;
  unsigned used = 0;
  for (const LinkSample& s : samples) {
    if (!(s.seconds > 0)) continue;
    usable.push_back(s);
    const Unknowns c = coefficients(s.use);
    for (std::size_t i = 0; i < 4; ++i)
      if (c[i] > 0) used |= 1u << i;
  }
  // Logarithms of errors are made small step by step: each time they are linear around what was found before. The first
  // time relative errors are.
  Unknowns x{};
  for (int step = 0; step < fit_steps; ++step) {
    Linear linear;
    for (const LinkSample& s : usable) {
      const Unknowns c = coefficients(s.use);
      const double predicted = step == 0 ? 0 : dot(c, x);
      if (predicted > 0)
        linear.add(c, predicted * (1 + std::clamp(std::log(s.seconds / predicted), -1.0, 1.0)), 1 / predicted);
      else
        linear.add(c, s.seconds, 1 / s.seconds);
    }
    x = linear.solve(used);
  }
  return {.inside = link_of(x[0], x[1]),
          .between = link_of(x[2], x[3]),
          .has_inside = (used & 3u) != 0,
          .has_between = (used & 12u) != 0};
}

}  // namespace stretto
