#include "stretto/runtime/worker.h"

#include <chrono>
#include <map>

namespace stretto {

Worker::Worker(std::shared_ptr<const Program> program, int actor, WorkerOptions options)
    : program_(std::move(program)), actor_(actor), options_(options), device_(cpu_device()) {
  const ActorProgram& p = this->program();
  for (std::size_t a = 0; a < arena_count; ++a)
    arenas_[a] = options_.shared[a] ? options_.shared[a] : device_->allocate(p.bytes[a]);
  prepare();
  for (const Slot& s : p.slots) addresses_.push_back(arenas_[std::size_t(s.arena)] + s.offset);
}

void Worker::prepare() {
  std::map<const Calls*, std::uint32_t> known;
  for (std::size_t t = 0; t < program_->calls.size(); ++t) {
    const std::shared_ptr<const Calls>& calls = program_->calls[t];
    const auto [it, fresh] = known.try_emplace(calls.get(), std::uint32_t(bodies_.size()));
    body_of_.push_back(it->second);
    if (!fresh) continue;
    PreparedBody body{.calls = calls};
    for (const KernelCall& k : calls->calls) {
      Call call{.graph = calls->graph, .node = calls->graph.node(k.node), .accumulate = k.accumulate};
      for (const Ref& r : k.in) call.in.push_back(r.view);
      for (const Ref& r : k.out) call.out.push_back(r.view);
      PreparedCall c{.call = device_->prepare(call), .key = k.key, .node = k.node};
      c.in = std::uint32_t(body.refs.size());
      c.inputs = std::uint16_t(k.in.size());
      for (const Ref& r : k.in) body.refs.push_back({r.buffer, r.start});
      c.out = std::uint32_t(body.refs.size());
      c.outputs = std::uint16_t(k.out.size());
      for (const Ref& r : k.out) body.refs.push_back({r.buffer, r.start});
      STRETTO_ASSERT(c.inputs <= 48 && c.outputs <= 48);
      body.prepared.push_back(c);
    }
    bodies_.push_back(std::move(body));
  }
}

void Worker::run(i64 step) {
  for (const Instruction& i : program().code) {
    if (const Run* r = std::get_if<Run>(&i))
      execute(*r, step);
    else if (const Send* s = std::get_if<Send>(&i))
      options_.transport->send(program_->transfers[s->transfer], arenas_);
    else
      options_.transport->receive(program_->transfers[std::get<Receive>(i).transfer], arenas_);
  }
}

void Worker::execute(const Run& r, i64 step) {
  PreparedBody& body = bodies_[body_of_[r.task]];
  const Task& task = program_->step->tasks[r.task];
  std::byte* const* base = addresses_.data() + r.args;
  Now now{
      .seed = options_.seed, .step = step, .first_row = i64(r.microbatch) * program_->rows, .overwrite = r.overwrite};
  std::array<std::byte*, 48> in, out;
  for (PreparedCall& c : body.prepared) {
    for (std::size_t i = 0; i < c.inputs; ++i) in[i] = base[body.refs[c.in + i].buffer] + body.refs[c.in + i].start;
    for (std::size_t i = 0; i < c.outputs; ++i) {
      const PreparedRef& ref = body.refs[c.out + i];
      out[i] = ref.buffer == Ref::none ? nullptr : base[ref.buffer] + ref.start;
    }
    if (c.key >= 0) now.key = task.keys[std::size_t(c.key)];
    const Args args{.in = in.data(), .out = out.data(), .scratch = arena(Arena::scratch), .now = now};
    try {
      if (!options_.profile) {
        device_->launch(c.call, args);
        continue;
      }
      const auto start = std::chrono::steady_clock::now();
      device_->launch(c.call, args);
      c.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      ++c.runs;
    } catch (Error& e) {
      e.within(fmt::format("step {}, actor {}, {} of piece {}, microbatch {}", step, actor_, name_of(task.part),
                           task.piece, r.microbatch));
      throw;
    }
  }
}

std::vector<KernelTime> Worker::profile() const {
  std::vector<KernelTime> times;
  for (std::size_t t = 0; t < body_of_.size(); ++t) {
    const PreparedBody& body = bodies_[body_of_[t]];
    bool first = true;  // a shared body is listed once, under its first task
    for (std::size_t u = 0; u < t; ++u) first = first && body_of_[u] != body_of_[t];
    if (!first) continue;
    for (const PreparedCall& c : body.prepared) {
      const Node& n = body.calls->graph.node(c.node);
      std::string shape;
      for (Value v : n.operands) shape += body.calls->graph.str(body.calls->graph.type(v));
      times.push_back({.op = std::string(n.op->name),
                       .kernel = std::string(device_->kernel_name(c.call)),
                       .part = program_->step->tasks[t].part,
                       .shape = shape,
                       .seconds = c.seconds,
                       .runs = c.runs});
    }
  }
  return times;
}

}  // namespace stretto
