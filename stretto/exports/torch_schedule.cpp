#include "stretto/exports/torch_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "stretto/schedule/csv.h"

namespace stretto {
namespace {

// An overlap group is one action of torch's, a forward and a backward of it.
bool is_torch_pair(const std::vector<Action>& group) {
  return group.size() == 2 && (group[0].phase == Phase::F) != (group[1].phase == Phase::F) &&
         std::ranges::all_of(group, [](const Action& a) { return a.phase == Phase::F || a.phase == Phase::B; });
}

std::optional<Fault> refused_in_row(const Schedule& s, ActorId actor) {
  const Row& row = s.rows[actor];
  for (std::size_t i = 0; i < row.size(); ++i) {
    const auto at = [&] { return fmt::format("actor {}, position {}, {}", actor.value, i, cell(row[i], s.stages)); };
    if (row[i].phase == Phase::R)
      return fault(at(), "leave R out: torch's checkpointing makes again what backward reads",
                   "{} has no recompute actions", torch_version);
    if (row[i].overlap == 0 || (i > 0 && row[i - 1].overlap == row[i].overlap)) continue;
    std::vector<Action> group;
    for (std::size_t k = i; k < row.size() && row[k].overlap == row[i].overlap; ++k) group.push_back(row[k]);
    if (!is_torch_pair(group))
      return fault(at(), "take the group apart", "{} overlaps one F with one B, and this group is another",
                   torch_version);
  }
  return std::nullopt;
}

}  // namespace

std::vector<Fault> refused_by_torch(const Schedule& s) {
  std::vector<Fault> faults;
  if (s.pipes() > 1)
    faults.push_back(fault("--for torch", "use one pipe that folds, e.g. dualpipe-v or zb-v",
                           "'{}' has two pipes, and {} has each stage on one rank, with all microbatches", s.name,
                           torch_version));
  if (s.segments > 1)
    faults.push_back(fault("--for torch", "use whole microbatches, e.g. 1f1b",
                           "'{}' cuts microbatches into {} segments, and {} reads only the number of the microbatch",
                           s.name, s.segments, torch_version));
  for (const ActorId a : s.rows.ids())
    if (std::optional<Fault> f = refused_in_row(s, a)) faults.push_back(std::move(*f));
  return faults;
}

std::string torch_csv(Schedule s) {
  s.marks.clear();
  return write_csv(s);
}

}  // namespace stretto
