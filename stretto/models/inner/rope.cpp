#include "stretto/models/inner/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace stretto {
namespace {

// How often a pair turns within the context that was trained on.
double turns(const RopeScaling& s, double frequency) { return s.original_context * frequency / (2 * std::numbers::pi); }

// Slow pairs turn `factor` times slower, fast ones as before, and between the two there is a straight line.
double llama3(const RopeScaling& s, double f) {
  const double waves = turns(s, f);
  if (waves < s.low_freq) return f / s.factor;
  if (waves > s.high_freq) return f;
  const double smooth = (waves - s.low_freq) / (s.high_freq - s.low_freq);
  return (1 - smooth) * f / s.factor + smooth * f;
}

// The same over the numbers of pairs: a straight line from the pair that turns beta_fast times to beta_slow's.
void yarn(const RopeScaling& s, double base, std::vector<double>& f) {
  const double turned = 2.0 * f.size();
  const auto pair_with = [&](double waves) {
    return turned * std::log(s.original_context / (waves * 2 * std::numbers::pi)) / (2 * std::log(base));
  };
  double low = pair_with(s.beta_fast), high = pair_with(s.beta_slow);
  if (s.truncate) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0), high = std::min(high, turned - 1);
  if (low == high) high += 0.001;
  double i = 0;
  for (double& x : f) {
    const double slow = std::clamp((i++ - low) / (high - low), 0.0, 1.0);
    x = x / s.factor * slow + x * (1 - slow);
  }
}

double mscale(double weight, double factor) { return factor > 1 ? 0.1 * weight * std::log(factor) + 1 : 1; }

// Every pair has a factor of its own; which list counts is a matter of the whole sequence.
void longrope(const RopeScaling& s, i64 length, RotaryOptions& o) {
  const std::vector<double>& factors = length > s.original_context ? s.long_factor : s.short_factor;
  for (std::size_t i = 0; i < o.frequencies.size(); ++i) o.frequencies[i] /= factors[i];
  const double grown = s.factor > 1 ? std::sqrt(1 + std::log(s.factor) / std::log(s.original_context)) : 1;
  o.scale = s.attention_factor > 0 ? s.attention_factor : grown;
}

}  // namespace

double score_growth(const RopeScaling& s) {
  const double m = s.kind == RopeScaling::Kind::yarn && s.mscale_all_dim > 0 ? mscale(s.mscale_all_dim, s.factor) : 1;
  return m * m;
}

RotaryOptions turns_of(const ModelConfig& c, char kind, i64 length) {
  const bool local = kind == 'w' && c.local_rope_base > 0;
  const double base = local ? c.local_rope_base : c.rope_base;
  RotaryOptions o{.frequencies = rotary_frequencies(base, c.rope_dim ? c.rope_dim : c.head_dim),
                  .interleaved = c.rope_interleaved};
  const RopeScaling& s = c.rope_scaling;
  if (local) return o;
  switch (s.kind) {
    case RopeScaling::Kind::none:
      break;
    case RopeScaling::Kind::linear:
      for (double& f : o.frequencies) f /= s.factor;
      break;
    case RopeScaling::Kind::llama3:
      for (double& f : o.frequencies) f = llama3(s, f);
      break;
    case RopeScaling::Kind::yarn:
      yarn(s, base, o.frequencies);
      o.scale = s.attention_factor > 0 ? s.attention_factor : mscale(1, s.factor);
      break;
    case RopeScaling::Kind::longrope:
      longrope(s, length, o);
  }
  return o;
}

}  // namespace stretto
