// What a configuration takes and holds, at three depths: by stages in closed form, by playing its schedule, by its
// program.
//
//   Predictor predictor(problem, threads);
//   Planned quick = predictor.by_stages(keys), better = predictor.by_schedule(keys);
//   Planned exact = predictor.by_program(keys);
#pragma once
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stretto/plan/arranged.h"
#include "stretto/plan/data_axis.h"
#include "stretto/plan/shapes.h"
#include "stretto/plan/stage_model.h"

namespace stretto {

enum class Exactness : std::uint8_t { bound, stage, schedule, program };
std::string_view name_of(Exactness);

// Seconds of the busiest actor, by what they are for; together the step.
struct TimeParts {
  double work = 0;    // forward and backward, with collectives inside of them
  double bubble = 0;  // waiting for other actors
  double tail = 0;    // before the first and after the last microbatch: sums that are waited for, norms, update
  double total() const { return work + bubble + tail; }
};

struct Planned {
  RunKeys keys;  // with the stages that were assumed
  double seconds = 0, bytes = 0, bubble = 0;
  TimeParts time;
  MemoryParts memory;
  Exactness exact = Exactness::bound;
  bool turns = false;                           // of a schedule: every turn was ordered as programs have it
  std::string limit = {};                       // where the time goes, of a program
  std::string refused = {};                     // what compile says against it; "": nothing
  std::shared_ptr<const Program> program = {};  // of one that was compiled
};

Each one_by_one();

class Predictor {
 public:
  Predictor(const PlanProblem&, Each each = one_by_one());

  // Facts that are not known yet, all at once. One that is refused keeps the reason.
  void learn(const std::vector<Variant>&);
  void build(const std::vector<const RunKeys*>& keys) { shapes_.make(keys, each_); }  // their schedules
  void build_played(const std::vector<const RunKeys*>& keys) { shapes_.make_played(keys, each_); }
  const StageFacts* facts(const Variant&);  // null: refused
  const std::string& refusal(const Variant&);
  std::string refusal(const RunKeys&);  // of one of its stages
  bool known(const Variant& v) const { return known_.contains(v); }

  // From facts without the data axis, which is added in closed form; the schedule in closed form too, or played.
  Planned by_stages(const RunKeys&, bool play = false);
  Planned by_stages(const RunKeys&, const StageFacts& without_data, bool play = false);  // which stay where they are
  Planned by_schedule(const RunKeys&);  // from facts of the very layout
  // The same with every turn ordered as programs are (arranged.h): a hundred times as long.
  std::vector<Planned> by_turns(const std::vector<RunKeys>&);
  Planned by_program(const RunKeys&);  // compiled
  std::vector<Planned> by_program(const std::vector<RunKeys>&);
  FactsOfStages facts_of_stages(const RunKeys&);  // of the very layout; empty: refused
  // Even ones; `most`: pieces that each stage may have. Empty: they are too few.
  std::vector<int> cuts(const RunKeys&, const FactsOfStages&, const std::vector<int>& most = {});
  double flops();  // of a step, all ranks together, without what is made again
  Shapes& shapes() { return shapes_; }
  std::size_t facts_made() const { return known_.size(); }

 private:
  struct Known {
    std::optional<StageFacts> facts;
    std::string refused;
  };
  enum class Depth : std::uint8_t { stages, schedule, turns };
  struct Played;
  Planned of_model(const RunKeys&, const FactsOfStages&, int of_facts, Depth);  // of_facts: of so many ranks
  Planned of_model(const RunKeys&, const FactsOfStages&, int of_facts, Shape&, Depth) const;
  Played by_actions(const StageModel&, const RunKeys&, Shape&, double tail) const;
  Played by_turns(const StageModel&, Shape&, ArrangedPlayer&, double tail) const;
  ArrangedPlayer player_of(const StageModel&, const RunKeys&, double message) const;
  bool stays_whole(const RunKeys&) const;  // parameters, once they are gathered
  void count_memory(Planned&, const FactsOfStages&, Shape&) const;
  Played judged(const StageModel&, const Schedule&, double tail, const PlayedEnds&) const;
  const std::vector<int>& cuts(const RunKeys&, const StageFacts&);
  const PlanProblem& p_;
  Each each_;
  Shapes shapes_;
  DataLinks links_;
  std::optional<double> flops_;
  std::map<std::pair<std::array<double, 4>, int>, std::vector<int>> cuts_;  // by kinds of pieces, number of stages
  std::map<Variant, Known> known_;
};

Planned compiled_plan(const PlanProblem&, RunKeys);
std::shared_ptr<const Program> program_of(const PlanProblem&, const Planned&);  // its own, or compiled now

}  // namespace stretto
