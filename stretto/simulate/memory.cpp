#include "stretto/simulate/memory.h"

#include <algorithm>

namespace stretto {

Memory::Memory(const Schedule& s, const ScheduleTape& t, const StageCosts& costs, double freed_by_i, Unit unit)
    : t_(t), freed_by_i_(freed_by_i) {
  for (const StageCost& c : costs) {
    const double whole =
        unit == Unit::bytes ? c.activation_bytes / s.segments : 1.0 * s.actors() / (1.0 * s.stages * s.segments);
    whole_.push_back(whole);
    kept_.push_back(c.activation_bytes > 0 ? whole * std::min(1.0, c.kept_bytes / c.activation_bytes) : 0);
    recomputes_.push_back(c.R.has_value());
  }
}

Memory::Change Memory::change(std::uint32_t node) const {
  const TapeItem& item = t_.items[node];
  Change c;
  for (const Action& a : t_.actions(node)) {
    const bool in_row{t_.index.first(t_.index.key(a), Phase::R)};
    const double whole = whole_[a.stage], kept = in_row || recomputes_[a.stage] ? kept_[a.stage] : whole;
    if (item.implied) {
      c.adds += whole - kept;
      continue;
    }
    switch (a.phase) {
      case Phase::F:
        c.adds += kept;
        break;
      case Phase::R:
        c.adds += whole - kept;
        break;
      case Phase::W:
        c.frees += whole * (1 - freed_by_i_);
        break;
      case Phase::B:
      case Phase::I:
        c.frees += a.phase == Phase::B ? whole : whole * freed_by_i_;
        // Inside a group the implied recompute has no node of its own.
        if (item.count > 1 && !in_row) c.adds += whole - kept;
        break;
    }
  }
  return c;
}

std::vector<double> Memory::peaks() const {
  std::vector<double> peaks(t_.tape.actors());
  for (std::size_t actor = 0; actor < peaks.size(); ++actor) {
    double live = 0;
    for (std::uint32_t n = t_.tape.rows[actor]; n < t_.tape.rows[actor + 1]; ++n) {
      const Change c = change(n);
      peaks[actor] = std::max(peaks[actor], live += c.adds);
      live -= c.frees;
    }
  }
  return peaks;
}

std::vector<std::vector<std::pair<double, double>>> Memory::curves(const Player& player) const {
  std::vector<std::vector<std::pair<double, double>>> curves(t_.tape.actors());
  for (std::size_t actor = 0; actor < curves.size(); ++actor) {
    auto& curve = curves[actor];
    curve.reserve(t_.tape.rows[actor + 1] - t_.tape.rows[actor] + 1);
    curve.push_back({0, 0});
    double live = 0;
    for (std::uint32_t n = t_.tape.rows[actor]; n < t_.tape.rows[actor + 1]; ++n) {
      const Change c = change(n);
      if (c.adds != 0) curve.push_back({player.start(n), live += c.adds});
      if (c.frees != 0) curve.push_back({player.end(n), live -= c.frees});
    }
  }
  return curves;
}

}  // namespace stretto
