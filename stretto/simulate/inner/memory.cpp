#include "stretto/simulate/inner/memory.h"

#include <algorithm>
#include <utility>

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
  const Action& a = t_.action(node);
  const bool in_row{t_.index.first(t_.index.key(a), Phase::R)};
  const double whole = whole_[a.stage], kept = in_row || recomputes_[a.stage] ? kept_[a.stage] : whole;
  switch (item.implied ? Phase::R : a.phase) {
    case Phase::F:
      return {.adds = kept};
    case Phase::R:
      return {.adds = whole - kept};
    case Phase::W:
      return {.frees = whole * (1 - freed_by_i_)};
    case Phase::B:
      return {.frees = whole};
    case Phase::I:
      return {.frees = whole * freed_by_i_};
  }
  return {};
}

bool Memory::ends_group(std::uint32_t node, std::size_t actor) const {
  const auto group = [&](std::uint32_t n) { return t_.index.item[t_.items[n].action]; };
  return node + 1 == t_.tape.rows[actor + 1] || group(node + 1) != group(node);
}

std::vector<double> Memory::peaks() const {
  std::vector<double> peaks(t_.tape.actors());
  for (std::size_t actor = 0; actor < peaks.size(); ++actor) {
    double live = 0, freed = 0;
    for (std::uint32_t n = t_.tape.rows[actor]; n < t_.tape.rows[actor + 1]; ++n) {
      const Change c = change(n);
      peaks[actor] = std::max(peaks[actor], live += c.adds);
      freed += c.frees;
      if (ends_group(n, actor)) live -= std::exchange(freed, 0);
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
    double live = 0, freed = 0;
    for (std::uint32_t n = t_.tape.rows[actor]; n < t_.tape.rows[actor + 1]; ++n) {
      const Change c = change(n);
      if (c.adds != 0) curve.push_back({player.start(n), live += c.adds});
      freed += c.frees;
      if (freed != 0 && ends_group(n, actor)) curve.push_back({player.end(n), live -= std::exchange(freed, 0)});
    }
  }
  return curves;
}

}  // namespace stretto
