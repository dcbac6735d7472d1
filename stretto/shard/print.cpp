#include <algorithm>
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

Rows params_of(const Sharded& s) {
  const Graph& g = s.graph.graph;
  Rows rows{{"name", "dims", "stored", "bytes", "accumulated", "bytes", "state", "bytes", "pending"}};
  for (ParamId i : s.params.ids()) {
    const ShardedParam& p = s.params[i];
    std::string accumulated, wait;
    std::size_t bytes = 0;
    for (const ShardedGradient& d : s.gradients) {
      if (d.param != i) continue;
      accumulated = g.named(d.accumulated.dims).str();
      bytes += g.bytes(d.accumulated);
      if (!d.pending.empty()) wait = pending(d.pending);
    }
    rows.push_back({p.name, g.named(p.type.dims).str(), p.params.empty() ? "" : g.named(p.stored.dims).str(),
                    std::to_string(g.bytes(p.stored)), p.gradients.empty() ? "" : accumulated, std::to_string(bytes),
                    p.state.empty() ? "" : g.named(p.updated.dims).str(), std::to_string(g.bytes(p.updated)), wait});
  }
  return rows;
}

Rows values_between_pieces(const Graph& g) {
  Rows rows{{"piece", "value", "bytes"}};
  for (const Node& n : g.nodes)
    if (n.op->starts_piece)
      rows.push_back(
          {std::to_string(n.piece), g.named(n.results[0].dims).str(), std::to_string(g.bytes(n.results[0]))});
  return rows;
}

// Equal ones are one line, in the order of the program.
Rows collectives_of(const Sharded& s) {
  std::vector<Collective> all = s.collectives;
  for (Collective& c : per_step_collectives(s)) all.push_back(std::move(c));
  struct Line {
    Collective first;
    int count = 0;
  };
  std::vector<Line> lines;
  for (Collective& c : all) {
    c.cause = without_numbers(c.cause);
    const auto key = [](const Collective& x) {
      return std::tuple(x.kind, x.axes, x.bytes, x.parts, phase(x), x.cause);
    };
    auto it = std::find_if(lines.begin(), lines.end(), [&](const Line& l) { return key(l.first) == key(c); });
    if (it == lines.end()) it = lines.insert(it, {c});
    ++it->count;
  }
  Rows rows{{"", "over", "ranks", "count", "bytes", "when", "because of"}};
  for (const auto& [c, count] : lines)
    rows.push_back({c.parts > 1 ? fmt::format("{} in {} parts", c.kind, c.parts) : c.kind, join(c.axes, ","),
                    std::to_string(c.ranks), std::to_string(count), std::to_string(c.bytes), phase(c), c.cause});
  return rows;
}

}  // namespace

std::string Sharded::str() const {
  std::string text = fmt::format("mesh {}, {} ranks\n\nparameters, a rank's part\n", mesh.str(), mesh.ranks());
  text += table(params_of(*this)) + "\nvalues between pieces, a rank's part\n";
  text += table(values_between_pieces(graph.graph)) +
          "\ncollectives; bytes are a rank's operand, counts are per "
          "microbatch, in the last lines per step\n";
  if (const Rows rows = collectives_of(*this); rows.size() > 1) text += table(rows);
  for (const Fault& w : warnings) text += "warning: " + w.str() + "\n";
  return text;
}

}  // namespace stretto
