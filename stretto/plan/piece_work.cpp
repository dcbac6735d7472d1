#include "stretto/plan/piece_work.h"

#include <algorithm>
#include <map>
#include <set>

#include "stretto/program/memory/memory.h"
#include "stretto/program/overlap/overlap.h"
#include "stretto/program/overlap/region.h"
#include "stretto/simulate/held.h"
#include "stretto/simulate/prices.h"

namespace stretto {
namespace {

// Tasks of a piece and of its neighbours as one region, of which the compiler says what waits for what.
class PieceReader {
 public:
  PieceReader(const Program& p, const Cluster& c)
      : p_(p), prices_(p, c), unhurried_(p, unhurried(c)), facts_(p.mesh), stack_(c.stack) {
    for (TaskId t : p.step->tasks.ids()) {
      const Task& task = p.step->tasks[t];
      const bool backward_only = task.part == Part::U && std::get<Gathered>(task.about) == Gathered::backward;
      if (task.piece && !backward_only) tasks_[{task.part, task.piece->value}] = t;
    }
  }

  PieceWork piece(int q) {
    PieceWork out;
    read(out, q, {Part::F}, {{Part::U, q}, {Part::F, q - 1}, {Part::F, q}, {Part::F, q + 1}});
    read(out, q, {Part::R, Part::I, Part::W, Part::A},
         {{Part::U, q},
          {Part::R, q - 1},
          {Part::R, q},
          {Part::R, q + 1},
          {Part::I, q + 1},
          {Part::I, q},
          {Part::W, q},
          {Part::A, q},
          {Part::I, q - 1}});
    for (const Part part : {Part::F, Part::R, Part::I, Part::W, Part::S, Part::A}) read_buffers(out[part], {part, q});
    out.end = end_of(q);
    if (const auto it = tasks_.find({Part::F, q}); it != tasks_.end())
      out.kept = {kept_beside(p_, it->second, stack_), kept_products(p_, it->second)};
    return out;
  }

 private:
  using Which = std::pair<Part, int>;  // of which piece

  void read(PieceWork& out, int q, const std::set<Part>& wanted, const std::vector<Which>& list) {
    std::vector<Instruction> region;
    std::vector<Which> which;
    for (const Which& w : list)
      if (const auto it = tasks_.find(w); it != tasks_.end()) {
        region.push_back(stretto::Run{.task = it->second});
        which.push_back(w);
      }
    const RegionWork all = work_of(p_, region, {}, facts_);
    for (WorkId w : all.work.ids()) {
      const auto& [part, piece] = which[all.origins[w].at.value];
      const bool mine = piece == q && wanted.contains(part);
      if (mine) out[part].calls.push_back(call(tasks_[{part, piece}], *all.origins[w].call));
      for (WorkId before : all.work[w].after) {
        const Which& from = which[all.origins[before].at.value];
        const std::uint32_t made = all.origins[before].call->value;
        if (mine)
          come_after(out[part].calls.back(), {part, piece}, from, made);
        else if (from.second == q && piece != q && from.first == part)
          out[part].gives = std::max(out[part].gives, made);
      }
    }
  }
  void read_buffers(PartWork& out, const Which& which) {
    const auto it = tasks_.find(which);
    if (it == tasks_.end()) return;
    const Calls& body = *p_.calls[it->second];
    out.buffers = buffers_of(p_, it->second);
    for (std::size_t c = 0; c < out.calls.size(); ++c) out.calls[c].touches = out.buffers.touched_by(body, CallId(c));
  }
  PieceEnd end_of(int q) {
    const Step& s = *p_.step;
    std::set<ParamId> mine;
    for (const Accumulator& a : s.accumulators)
      if (a.piece == PieceId(q)) mine.insert(a.param);
    PieceEnd end;
    for (TaskId t : s.tasks.ids()) {
      const Task& task = s.tasks[t];
      const Calls& body = *p_.calls[t];
      if (task.part == Part::U && task.piece == PieceId(q)) end.of_gather = body.buffers.size();
      const ParamId* param = std::get_if<ParamId>(&task.about);
      if (!param || !mine.contains(*param)) continue;
      end.buffers += body.buffers.size();
      end.block = std::max(end.block, bytes_of_temporaries(body));
      for (const Binding& b : task.outputs)
        if (const ValueId* v = as<ValueId>(b); v && task.part == Part::S) end.scattered += s.values[*v].bytes;
    }
    return end;
  }
  // Forward and what is made again go up, backward goes down; a W reads what its I does.
  static void come_after(PieceCall& c, const Which& to, const Which& from, std::uint32_t made) {
    const bool up = to.first == Part::F || to.first == Part::R;
    if (from.first == Part::U)
      c.gathered = true;
    else if (from.second == to.second)
      c.after.push_back({from.first, made});
    else if (up ? from.first == to.first && from.second < to.second : from.first == Part::I && from.second > to.second)
      c.chained = true;
  }

  PieceCall call(TaskId task, CallId c) {
    const ActorId actor(0);
    const stretto::Run run{.task = task, .calls = CallRange{c, CallId(c.value + 1)}};
    const Calls& body = *p_.calls[task];
    const double unhurried = unhurried_.calls(body, actor)[c];
    if (!body.graph.node(body.calls[c].node).op->collective)
      return {.seconds = prices_.part(actor, run).seconds(), .unhurried = unhurried};
    const Prices::Started& s = prices_.started(actor, run).front();
    return {.seconds = s.seconds, .unhurried = unhurried, .link = s.wire.value};
  }

  const Program& p_;
  Prices prices_;
  WorkTimes unhurried_;
  CallFacts facts_;
  const Stack& stack_;
  std::map<Which, TaskId> tasks_;
};

// A piece like the i-th of a period after which a stage ends; if there is none, the first such piece.
int last_in_stage(const Program& p, int i, int period) {
  int found = 1 + i;
  for (int q = 1; q + 1 < p.step->pieces; ++q)
    if ((q - 1) % period == i && p.stage_of[PieceId(q)] != p.stage_of[PieceId(q + 1)]) found = q;
  return found;
}

bool chained(const PartWork& p) {
  return std::any_of(p.calls.begin(), p.calls.end(), [](const PieceCall& c) { return c.chained; });
}

}  // namespace

double PartWork::seconds() const {
  double sum = 0;
  for (const PieceCall& c : calls) sum += c.seconds;
  return sum;
}
bool PartWork::gathers() const {
  return std::any_of(calls.begin(), calls.end(), [](const PieceCall& c) { return c.gathered; });
}

LayerWork layer_work(const Program& p, const Cluster& c, int head_parts) {
  PieceReader reader(p, c);
  const int before_head = p.step->pieces - head_parts, period = (before_head - 1) / 4;
  LayerWork all{.embedding = reader.piece(0), .period = {}, .head = {}, .logits = logits_of(p)};
  // Of the stage of two periods those with a neighbour on each side.
  for (int i = 0; i < period; ++i) all.period.push_back(reader.piece(2 * period + 1 + (i > 0 ? i : period)));
  for (int i = 0; i < period; ++i) {  // by those that are the last of a stage, or stages of their own
    PartWork& again = all.period[i][Part::R];
    again.at_end = std::min(again.calls.size(), reader.piece(last_in_stage(p, i, period))[Part::R].calls.size());
  }
  for (int i = 0; i < head_parts; ++i) {
    PartWork& again = all.head.emplace_back(reader.piece(before_head + i))[Part::R];
    again.at_end = again.calls.size();
  }
  // The embedding is one, too: where others follow it, what they read is made again by all that made it.
  if (chained(all.period.front()[Part::R])) {
    PartWork& again = all.embedding[Part::R] = all.embedding[Part::F];
    again.at_end = 0;
    for (PieceCall& x : again.calls)
      for (PieceCall::After& a : x.after) a.part = Part::R;
  }
  // The head is a stage of its own there: in other stages its recompute follows that of the piece before it.
  if (chained(all.period.front()[Part::R]))
    for (PieceCall& x : all.head.front()[Part::R].calls) x.chained = x.after.empty();
  return all;
}

}  // namespace stretto
