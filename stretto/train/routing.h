// What became of a step's tokens in layers with experts: how even the loads were, how many choices were dropped.
//
//   if (const std::optional<RoutedStep> r = routed(result)) fmt::print("{:.2f}\n", r->imbalance);
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "stretto/train/results.h"

namespace stretto {

struct RoutedStep {
  std::map<std::string, std::vector<double>> load;  // by layer, "h.3": how often each expert was chosen
  double imbalance = 0;                // the most loaded expert over the mean of its layer, the worst layer
  std::optional<double> dropped = {};  // share of the choices that got no slot; none: nobody is dropped
};

// Nothing: the model has no experts.
std::optional<RoutedStep> routed(const StepResult&);

// Every layer's loads over their mean as a table of shades, for the report.
std::string load_table(const RoutedStep&);

}  // namespace stretto
