#include "stretto/plan/inner/relatives.h"

#include <algorithm>

namespace stretto {
namespace {

Variant of_any_rows(Variant v) {
  v.rows = 0;
  return v;
}
Variant with_rows(Variant v, i64 rows) {
  v.rows = rows;
  return v;
}
Variant making_nothing_again(Variant v) {
  v.recompute = Recompute::none;
  return v;
}

constexpr PieceFacts StageFacts::*pieces[] = {&StageFacts::stage, &StageFacts::attention, &StageFacts::mlp,
                                              &StageFacts::embedding, &StageFacts::head};
constexpr double PieceFacts::*bytes[] = {&PieceFacts::kept_i, &PieceFacts::kept_w,   &PieceFacts::for_w,
                                         &PieceFacts::beside, &PieceFacts::beside_i, &PieceFacts::beside_w};

// On the line through both, `further` times as far from `b` as `a` is.
StageFacts continued(const StageFacts& a, StageFacts b, double further) {
  for (const auto piece : pieces) b.*piece += (b.*piece) * further, b.*piece += (a.*piece) * -further;
  b.message += (b.message - a.message) * further;
  return b;
}

}  // namespace

Relatives::Relatives(Predictor& p, const std::vector<Variant>& all) : predictor_(p) {
  for (const Variant& v : all) rows_[of_any_rows(v)].insert(v.rows);
}

std::size_t Relatives::turn(const Variant& v) const {
  const std::set<i64>& rows = rows_.at(of_any_rows(v));
  const std::size_t fewer = std::distance(rows.begin(), rows.find(v.rows));
  return std::min<std::size_t>(fewer, 2) + (v.recompute == Recompute::none ? 0 : 2);
}

const StageFacts* Relatives::known(const Variant& v) { return predictor_.known(v) ? predictor_.facts(v) : nullptr; }

// From that many layouts with fewer rows.
std::optional<StageFacts> Relatives::with_more_rows(const Variant& v, std::size_t points) {
  std::vector<std::pair<double, const StageFacts*>> fewer;
  if (const auto rows = rows_.find(of_any_rows(v)); rows != rows_.end())
    for (const i64 n : rows->second)
      if (const StageFacts* f = n < v.rows ? known(with_rows(v, n)) : nullptr) fewer.push_back({double(n), f});
  if (fewer.size() < points) return {};
  const auto& [rows, last] = fewer.back();
  if (points > 1) {
    const auto& [before, first] = fewer[fewer.size() - 2];
    return continued(*first, *last, (double(v.rows) - rows) / (rows - before));
  }
  StageFacts f = *last;
  for (const auto piece : pieces)
    for (const auto kept : {&PieceFacts::kept_i, &PieceFacts::kept_w, &PieceFacts::for_w})
      f.*piece.*kept *= double(v.rows) / rows;
  return f;
}

const StageFacts* Relatives::least(const Variant& v) {
  const Variant plain = making_nothing_again(v);
  std::optional<StageFacts> own = with_more_rows(v, 2), times = own;
  if (!own) own = with_more_rows(v, 1);
  if (const StageFacts* same = plain == v ? nullptr : known(plain); !times && same) times = *same;
  if (!times) times = with_more_rows(plain, 2);
  if (!times) times = own ? own : with_more_rows(plain, 1);
  if (!times) return nullptr;
  for (const auto piece : pieces)
    for (const auto b : bytes) *times.*piece.*b = own ? *own.*piece.*b : 0;
  return &(least_[v] = *times);
}

}  // namespace stretto
