#include "stretto/cost/factors.h"

#include <algorithm>
#include <cmath>

namespace stretto {
namespace {

// Where the stack says how much is hidden, the rest is waited for in place, and what is hidden slows down what it is
// beside.
double waited(const std::optional<double>& hidden, double beside) {
  return hidden ? 1 - *hidden + *hidden * beside : 1;
}

}  // namespace

StackFactors factors_of(const Cluster& c, int ranks) {
  const Stack& s = c.stack;
  const double nodes = std::max(1.0, double(ranks) / c.ranks_per_node);
  StackFactors f{.all = s.factor * (1 + s.growth * std::log2(nodes)),
                 .gradients = s.gradient_bytes > 0 ? s.gradient_bytes / 4 : 1,
                 .tensor = waited(s.hidden.tensor, s.beside),
                 .exchanges = waited(s.hidden.exchanges ? s.hidden.exchanges : s.hidden.tensor, s.beside),
                 .messages = 1 - s.hidden.messages.value_or(0),
                 .sender_waits = s.hidden.messages.has_value(),
                 .hidden = {s.hidden.tensor, s.hidden.sums, s.hidden.gathers, s.beside},
                 .step = s.step,
                 .passes = s.passes,
                 .update = s.update,
                 .loss = s.logits,
                 .joined_products = s.joined_products,
                 .narrow_gathers = s.narrow_gathers,
                 .balanced_context = s.balanced_context,
                 .one_wire = s.one_wire,
                 .keeps_gathered = s.keeps_gathered,
                 .cut_messages = s.cut_messages,
                 .cut_exchanges = s.cut_exchanges,
                 .joined_backward = s.joined_backward,
                 .free_update = s.free_update};
  f.issue = s.floor / 2 * f.all;
  if (s.whole_layers) f.full = StackFactors::Parts{1, 1, 1, 1};
  if (s.selective == Stack::Selective::attention) f.selective = StackFactors::Parts{.attention = 1};
  // Every other product, and all that is cheap.
  if (s.selective == Stack::Selective::products)
    f.selective = StackFactors::Parts{.products = 0.5, .elements = 1, .collectives = 0.5};
  return f;
}

Link for_messages(const Link& l, const Cluster& c, const StackFactors& f, int copies) {
  Link own = l;
  if (copies > 1) {
    const double per_byte = 1 / l.bandwidth / copies + 1.0 * (copies - 1) / copies / c.inside.bandwidth;
    own = {l.latency + c.inside.latency * std::log2(copies), 1 / per_byte};
  }
  const double share = f.messages * f.all;
  return {own.latency * share, share > 0 ? own.bandwidth / share : Link{}.bandwidth};
}

}  // namespace stretto
