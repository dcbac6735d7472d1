// A plan in words and numbers: the table, why not the others, where memory goes, what would change it.
//
//   fmt::print("{}", table_of(problem, plan));
//   for (const std::string& why : why_not(plan)) fmt::print("{}\n", why);
#pragma once
#include <string>
#include <vector>

#include "stretto/plan/search.h"

namespace stretto {

std::string table_of(const PlanProblem&, const Plan&);
std::vector<std::string> why_not(const Plan&);             // one for each other configuration
std::string as_good(const Plan&, double margin);           // "" when nothing is
std::string memory_line(const PlanProblem&, const Plan&);  // of the best, and what would still fit
std::string limit_of(const Planned&);                      // "products 76%, attention 12%"

// Tab-separated, for scripts.
std::string plain_header();
std::string plain_row(const PlanProblem&, double flops, std::size_t rank, const Planned&);

// One thing that could be otherwise, and how long a step of the best plan would take then.
struct WhatIf {
  std::string what;
  double seconds = 0;
};
// Of the plan's first, compiled: every link and rate by this factor.
std::vector<WhatIf> what_if(const PlanProblem&, const Program&, double factor);
std::string change(double ratio);  // "+11%", "same"

// Nothing fits: the closest, what takes its memory, and what would make it fit.
Error nothing_fits(const PlanProblem&, const Plan&, const std::vector<std::string>& remedies);
// Nothing is legal: which of the given values exclude each other.
Error nothing_legal(const PlanProblem&, const PlanSpace&);

}  // namespace stretto
