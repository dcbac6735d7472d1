#include "stretto/base/text.h"
#include "stretto/program/labels.h"

namespace stretto {
namespace {

u64 bytes_of(const Program& p, const Task& t) {
  u64 bytes = 0;
  const auto add = [&](const auto& bindings) {
    for (const Binding& b : bindings) {
      if (const ValueId* v = as<ValueId>(b)) bytes += p.step->values[*v].bytes;
      if (const AccumulatorId* g = as<AccumulatorId>(b)) bytes += p.step->bytes(p.step->accumulators[*g].type);
      if (const BucketId* x = as<BucketId>(b)) bytes += p.step->buckets[*x].bytes;
    }
  };
  if (t.part == Part::U)
    add(t.outputs);
  else
    add(t.inputs);
  return bytes;
}

// What is started and awaited: "gather of parameters of piece 3, 1.2 MB".
std::string collective_str(const Program& p, TaskId task) {
  const Task& t = p.step->tasks[task];
  std::string what;
  if (t.part == Part::sum) {
    const GradientBucket& b = p.step->buckets[std::get<BucketId>(t.about)];
    what =
        fmt::format("sum of {} gradients of stage {} over {}", b.accumulators.size(), b.stage.value, join(b.axes, ","));
  } else if (t.part == Part::U || t.part == Part::S) {
    what = fmt::format("{} of piece {}", t.part == Part::U ? "gather of parameters" : "reduce-scatter of gradients",
                       t.piece->value);
  } else {
    return fmt::format("collective of {}", str(t));
  }
  return fmt::format("{}, {}", what, human_bytes(static_cast<double>(bytes_of(p, t))));
}

std::string run_str(const Program& p, const Run& r) {
  const Task& t = p.task(r);
  const bool accumulates = (t.part == Part::W || t.part == Part::A) && !r.overwrite;
  std::string text = fmt::format("run {}{} microbatch {}{}", name_of(t.part), t.piece.value_or(PieceId(0)).value,
                                 r.microbatch.value, accumulates ? " accumulate" : "");
  if (r.calls) text += fmt::format(", calls {} to {}", r.calls->from.value, i64{r.calls->to.value} - 1);
  return text;
}

std::string message_str(const Program& p, TransferId id, std::string_view verb, std::string_view preposition,
                        ActorId other) {
  const Transfer& t = p.transfers[id];
  const Route& r = p.routes[t.route];
  const std::string microbatch = t.value() ? fmt::format(" microbatch {}", t.value()->microbatch.value) : "";
  return fmt::format("{} {} {} {}{}, {}", verb, r.name, preposition, other.value, microbatch,
                     human_bytes(static_cast<double>(r.bytes)));
}

}  // namespace

std::string label_of(const Program& p, TaskId task) {
  const Task& t = p.step->tasks[task];
  switch (t.part) {
    case Part::count:
    case Part::scale:
      return "prologue";
    case Part::U:
      return fmt::format("gather of parameters of piece {}", t.piece->value);
    case Part::S:
      return fmt::format("reduce-scatter of gradients of piece {}", t.piece->value);
    case Part::sum:
      return fmt::format("sum of gradients of stage {}", p.step->buckets[std::get<BucketId>(t.about)].stage.value);
    case Part::total:
      return "outputs over ranks";
    case Part::combine:
      return "gradients over pieces and ranks";
    case Part::norm:
    case Part::finite:
    case Part::clip:
      return "norm";
    default:
      return std::string(name_of(t.part));
  }
}

std::string_view name_of(Reshard r) { return r == Reshard::step ? "step" : "microbatch"; }

std::string_view name_of(Arena a) {
  constexpr std::string_view names[] = {"params",  "frozen",      "gradients", "state", "inputs",
                                        "results", "activations", "scratch",   "kept"};
  return names[static_cast<int>(a)];
}

std::string Program::str(const Instruction& i) const {
  const auto route = [&](TransferId t) -> const Route& { return routes[transfers[t].route]; };
  return match(
      i, [&](const Run& r) { return run_str(*this, r); },
      [&](const Start& s) { return "start " + collective_str(*this, s.run.task); },
      [&](const Await& w) { return "await " + collective_str(*this, w.task); },
      [&](const Send& s) { return message_str(*this, s.transfer, "send", "to", route(s.transfer).target); },
      [&](const Receive& r) { return message_str(*this, r.transfer, "receive", "from", route(r.transfer).source); });
}

std::string Program::str() const {
  std::string text;
  if (ranks_per_actor() > 1)
    text = fmt::format("an actor is {} ranks, {}: each of them runs its actor's list\n", ranks_per_actor(), mesh.str());
  for (ActorId a : actors.ids()) {
    text += fmt::format("actor {}: {} instructions\n", a.value, actors[a].code.size());
    for (const Instruction& i : actors[a].code) text += "  " + str(i) + "\n";
  }
  return text;
}

}  // namespace stretto
