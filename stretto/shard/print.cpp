#include <algorithm>
#include <map>
#include <tuple>

#include "stretto/base/text.h"
#include "stretto/ir/op.h"
#include "stretto/shard/epilogue.h"
#include "stretto/shard/shard.h"

namespace stretto {
namespace {

using Rows = std::vector<std::vector<std::string>>;

// "h.3.ln_1/rename" and "h.4.ln_1/rename" are one line.
std::string without_numbers(const std::string& s) {
  std::string out;
  for (std::size_t i = 0; i < s.size(); ++i) {
    const bool digit = s[i] >= '0' && s[i] <= '9', inside = i > 0 && s[i - 1] == '.';
    if (!digit || !(inside || (!out.empty() && out.back() == '*')))
      out += s[i];
    else if (out.back() != '*')
      out += '*';
  }
  return out;
}

std::string pending(const AxisNames& axes) { return axes.empty() ? "" : fmt::format("sum over {}", join(axes, ",")); }

std::string phase(const Collective& c) { return c.per_step ? "step" : c.backward ? "backward" : "forward"; }

}  // namespace

std::string Sharded::str() const {
  const Graph& g = graph.graph;
  std::string text = fmt::format("mesh {}, {} ranks\n\nparameters, a rank's part\n", mesh.str(), mesh.ranks());
  Rows rows{{"name", "dims", "stored", "bytes", "accumulated", "bytes", "state", "bytes", "pending"}};
  for (std::uint32_t i = 0; i < params.size(); ++i) {
    const ShardedParam& p = params[i];
    std::string accumulated, wait;
    std::size_t bytes = 0;
    for (const ShardedGradient& d : gradients) {
      if (d.param != i) continue;
      accumulated = g.named(d.accumulated.dims).str();
      bytes += g.bytes(d.accumulated);
      if (!d.pending.empty()) wait = pending(d.pending);
    }
    rows.push_back({p.name, g.named(p.type.dims).str(), p.params.empty() ? "" : g.named(p.stored.dims).str(),
                    std::to_string(g.bytes(p.stored)), p.gradients.empty() ? "" : accumulated, std::to_string(bytes),
                    p.state.empty() ? "" : g.named(p.updated.dims).str(), std::to_string(g.bytes(p.updated)), wait});
  }
  text += table(rows) + "\nvalues between pieces, a rank's part\n";
  rows = {{"piece", "value", "bytes"}};
  for (const Node& n : g.nodes)
    if (n.op->starts_piece)
      rows.push_back(
          {std::to_string(n.piece), g.named(n.results[0].dims).str(), std::to_string(g.bytes(n.results[0]))});
  text += table(rows) +
          "\ncollectives; bytes are a rank's operand, counts are per microbatch, in the last lines per step\n";
  rows = {{"", "over", "ranks", "count", "bytes", "when", "because of"}};
  std::vector<Collective> all = collectives;
  for (Collective& c : per_step_collectives(*this)) all.push_back(std::move(c));
  using Key = std::tuple<std::string, AxisNames, std::size_t, std::string, std::string>;
  std::vector<std::pair<Key, std::pair<int, int>>> lines;  // ranks, count; in the order of the program
  for (const Collective& c : all) {
    const Key key{c.kind, c.axes, c.bytes, phase(c), without_numbers(c.cause)};
    const auto it = std::find_if(lines.begin(), lines.end(), [&](const auto& l) { return l.first == key; });
    if (it == lines.end())
      lines.push_back({key, {c.ranks, 1}});
    else
      ++it->second.second;
  }
  for (const auto& [key, numbers] : lines)
    rows.push_back({std::get<0>(key), join(std::get<1>(key), ","), std::to_string(numbers.first),
                    std::to_string(numbers.second), std::to_string(std::get<2>(key)), std::get<3>(key),
                    std::get<4>(key)});
  if (rows.size() > 1) text += table(rows);
  for (const Fault& w : warnings) text += "warning: " + w.str() + "\n";
  return text;
}

}  // namespace stretto
