#include "stretto/plan/piece_buffers.h"

#include <algorithm>

#include "stretto/program/memory/memory.h"
#include "stretto/step/storage.h"

namespace stretto {
namespace {

using Kind = PieceBuffer::Kind;

bool stays(const Step& s, const CrossValue& v) {
  const auto piece = s.tasks[v.producer].piece;
  return std::all_of(v.consumers.begin(), v.consumers.end(), [&](TaskId c) { return s.tasks[c].piece == piece; });
}

// Among what its task makes for tasks of its own piece, or of others.
std::uint32_t number_of(const Step& s, ValueId value) {
  const bool own = stays(s, s.values[value]);
  std::uint32_t number = 0;
  for (const Binding& b : s.tasks[s.values[value].producer].outputs) {
    const ValueId* v = as<ValueId>(b);
    if (v && *v == value) break;
    number += v && stays(s, s.values[*v]) == own;
  }
  return number;
}

PieceBuffer of_value(const Step& s, ValueId value, const Task& task) {
  const CrossValue& v = s.values[value];
  const Task& from = s.tasks[v.producer];
  PieceBuffer b{.maker = from.part, .number = number_of(s, value)};
  const bool up = from.part == Part::F || from.part == Part::R;
  if (gathered(s, value))
    b.kind = Kind::gathered;
  else if (stays(s, v))
    b.kind = Kind::own;
  else if (from.piece == task.piece)
    b.kind = up ? Kind::handed : Kind::sent_back;
  else
    b.kind = !up ? Kind::gradient : from.part == Part::R ? Kind::again : Kind::input;
  return b;
}

}  // namespace

TaskBuffers buffers_of(const Program& p, TaskId id) {
  const Task& task = p.step->tasks[id];
  const Calls& body = *p.calls[id];
  TaskBuffers all{.block = bytes_of_temporaries(body)};
  all.of_body = body.buffers.size();
  for (const BodyBuffer& buffer : body.buffers) {
    all.at.push_back(std::nullopt);
    if (!buffer.touched) continue;
    const Binding* where = nullptr;
    if (const ResultId* x = buffer.result()) where = &task.outputs[*x];
    if (const ArgumentId* x = buffer.argument()) where = &task.inputs[*x];
    const ValueId* value = where ? as<ValueId>(*where) : nullptr;
    if (where && !value) continue;
    PieceBuffer b = value ? of_value(*p.step, *value, task) : PieceBuffer{};
    b.bytes = buffer.bytes;
    all.at.back() = all.list.size();
    all.list.push_back(b);
  }
  return all;
}

std::vector<std::uint32_t> TaskBuffers::touched_by(const Calls& body, CallId c) const {
  std::vector<std::uint32_t> touched;
  for (const auto* refs : {&body.calls[c].in, &body.calls[c].out})
    for (const Ref& r : *refs)
      if (r.buffer && at[r.buffer->value]) touched.push_back(*at[r.buffer->value]);
  std::sort(touched.begin(), touched.end());
  touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
  return touched;
}

}  // namespace stretto
