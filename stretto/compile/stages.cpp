#include "stretto/compile/stages.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "stretto/balance/pieces.h"
#include "stretto/base/text.h"
#include "stretto/ir/op.h"
#include "stretto/simulate/predict.h"
#include "stretto/step/cost.h"
#include "stretto/step/keeps.h"

namespace stretto {
namespace {

// "h.3" of the scope "h.3.ln_1"; "head" of "head".
std::string layer_of(const std::string& scope) {
  const std::size_t dot = scope.find('.');
  if (dot == std::string::npos || dot + 1 >= scope.size() || !std::isdigit(static_cast<unsigned char>(scope[dot + 1])))
    return scope.substr(0, dot);
  return scope.substr(0, scope.find('.', dot + 1));
}

struct StageSum {
  int pieces = 0;
  std::vector<std::string> layers;
  Cost cost;
  double seconds = 0;
  std::set<ParamId> params;
};

IdVector<StageId, StageSum> sums(const Compiled& c) {
  const Program& p = *c.program;
  IdVector<StageId, StageSum> all(p.stage_of.back().value + 1);
  for (const StageId stage : all.ids()) all[stage].pieces = p.pieces_per_stage()[stage.value];
  for (const Task& t : p.step->tasks) {
    if (t.part != Part::U && !of_an_action(t.part)) continue;
    StageSum& s = all[p.stage_of[*t.piece]];
    s.cost += task_cost(t);
    for (const Binding& b : t.inputs)
      if (const ParamId* param = as<ParamId>(b)) s.params.insert(*param);
  }
  for (const Node& n : c.graph.nodes) {
    if (n.backward || n.op->given() || n.op->starts_piece) continue;
    std::vector<std::string>& layers = all[p.stage_of[PieceId(n.piece)]].layers;
    const std::string layer = layer_of(c.graph.scopes[n.scope]);
    if (!layer.empty() && std::find(layers.begin(), layers.end(), layer) == layers.end()) layers.push_back(layer);
  }
  const StageCosts costs = stage_costs(p);
  for (const StageId s : all.ids()) all[s].seconds = costs[s].F + costs[s].R.value_or(0) + costs[s].I + costs[s].W;
  return all;
}

i64 elements(const Compiled& c, const std::set<ParamId>& params) {
  i64 sum = 0;
  for (ParamId i : params) {
    i64 n = 1;
    for (const Dim& d : c.params[i].dims) n *= d.valid();
    sum += n;
  }
  return sum;
}

std::string layers_str(const std::vector<std::string>& layers) {
  if (layers.empty()) return "-";
  if (layers.size() <= 3) return join(layers, " ");
  return fmt::format("{} to {}", layers.front(), layers.back());
}

std::string actors_str(const Program& p, StageId stage) {
  std::vector<std::string> actors;
  for (const auto& pipe : p.schedule.actor_of) actors.push_back(fmt::format("{}", pipe[stage].value));
  return join(actors, " and ");
}

void list(std::string& text, const Step& s, const StageKeeps& k, std::string_view title, auto wanted) {
  std::string rows;
  u64 sum = 0;
  for (const Keep& keep : k.values)
    if (wanted(keep)) {
      const CrossValue& v = s.values[keep.value];
      rows += fmt::format("  {:>10}  {}{}\n", human_bytes(v.bytes), v.name, keep.arrives ? ", arrives" : "");
      sum += v.bytes;
    }
  if (!rows.empty()) text += fmt::format("  {}: {}\n{}", title, human_bytes(sum), rows);
}

std::string kept_str(const Step& s, const StageKeeps& k, std::size_t stage) {
  std::string text = fmt::format("\nstage {} keeps, per microbatch:\n", stage);
  list(text, s, k, "F until I", [](const Keep& x) { return x.from == Part::F && x.until != Part::W; });
  list(text, s, k, "F until W", [](const Keep& x) { return x.from == Part::F && x.until == Part::W; });
  list(text, s, k, "I for W", [](const Keep& x) { return x.from == Part::I && x.until == Part::W; });
  list(text, s, k, "R for I", [](const Keep& x) { return x.from == Part::R && x.until != Part::W; });
  list(text, s, k, "R for W", [](const Keep& x) { return x.from == Part::R && x.until == Part::W; });
  return k.values.empty() ? text + "  nothing\n" : text;
}

bool is_head(const std::string& layer) { return layer == "head" || layer.starts_with("head."); }

// Parts of the head that are about as large as other pieces, unless those are tiny. Powers of two, which most numbers
// of stages share evenly; the larger one unless the smaller is almost enough.
int parts_of_head(const Compiled& c) {
  const Program& p = *c.program;
  const std::vector<PieceTimes> pieces = piece_times(*p.step, Machine{});
  std::set<std::size_t> parts;
  for (const Node& n : c.graph.nodes)
    if (!n.backward && is_head(layer_of(c.graph.scopes[n.scope]))) parts.insert(n.piece / p.step->segments);
  double head = 0, other = 0, whole = 0;
  for (std::size_t piece = 0; piece < pieces.size(); ++piece) {
    const double seconds = pieces[piece].microbatch();
    whole += seconds;
    if (parts.contains(piece))
      head += seconds;
    else
      other = std::max(other, seconds);
  }
  const double parts_wanted = head / std::max(other, whole / (8.0 * p.schedule.stages));
  return int(std::exp2(std::clamp(std::ceil(std::log2(parts_wanted) - 0.2), 1.0, 6.0)));
}

std::string limit_str(const Limit& l) {
  std::string text = fmt::format("Stage {} is a single piece ({}) and {}: {}.\n", l.stage.value, l.name, l.shares(),
                                 l.alone ? "no cut makes the step shorter" : "the other stages wait for it");
  if (l.head_parts > 0) text += fmt::format("Cut the head: model.head_parts = {}. Or:\n", l.head_parts);
  return text + "Spread its weights over ranks (parallel.tensor), or use fewer actors or more layers.\n";
}

}  // namespace

std::vector<Fault> verify_stages(const Compiled& c) {
  const Program& p = *c.program;
  const Step& s = *p.step;
  std::vector<Fault> faults;
  if (std::ssize(p.stage_of.list()) != s.pieces)
    faults.push_back(fault("stages", "", "{} pieces are in stages and the model has {}", p.stage_of.size(), s.pieces));
  for (PieceId piece : s.piece_ids())
    if (!s.find(Part::F, piece)) faults.push_back(fault("stages", "", "piece {} computes nothing", piece.value));
  IdVector<ParamId, char> read(s.params.size(), 0), trained(s.params.size(), 0);
  for (const Task& t : s.tasks)
    for (const Binding& b : t.inputs)
      if (const ParamId* param = as<ParamId>(b); param && (t.part == Part::F || t.part == Part::U)) read[*param] = 1;
  for (const Accumulator& a : s.accumulators) trained[a.param] = 1;
  for (ParamId i : c.params.ids()) {
    if (!read[i] && c.params[i].options.trainable)
      faults.push_back(fault("stages", "", "no stage reads parameter '{}'", c.params[i].name));
    if (!trained[i] && c.params[i].options.trainable && !s.accumulators.empty())
      faults.push_back(fault("stages", "", "no stage makes the gradient of parameter '{}'", c.params[i].name));
  }
  return faults;
}

std::string Limit::shares() const {
  return fmt::format("takes {:.1f}% of the time, {} {:.1f}%", 100 * takes,
                     alone ? "an actor's share is" : "an even stage", 100 * share);
}

std::optional<Limit> limit_of(const Compiled& c) {
  const IdVector<StageId, StageSum> all = sums(c);
  const Schedule& schedule = c.program->schedule;
  double whole = 0;
  std::optional<StageId> most;
  for (const StageId s : all.ids()) {
    whole += all[s].seconds;
    if (all[s].pieces == 1 && (!most || all[s].seconds > all[*most].seconds)) most = s;
  }
  if (!most || !(whole > 0) || schedule.stages == 1) return std::nullopt;
  std::vector<std::string> names = all[*most].layers;
  const bool head = std::any_of(names.begin(), names.end(), is_head);
  if (names.empty())
    for (ParamId p : all[*most].params) names.push_back(c.params[p].name);
  Limit l{.stage = *most, .name = layers_str(names), .takes = all[*most].seconds / whole};
  l.share = 1.0 / schedule.actors();
  l.alone = l.takes > l.share * (1 + 1e-9);
  if (!l.alone) l.share = 1.0 / schedule.stages;
  if (!l.alone && (!head || l.takes < 1.5 * l.share)) return std::nullopt;
  if (head) l.head_parts = parts_of_head(c);
  return l;
}

std::string stages_str(const Compiled& c) {
  const Program& p = *c.program;
  const IdVector<StageId, StageSum> all = sums(c);
  const IdVector<StageId, StageKeeps> kept = keeps(*p.step, p.stage_of);
  std::vector<std::vector<std::string>> rows{
      {"stage", "actor", "pieces", "layers", "flops", "time", "parameters", "F keeps until I", "F until W", "I for W"}};
  StageSum whole;
  StageKeeps most;
  for (const StageSum& s : all) {
    whole.pieces += s.pieces;
    whole.cost += s.cost;
    whole.seconds += s.seconds;
    whole.params.insert(s.params.begin(), s.params.end());
  }
  const auto row = [&](std::string stage, std::string actor, const StageSum& s, const StageKeeps& k) {
    rows.push_back(
        {std::move(stage), std::move(actor), fmt::format("{}", s.pieces), layers_str(s.layers),
         human_count(s.cost.flops), whole.seconds > 0 ? fmt::format("{:.1f}%", 100 * s.seconds / whole.seconds) : "",
         human_count(elements(c, s.params)), human_bytes(k.until_i), human_bytes(k.until_w), human_bytes(k.for_w)});
  };
  i64 held = 0;
  for (const StageId s : all.ids()) {
    row(fmt::format("{}", s.value), actors_str(p, s), all[s], kept[s]);
    most.until_i += kept[s].until_i, most.until_w += kept[s].until_w, most.for_w += kept[s].for_w;
    held += elements(c, all[s].params);
  }
  row("all", "", whole, most);
  rows.back()[3] = "";
  std::string text = table(rows) + "Operations and kept bytes are of one microbatch.\n";
  if (const std::optional<Limit> limit = limit_of(c)) text += limit_str(*limit);
  if (held > elements(c, whole.params))
    text += fmt::format("{} parameters are in more than one stage; the sum counts them once.\n",
                        human_count(held - elements(c, whole.params)));
  const std::vector<Fault> faults = verify_stages(c);
  if (faults.empty())
    text += fmt::format("Nothing is left out: {} of {} pieces and {} of {} parameters are in stages.\n", whole.pieces,
                        p.step->pieces / p.step->segments, elements(c, whole.params), c.parameters());
  for (const Fault& f : faults) text += "LEFT OUT: " + f.str() + "\n";
  for (const StageId s : kept.ids()) text += kept_str(*p.step, kept[s], s.value);
  return text;
}

}  // namespace stretto
