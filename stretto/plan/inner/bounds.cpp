#include "stretto/plan/inner/bounds.h"

#include <algorithm>

#include "stretto/schedule/builders.h"

namespace stretto {
namespace {

constexpr double unhidden = 0.3;  // of collectives inside of tasks: no more can go on beside weight gradients

// Actors that wait while the pipeline fills and drains, as a share of the work, where weight gradients cannot fill it.
double least_bubble(const RunKeys& k) {
  const BuilderEntry* rule = find_builder(k.schedule);
  if (k.pipe == 1 || !rule || rule->fills) return 0;
  return (k.pipe - 1.0) / k.chunks / k.microbatches;
}

}  // namespace

Bounds::Bounds(const PlanProblem& p, double flops)
    : p_(p),
      ideal_(flops / (1.0 * p.ranks * p.cluster.cluster.machine.peak(half(p)))),
      parameters_(parameter_count(p.model)) {}

// Two half layers, forward and backward, gather and scatter what the tensor axis has cut; attention gathers keys and
// values of the context axis.
double Bounds::talk(const RunKeys& k) const {
  const ModelConfig& m = p_.model;
  const Cluster& c = p_.cluster.cluster;
  const double word = half(p_) ? 2 : 4, layers = 1.0 * m.layers / k.pipe * k.microbatches;
  const double positions = 1.0 * k.rows(p_.batch) * m.context / k.context;
  const auto bandwidth = [&](int members) { return (members <= c.ranks_per_node ? c.inside : c.between).bandwidth; };
  double sum = 0;
  if (k.tensor > 1) sum += 8 * positions * m.width * word * (k.tensor - 1) / k.tensor / bandwidth(k.tensor);
  if (k.context > 1) {
    const double kv = m.kv_heads ? m.kv_heads : m.heads, dim = m.head_dim ? m.head_dim : m.width / m.heads;
    sum +=
        4 * positions * (k.context - 1) * std::max(1.0, kv / k.tensor) * dim * word / bandwidth(k.context * k.tensor);
  }
  return unhidden * layers * sum;
}

double Bounds::seconds(const RunKeys& k) const {
  const double again = k.recompute == Recompute::full || k.recompute == Recompute::layer ? 1.2 : 1;
  return ideal_ * again * (1 + least_bubble(k)) + talk(k);
}

double Bounds::bytes(const RunKeys& k) const {
  const double each = parameters_ / (1.0 * k.pipe * k.tensor * k.expert);
  const double moments = (p_.optimizer.state_dtype == bf16 ? 2.0 : 4.0) *
                         (p_.optimizer.matrices ? p_.optimizer.matrix_states : std::ssize(p_.optimizer.state));
  const double states = moments + (half(p_) ? 4 : 0);  // with the masters
  const auto cut = [&](int from) { return k.zero >= from ? 1.0 / k.data : 1.0; };
  return each * ((half(p_) ? 2 : 4) * cut(3) + 4 * cut(2) + states * cut(1));
}

}  // namespace stretto
