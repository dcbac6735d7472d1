// The configurations of a number of ranks: every product of mesh axes, schedule, chunks, microbatches, recompute and
// ZeRO that a model allows. Legality is data, so that a refusal can say why.
//
//   PlanSpace space{.tensor = {8}, .schedules = {"1f1b", "zb-v"}};     // what is left empty is searched
//   const Enumerated all = enumerate(problem, space);
//   fmt::print("{} configurations\n", all.keys.size());
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "stretto/plan/problem.h"

namespace stretto {

// What may be chosen; an empty list is anything that is legal.
struct PlanSpace {
  std::vector<int> pipe = {}, data = {}, tensor = {}, context = {}, expert = {}, zero = {}, chunks = {},
                   microbatches = {};
  std::vector<std::string> schedules = {};
  std::vector<Recompute> recompute = {};
  std::optional<bool> sequence = {};             // none: wherever there is a tensor axis
  std::function<bool(const RunKeys&)> may = {};  // what else has to hold; none: nothing
};

struct Enumerated {
  std::vector<RunKeys> keys;  // in one order, whatever the machine
  int meshes = 0;
};
// Nothing at all is an Error that says which of the given values exclude each other.
Enumerated enumerate(const PlanProblem&, const PlanSpace&);

// Why a mesh cannot be, "" when it can: "tensor = 5 does not divide 32 heads".
std::string mesh_fault(const PlanProblem&, const RunKeys&);
// Why it is not searched: the same, and a context axis that nobody asked for leaves too few positions to a rank.
std::string mesh_fault(const PlanProblem&, const PlanSpace&, const RunKeys&);
// Every mesh of that many ranks whose sizes the space allows, also those that the model does not.
void for_each_mesh(const PlanProblem&, const PlanSpace&, const std::function<void(const RunKeys&)>& visit);
// Why the rest cannot be, given the mesh.
std::string keys_fault(const PlanProblem&, const RunKeys&);

bool allows(const std::vector<int>& list, int x);  // an empty list allows all
std::vector<Recompute> recompute_choices(const PlanSpace&);
std::vector<int> divisors(i64 n);

}  // namespace stretto
