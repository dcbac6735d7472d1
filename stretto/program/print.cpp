#include "stretto/base/text.h"
#include "stretto/program/labels.h"

namespace stretto {

std::string label_of(const Program& p, const Instruction& i) {
  if (const StartSum* s = std::get_if<StartSum>(&i))
    return fmt::format("sum of gradients of stage {}", p.buckets[s->bucket].stage);
  const Task& t = p.step->tasks[task_of(i)->task];
  switch (t.part) {
    case Part::count:
    case Part::scale:
      return "prologue";
    case Part::U:
      return fmt::format("gather of parameters of piece {}", t.piece);
    case Part::S:
      return fmt::format("reduce-scatter of gradients of piece {}", t.piece);
    case Part::total:
      return "outputs over ranks";
    case Part::combine:
      return "gradients over pieces and ranks";
    case Part::norm:
    case Part::clip:
      return "norm";
    default:
      return std::string(name_of(t.part));
  }
}

std::string_view name_of(Reshard r) { return r == Reshard::step ? "step" : "microbatch"; }

std::string_view name_of(Arena a) {
  constexpr std::string_view names[] = {"params", "gradients", "state", "inputs", "results", "activations", "scratch"};
  return names[std::size_t(a)];
}

std::string Program::str(const Instruction& i) const {
  const Program& p = *this;
  if (const Run* r = std::get_if<Run>(&i)) {
    const Task& t = p.step->tasks[r->task];
    return fmt::format("run {}{} microbatch {}{}", name_of(t.part), t.piece, r->microbatch,
                       (t.part == Part::W || t.part == Part::A) && !r->overwrite ? " accumulate" : "");
  }
  const auto collective = [&](std::string_view what, std::uint32_t task) {
    const Task& t = p.step->tasks[task];
    u64 bytes = 0;
    for (const Binding& b : t.part == Part::U ? t.outputs : t.inputs)
      bytes +=
          b.place == Place::value ? p.step->values[b.index].bytes : p.step->bytes(p.step->accumulators[b.index].type);
    return fmt::format("{} {} of {} of piece {}, {}", what, t.part == Part::U ? "gather" : "reduce-scatter",
                       t.part == Part::U ? "parameters" : "gradients", t.piece, human_bytes(double(bytes)));
  };
  if (const Start* s = std::get_if<Start>(&i)) return collective("start", s->run.task);
  if (const Await* s = std::get_if<Await>(&i)) return collective("await", s->task);
  const auto sum = [&](std::string_view what, std::uint32_t bucket) {
    const GradientBucket& b = p.buckets[bucket];
    return fmt::format("{} sum of {} gradients of stage {} over {}, {}", what, b.accumulators.size(), b.stage,
                       join(b.axes, ","), human_bytes(double(b.bytes)));
  };
  if (const StartSum* s = std::get_if<StartSum>(&i)) return sum("start", s->bucket);
  if (const AwaitSum* s = std::get_if<AwaitSum>(&i)) return sum("await", s->bucket);
  const bool sending = std::holds_alternative<Send>(i);
  const Transfer& t = p.transfers[sending ? std::get<Send>(i).transfer : std::get<Receive>(i).transfer];
  const Route& r = p.routes[t.route];
  const std::string microbatch = t.value != ~0u ? fmt::format(" microbatch {}", t.microbatch) : "";
  return fmt::format("{} {} {} {}{}, {}", sending ? "send" : "receive", r.name, sending ? "to" : "from",
                     sending ? r.target : r.source, microbatch, human_bytes(double(r.bytes)));
}

std::string Program::str() const {
  std::string text;
  if (ranks_per_actor() > 1)
    text = fmt::format("an actor is {} ranks, {}: each of them runs its actor's list\n", ranks_per_actor(), mesh.str());
  for (std::size_t a = 0; a < actors.size(); ++a) {
    text += fmt::format("actor {}: {} instructions\n", a, actors[a].code.size());
    for (const Instruction& i : actors[a].code) {
      text += "  " + str(i) + "\n";
    }
  }
  return text;
}

}  // namespace stretto
