// A plan as one self-contained page: time and memory of everything that was scored, what the best are made of, where
// their memory goes, the best beside the runner-up, what changes if the cluster does.
//
//   PlanPage page{.title = "llama-1b on 16 ranks", .lines = lines, .points = points};
//   write_file("best.html", plan_html(page));
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "stretto/schedule/timeline.h"

namespace stretto {

// One configuration in the scatter.
struct PlanPoint {
  double seconds = 0, bytes = 0;
  int group = 1;           // what its colour says: the size of the pipeline
  std::string kind = {};   // what its shape says: the schedule
  std::string label = {};  // shown on hover
  bool compiled = false;   // by its program: drawn full
};

// One bar of parts.
struct PlanBar {
  std::string label;
  std::vector<std::pair<std::string, double>> parts;  // the same names in the same order for all bars
  double sum() const;
};

// What a step takes if one thing is slower or faster.
struct PlanSwing {
  std::string what;
  double slower = 0, faster = 0;  // seconds
};

// A run that was measured on the cluster, and what is predicted of it.
struct PlanMeasured {
  std::string run;
  double measured = 0, predicted = 0;  // seconds of a step
};

struct PlanPage {
  std::string title;
  std::vector<std::string> lines = {};  // the text of the plan
  std::vector<PlanPoint> points = {};
  double capacity = 0;  // bytes; 0 or infinite: none is drawn
  std::vector<PlanBar> times = {}, memory = {};
  std::vector<Timeline> timelines = {};  // the best, the runner-up
  double seconds = 0;                    // of the best
  std::vector<PlanSwing> swings = {};
  std::vector<PlanMeasured> measured = {};
};

std::string plan_html(const PlanPage&);
std::string plan_scatter(const PlanPage&);  // a part of it

// Indices of points than which none is both faster and smaller, the fastest first.
std::vector<std::size_t> pareto_front(const std::vector<PlanPoint>&);

}  // namespace stretto
