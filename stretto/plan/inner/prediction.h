// What a configuration takes and holds, at three depths: by stages in closed form, by playing its schedule, by its
// program.
//
//   Predictor predictor(problem, threads);
//   Planned quick = predictor.by_stages(keys), better = predictor.by_schedule(keys);
//   Planned exact = predictor.by_program(keys);
#pragma once
#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "stretto/plan/inner/data_axis.h"
#include "stretto/plan/inner/shapes.h"
#include "stretto/plan/inner/stage_model.h"
#include "stretto/plan/planned.h"

namespace stretto {

// A configuration with all that its play reads.
struct Ready {
  RunKeys keys;         // with stages
  FactsOfStages facts;  // empty: refused
  Shape* shape = nullptr;
};

class Predictor {
 public:
  Predictor(const PlanProblem&, Each each = one_by_one());

  // Facts that are not known yet, all at once. One that is refused keeps the reason.
  void learn(const std::vector<Variant>&);
  void build(const std::vector<const RunKeys*>& keys) { shapes_.make(keys, each_); }  // their schedules
  void build_played(const std::vector<const RunKeys*>& keys) { shapes_.make_played(keys, each_); }
  const StageFacts* facts(const Variant&);  // null: refused
  const std::string& refusal(const Variant&);
  std::string refusal(const RunKeys&) const;  // of one of its stages
  bool known(const Variant& v) const { return known_.contains(v); }

  // From facts without the data axis, which is added in closed form; the schedule in closed form too, or played.
  Planned by_stages(const RunKeys&, bool play = false);
  Planned by_stages(const RunKeys&, const StageFacts& without_data, bool play = false);  // which stay where they are
  // All at once, in closed form: of one layout whose facts these are. Their schedules are built.
  std::vector<Planned> by_stages(const std::vector<const RunKeys*>&, const StageFacts& without_data);
  Planned by_schedule(const RunKeys&);  // from facts of the very layout
  Planned by_schedule(const Ready&) const;
  std::vector<Planned> by_schedule(const std::vector<Ready>&) const;
  Ready ready(const RunKeys&);
  // By its schedule with the cuts with which that is the shortest and no rank holds more bytes; none: they are what it
  // has.
  std::optional<Planned> with_better_cuts(const RunKeys&, double bytes);
  Planned by_program(const RunKeys&);  // compiled
  std::vector<Planned> by_program(const std::vector<RunKeys>&);
  FactsOfStages facts_of_stages(const RunKeys&);  // of the very layout; empty: refused
  // Even ones; `most`: pieces that each stage may have. Empty: they are too few.
  std::vector<int> cuts(const RunKeys&, const FactsOfStages&, const std::vector<int>& most = {});
  Shapes& shapes() { return shapes_; }
  std::size_t facts_made() const { return known_.size(); }

 private:
  struct Known {
    std::optional<StageFacts> facts;
    std::string refused;
  };
  struct Played;
  // `of_facts`: the ranks that they are of.
  Planned of_model(const RunKeys&, const FactsOfStages&, int of_facts, Shape&, bool play) const;
  Played by_actions(const StageModel&, const RunKeys&, Shape&, double tail) const;
  Played judged(const StageModel&, const Schedule&, double tail, const PlayedEnds&) const;
  const std::vector<int>& cuts(const RunKeys&, const StageFacts&);
  const PlanProblem& p_;
  Each each_;
  Shapes shapes_;
  DataLinks links_;
  std::map<std::pair<std::array<double, 4>, int>, std::vector<int>> cuts_;  // by kinds of pieces, number of stages
  std::map<Variant, Known> known_;
  std::map<RunKeys, std::optional<GraphOfRank>> graphs_;  // by keys_of_graph; none: refused
};

// `graph`: of its keys; none: it is made here.
Planned compiled_plan(const PlanProblem&, RunKeys, std::optional<GraphOfRank> graph = {});

}  // namespace stretto
