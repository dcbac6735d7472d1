#include "stretto/exports/target.h"

#include <fmt/format.h>

#include <algorithm>

#include "stretto/base/text.h"
#include "stretto/schedule/builders.h"

namespace stretto {

#define TARGET(name) extern const Target name##_target;
#include "stretto/exports/targets.def"
#undef TARGET

namespace {

bool is_there(std::span<const SameName> names, std::string_view ours) {
  return std::ranges::find(names, ours, &SameName::ours) != names.end();
}
bool is_there(std::span<const int> list, int x) { return std::ranges::find(list, x) != list.end(); }

constexpr const char* recompute_names[] = {"none", "selective", "layer", "full"};

[[noreturn]] void refuse_key(const Target& t, const std::string& key, const std::string& value,
                             const std::string& instead) {
  throw Error("--for " + std::string(t.name), "{} = {} has no counterpart in {}", key, value, t.version)
      .hint("{}", instead)
      .about({key});
}

// What may be chosen of a list: all of `known`, or what the run allows and is there.
template <class T, class Known>
std::vector<T> narrowed(const Target& t, const std::string& key, const std::vector<T>& asked, const Known& known) {
  std::vector<T> both;
  std::string text;
  for (const T& x : asked) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", x);
    if (std::find(known.begin(), known.end(), x) != known.end()) both.push_back(x);
  }
  if (asked.empty()) return {known.begin(), known.end()};
  if (both.empty()) refuse_key(t, key, text, fmt::format("there are {}", fmt::join(known, ", ")));
  return both;
}

std::vector<std::string> ours_of(std::span<const SameName> names) {
  std::vector<std::string> all;
  for (const SameName& n : names) all.emplace_back(n.ours);
  return all;
}

bool is_open(const RunConfig& run, std::string_view key) {
  return std::find(run.searched.begin(), run.searched.end(), key) != run.searched.end();
}

struct AxisOfTarget {
  const char* name;
  bool there;
  std::vector<int> PlanSection::*open;
  int fixed;
};

}  // namespace

std::string Target::title() const { return fmt::format("{} ({})", name, version); }

std::string Target::left_out() const {
  std::vector<std::string> parts, names, levels, kinds, axes;
  for (const BuilderEntry& b : schedule_builders())
    if (b.searched && !is_there(schedules, b.name)) names.emplace_back(b.name);
  for (int z = 0; z <= 3; ++z)
    if (!is_there(zero, z)) levels.push_back(fmt::format("{}", z));
  for (const char* r : recompute_names)
    if (!is_there(recompute, r)) kinds.emplace_back(r);
  for (const auto& [there, axis] :
       {std::pair(tensor, "tensor"), {context, "context"}, {expert, "expert"}, {sequence, "sequence"}})
    if (!there) axes.emplace_back(axis);
  for (const auto& [what, list] :
       {std::pair("schedules ", &names), {"zero ", &levels}, {"recompute ", &kinds}, {"axes ", &axes}})
    if (!list->empty()) parts.push_back(what + join(*list, ", "));
  return join(parts, "; ");
}

std::span<const Target* const> export_targets() {
  static constexpr const Target* all[] = {
#define TARGET(name) &name##_target,
#include "stretto/exports/targets.def"
#undef TARGET
  };
  return all;
}

const Target& target_named(std::string_view name) {
  std::vector<std::string> known, titles;
  for (const Target* t : export_targets()) {
    if (t->name == name) return *t;
    known.emplace_back(t->name), titles.push_back(t->title());
  }
  const std::string_view plain = name.substr(0, name.find_first_of("@=:"));
  if (plain != name && std::find(known.begin(), known.end(), plain) != known.end())
    throw Error("--for", "'{}' names a version, and arguments are written for {}", name, target_named(plain).version)
        .hint("--for {}", plain)
        .as(Error::Kind::usage);
  const auto near = nearest(std::string(name), known);
  throw Error("--for", "plans are not written for '{}'", name)
      .hint("{}there are {}", near ? fmt::format("did you mean '{}'? ", *near) : "", join(titles, ", "))
      .as(Error::Kind::usage);
}

RunConfig for_target(RunConfig run, const Target& t) {
  if (!run.model.graph.empty())
    throw Error("--for " + std::string(t.name), "a model that is a graph has no layers that {} knows", t.version)
        .hint("plan a family's model of that shape: model.preset, or model.config")
        .about({"model.graph"});
  if (run.model.config.head_parts > 1)
    refuse_key(t, "model.head_parts", fmt::format("{}", run.model.config.head_parts),
               "leave it out: the head is whole there");
  if (!run.parallel.stages.empty())
    refuse_key(t, "parallel.stages", fmt::format("[{}]", fmt::join(run.parallel.stages, ", ")),
               "leave it out: stages are chosen as that software can have them");
  PlanSection& p = run.plan;
  const ParallelNames& n = run.parallel.names;
  const AxisOfTarget axes[] = {{"tensor", t.tensor, &PlanSection::tensor, n.tensor},
                               {"context", t.context, &PlanSection::context, n.context},
                               {"expert", t.expert, &PlanSection::expert, n.expert}};
  for (const AxisOfTarget& a : axes) {
    const std::string key = fmt::format("parallel.{}", a.name);
    if (a.there) continue;
    if (!is_open(run, key) && a.fixed > 1) refuse_key(t, key, fmt::format("{}", a.fixed), "use 1, or leave it open");
    if (is_open(run, key)) p.*a.open = narrowed(t, key, p.*a.open, std::vector<int>{1});
  }
  if (!t.sequence) {
    if (!is_open(run, "parallel.sequence") && n.sequence) refuse_key(t, "parallel.sequence", "true", "leave it out");
    std::erase(run.searched, "parallel.sequence");
    run.parallel.names.sequence = false;
  }
  const std::vector<std::string> schedules = ours_of(t.schedules), kinds = ours_of(t.recompute);
  if (is_open(run, "parallel.schedule"))
    p.schedules = narrowed(t, "plan.schedules", p.schedules, schedules);
  else if ((is_open(run, "parallel.pipe") || run.parallel.pipe != 1) && !is_there(t.schedules, run.parallel.schedule))
    refuse_key(t, "parallel.schedule", run.parallel.schedule, "there are " + join(schedules, ", "));
  if (is_open(run, "parallel.zero"))
    p.zero = narrowed(t, "plan.zero", p.zero, t.zero);
  else if (!is_there(t.zero, n.zero))
    refuse_key(t, "parallel.zero", fmt::format("{}", n.zero), fmt::format("there are {}", fmt::join(t.zero, ", ")));
  if (is_open(run, "parallel.recompute")) {
    p.recompute = narrowed(t, "plan.recompute", p.recompute, kinds);
  } else {
    for (const Recompute r : run.parallel.recompute)
      if (!is_there(t.recompute, name_of(r)))
        refuse_key(t, "parallel.recompute", std::string(name_of(r)), "there are " + join(kinds, ", "));
  }
  return run;
}

bool has_counterpart(const Target& t, const ModelConfig& model, const RunKeys& k) {
  if (k.pipe > model.layers) return false;
  if (t.whole_stages && model.layers % k.stage_count() != 0) return false;
  return !t.refuses || t.refuses(model, k).empty();
}

std::vector<StageLayers> whole_layers(const std::vector<int>& pieces, i64 layers) {
  std::vector<StageLayers> stages;
  i64 begin = 0;
  const i64 all = 2 * layers + 2;
  for (const int n : pieces) {
    const i64 end = begin + n;
    // Piece 0 is the embedding, then come two of each layer, and the head.
    if (n < 1 || end > all || (end < all && end % 2 == 0)) return {};
    const i64 first = std::max<i64>(begin - 1, 0) / 2, last = (std::min(end, all - 1) - 1) / 2;
    stages.push_back({.embedding = begin == 0, .head = end == all, .first = first, .layers = last - first});
    begin = end;
  }
  return begin == all ? stages : std::vector<StageLayers>();
}

std::vector<int> pieces_of(const std::vector<StageLayers>& stages) {
  std::vector<int> pieces;
  for (const StageLayers& s : stages) pieces.push_back(int(2 * s.layers) + s.embedding + s.head);
  return pieces;
}

std::vector<std::vector<int>> nearest_whole(const std::vector<int>& pieces, i64 layers) {
  std::vector<std::vector<int>> all;
  const i64 most = 2 * layers + 1, stages = std::ssize(pieces);
  for (const int shift : {0, -1, 1}) {  // a cut in the middle of a layer goes down, up, or by turns
    std::vector<int> now;
    i64 begin = 0, given = 0;
    for (i64 s = 0; s < stages; ++s) {
      given += pieces[s];
      i64 end = s + 1 == stages ? most + 1 : given;
      if (s + 1 < stages && end % 2 == 0) end += shift == 0 ? (s % 2 == 0 ? 1 : -1) : shift;
      const i64 least = begin == 0 ? 1 : begin + 2,
                room = most - 2 * (stages - 2 - s);  // a layer for each that follows
      if (s + 1 < stages) end = std::clamp(end, least, std::max(least, room));
      now.push_back(int(end - begin));
      begin = end;
    }
    if (!whole_layers(now, layers).empty() && std::find(all.begin(), all.end(), now) == all.end()) all.push_back(now);
  }
  return all;
}

}  // namespace stretto
