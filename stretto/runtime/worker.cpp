#include "stretto/runtime/worker.h"

#include <time.h>

#include <chrono>
#include <cmath>
#include <map>

#include "stretto/base/clock.h"
#include "stretto/base/text.h"
#include "stretto/fuse/cost.h"

namespace stretto {

namespace {

// Wakes as closely as the system can.
void sleep_until(double end) {
  timespec t{.tv_sec = time_t(end), .tv_nsec = long((end - double(time_t(end))) * 1e9)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr) == EINTR) continue;
}

}  // namespace

Worker::Worker(std::shared_ptr<const Program> program, int actor, int coordinate, WorkerOptions options)
    : program_(std::move(program)),
      actor_(actor),
      coordinate_(coordinate),
      coordinates_(coordinates_of(program_->mesh, coordinate)),
      options_(std::move(options)) {
  const bool emulated = options_.run.device == DeviceKind::emulated;
  device_ = emulated ? emulated_device() : cpu_device();
  const ActorProgram& p = this->program();
  for (std::size_t a = 0; a < arena_count; ++a)
    arenas_[a] = options_.shared[a] ? options_.shared[a] : device_->allocate(p.bytes[a]);
  prepare();
  if (emulated)
    for (const auto& calls : program_->calls) task_seconds_.push_back(seconds_of(*calls, options_.run.machine));
  jitter_state_ = options_.run.jitter_seed * 1000003 + u64(program_->rank_of(actor_, coordinate_)) + 1;
  const ArenaBases alone = arenas_;
  if (program_->ranks() == 1) connect({&alone, 1}, nullptr, nullptr);
}

void Worker::connect(std::span<const ArenaBases> arenas_of_all, Transport* transport, Groups* groups) {
  transport_ = transport;
  const auto prepared = [&](const CollectiveShape& s, Groups::Lane lane) {
    const Groups::Place at = groups->place(s.axes, actor_, coordinate_, lane);
    return Collective{at, at.group->prepare(s)};
  };
  collectives_.clear();
  for (std::size_t i = 0; i < shapes_.size(); ++i) collectives_.push_back(prepared(shapes_[i], lanes_[i]));
  started_.clear();
  for (const Instruction& i : program().code)
    if (const Start* s = std::get_if<Start>(&i)) {
      started_.resize(std::max(started_.size(), std::size_t(s->number) + 1));
      started_[s->number].parts.resize(bodies_[body_of_[s->run.task]].prepared.size());
    }
  under_way_.reserve(started_.size());
  sums_.clear();
  for (const GradientBucket& b : program_->buckets) {
    Sum& sum = sums_.emplace_back();
    if (b.actor != actor_) continue;
    CollectiveShape s{.dtype = b.dtype, .axes = b.axes};
    for (const std::string& a : b.axes) s.members *= program_->mesh.extent(a);
    add_box_dim(s, i64(b.bytes / size_of(b.dtype)), 1, 1);
    sum.what = prepared(s, Groups::Lane::gradients);
    sum.memory = arena(Arena::gradients) + b.offset;
  }
  addresses_.clear();
  for (const Slot& s : program().slots)
    addresses_.push_back((s.actor == Slot::own ? arenas_ : arenas_of_all[std::size_t(s.actor)])[std::size_t(s.arena)] +
                         s.offset);
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
      const Graph& g = calls->graph;
      Call call{.graph = g, .node = g.node(k.node), .accumulate = k.accumulate, .poll = program_->poll};
      for (const Ref& r : k.in) call.in.push_back(on_rank(r.view, g, program_->mesh, coordinates_));
      for (const Ref& r : k.out) call.out.push_back(on_rank(r.view, g, program_->mesh, coordinates_));
      PreparedCall c{.key = k.key, .node = k.node};
      if (call.node.op->collective) {
        c.collective = int(shapes_.size());
        shapes_.push_back(merged(shape_of(g, call.node, call.in[0], call.out[0], program_->mesh)));
        const Part part = program_->step->tasks[t].part;
        lanes_.push_back(part == Part::U || part == Part::S ? Groups::Lane::storage : Groups::Lane::tasks);
      } else {
        c.call = device_->prepare(call);
      }
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
  ++round_;
  waited_ = waited_now_ = 0;
  waited_for_ = ~0u;
  if (options_.run.times) emulated_.assign(program_->schedule.rows[std::size_t(actor_)].size(), 0);
  records_.clear();
  const std::vector<Instruction>& code = program().code;
  for (std::uint32_t i = 0; i < code.size(); ++i) {
    at_.store(i, std::memory_order_relaxed);
    if (transport_) come_to(i);
    if (options_.run.jitter > 0) jitter();
    if (const Run* r = std::get_if<Run>(&code[i])) {
      if (program_->gate >= 0 && gated(*r)) continue;
      if (!recording_) {
        execute(*r, step);
        help_along();
        continue;
      }
      RunRecord record{.instruction = i, .start = now(), .waited = waited_now_, .message = waited_for_};
      execute(*r, step);
      record.end = now();
      records_.push_back(record);
      waited_now_ = 0;
      waited_for_ = ~0u;
      help_along();
    } else if (const Send* s = std::get_if<Send>(&code[i])) {
      transport_->send(s->transfer, round_);
    } else if (const Receive* v = std::get_if<Receive>(&code[i])) {
      receive(v->transfer);
    } else if (const StartSum* b = std::get_if<StartSum>(&code[i])) {
      start_sum(b->bucket, i);
    } else if (const AwaitSum* b = std::get_if<AwaitSum>(&code[i])) {
      await_sum(b->bucket);
    } else if (const Start* s = std::get_if<Start>(&code[i])) {
      start(*s, i);
    } else {
      await(std::get<Await>(code[i]).number);
    }
  }
  if (transport_) come_to(std::uint32_t(code.size()));
  at_.store(std::uint32_t(code.size()), std::memory_order_relaxed);
}

// The transport may have to wait there, too.
void Worker::come_to(std::uint32_t instruction) {
  waiting_.store(true, std::memory_order_relaxed);
  transport_->at(instruction);
  waiting_.store(false, std::memory_order_relaxed);
}

void Worker::receive(std::uint32_t transfer) {
  waiting_.store(true, std::memory_order_relaxed);
  const double seconds = transport_->receive(transfer, round_);
  waiting_.store(false, std::memory_order_relaxed);
  waited_ += seconds;
  if (seconds > waited_now_) waited_for_ = transfer;
  waited_now_ += seconds;
}

void Worker::record(bool on) {
  recording_ = on;
  std::size_t runs = 0;
  for (const Instruction& i : program().code) runs += task_of(i) != nullptr || std::holds_alternative<StartSum>(i);
  if (on) records_.reserve(runs);
}

// One in four instructions, up to the given time.
void Worker::jitter() {
  jitter_state_ = jitter_state_ * 6364136223846793005ull + 1442695040888963407ull;
  const u64 random = jitter_state_ >> 33;
  if (random % 4 == 0) sleep_until(now() + options_.run.jitter * double((random / 4) % 1000) / 1000);
}

bool Worker::gated(const Run& r) const {
  if (program_->step->tasks[r.task].part != Part::update) return false;
  const std::byte* at = arena(Arena::results) + program().scalar_at[std::size_t(program_->gate)];
  return !std::isfinite(*reinterpret_cast<const double*>(at));
}

// The time of a task from its costs; with times per phase given, the first task of each phase of an action takes all.
void Worker::emulate(const Run& r) {
  const double start = stretto::now();
  const Task& task = program_->step->tasks[r.task];
  const auto take = [&](double seconds) {
    if (seconds > 0) sleep_until(start + seconds);
  };
  if (!options_.run.times) return take(task_seconds_[r.task]);
  if (r.action == ~0u || task.part < Part::F || task.part > Part::W) return;
  const std::uint16_t part = std::uint16_t(1u << unsigned(task.part));
  if (emulated_[r.action] & part) return;
  emulated_[r.action] |= part;
  const Times& t = *options_.run.times;
  const double chunks = double(program_->schedule.stages) / double(program_->actors.size());
  const double whole = task.part == Part::F ? t.F : task.part == Part::I ? t.I : t.W;
  take(whole / std::max(1.0, chunks));
}

std::string Worker::str() const {
  std::vector<std::string> at;
  for (std::size_t i = 0; i < coordinates_.size(); ++i)
    at.push_back(fmt::format("{}={}", program_->mesh[i].name, coordinates_[i]));
  return fmt::format("actor {}{}{}", actor_, at.empty() ? "" : ", ", join(at, " "));
}

std::string Worker::where(const Run& r, i64 step) const {
  const Task& t = program_->step->tasks[r.task];
  if (r.action == ~0u) return fmt::format("step {}, {}, {}", step, str(), name_of(t.part));
  return fmt::format("step {}, {}, stage {}, {} of piece {}, microbatch {}", step, str(), program_->stage_of[t.piece],
                     name_of(t.part), t.piece, r.microbatch);
}

void Worker::collect(const PreparedCall& c, const std::byte* in, std::byte* out) {
  const Collective& x = collectives_[std::size_t(c.collective)];
  waited_ += wait_for(x.at, x.at.group->start(x.at.member, x.prepared, in, out));
}

double Worker::wait_for(const Groups::Place& at, u64 ticket) {
  waiting_.store(true, std::memory_order_relaxed);
  const double seconds = at.group->wait(at.member, ticket);
  waiting_.store(false, std::memory_order_relaxed);
  return seconds;
}

// Of a collective: it is still open until somebody sees its end.
std::uint32_t Worker::begin_record(std::uint32_t instruction) {
  if (!recording_) return 0;
  records_.push_back({.instruction = instruction, .start = stretto::now()});
  return std::uint32_t(records_.size() - 1);
}
void Worker::end_record(std::uint32_t record) {
  if (recording_) records_[record].end = stretto::now();
}

void Worker::start(const Start& s, std::uint32_t instruction) {
  started_[s.number].record = begin_record(instruction);
  started_[s.number].recorded = false;
  const PreparedBody& body = bodies_[body_of_[s.run.task]];
  const bool emulated = options_.run.device == DeviceKind::emulated;
  std::byte* const* base = addresses_.data() + s.run.args;
  std::vector<Started::Part>& parts = started_[s.number].parts;
  for (std::size_t k = 0; k < body.prepared.size(); ++k) {
    const PreparedCall& c = body.prepared[k];
    const Collective& x = collectives_[std::size_t(c.collective)];
    const PreparedRef &from = body.refs[c.in], &to = body.refs[c.out];
    const std::byte* in = emulated ? nullptr : base[from.buffer->value] + from.start;
    std::byte* out = emulated ? nullptr : base[to.buffer->value] + to.start;
    parts[k] = {.what = &x, .ticket = x.at.group->start(x.at.member, x.prepared, in, out)};
  }
  under_way_.push_back(s.number);
}

void Worker::await(std::uint32_t number) {
  for (Started::Part& part : started_[number].parts) {
    if (part.complete) continue;
    const double seconds = wait_for(part.what->at, part.ticket);
    waited_ += seconds;
    waited_now_ += seconds;
    part.complete = true;
  }
  if (!started_[number].recorded) end_record(started_[number].record);
  std::erase(under_way_, number);
}

void Worker::start_sum(std::uint32_t bucket, std::uint32_t instruction) {
  Sum& s = sums_[bucket];
  s.record = begin_record(instruction);
  s.ticket = s.what.at.group->start(s.what.at.member, s.what.prepared, s.memory, s.memory);
  s.under_way = true;
  ++sums_under_way_;
}

void Worker::await_sum(std::uint32_t bucket) {
  Sum& s = sums_[bucket];
  if (!s.under_way) return;
  const double seconds = wait_for(s.what.at, s.ticket);
  waited_ += seconds;
  waited_now_ += seconds;
  end_record(s.record);
  s.under_way = false;
  --sums_under_way_;
}

// A share of what is under way, between two tasks.
void Worker::help_along() {
  for (const std::uint32_t number : under_way_) {
    Started& s = started_[number];
    bool complete = true;
    for (Started::Part& part : s.parts) {
      if (!part.complete) part.complete = part.what->at.group->progress(part.what->at.member, part.ticket);
      complete = complete && part.complete;
    }
    if (complete && !s.recorded) end_record(s.record), s.recorded = true;
  }
  if (sums_under_way_ == 0) return;
  for (Sum& s : sums_)
    if (s.under_way && s.what.at.group->progress(s.what.at.member, s.ticket)) {
      end_record(s.record);
      s.under_way = false;
      --sums_under_way_;
    }
}

// Kernels call it more often than messages need.
void Worker::poll() {
  const double time = stretto::now();
  if (time - polled_ < 0.2e-3) return;
  polled_ = time;
  transport_->progress();
  help_along();
}

void Worker::execute(const Run& r, i64 step) {
  PreparedBody& body = bodies_[body_of_[r.task]];
  if (options_.run.device == DeviceKind::emulated) {
    emulate(r);
    for (const PreparedCall& c : body.prepared)
      if (c.collective >= 0) collect(c, nullptr, nullptr);
    return;
  }
  const Task& task = program_->step->tasks[r.task];
  std::byte* const* base = addresses_.data() + r.args;
  Now now{.seed = options_.seed,
          .step = step,
          .first_row = program_->first_row(r.microbatch, coordinates_),
          .overwrite = r.overwrite};
  const auto at = [&](const PreparedRef& r) { return r.buffer ? base[r.buffer->value] + r.start : nullptr; };
  std::array<std::byte*, 48> in, out;
  for (PreparedCall& c : body.prepared) {
    for (std::size_t i = 0; i < c.inputs; ++i) in[i] = at(body.refs[c.in + i]);
    for (std::size_t i = 0; i < c.outputs; ++i) out[i] = at(body.refs[c.out + i]);
    if (c.key) now.key = task.keys[c.key->value];
    if (c.collective >= 0) {
      collect(c, in[0], out[0]);
      continue;
    }
    const Args args{.in = in.data(),
                    .out = out.data(),
                    .scratch = arena(Arena::scratch),
                    .now = now,
                    .poll = transport_ ? +[](void* self) { static_cast<Worker*>(self)->poll(); } : nullptr,
                    .poller = this};
    try {
      args.pause();
      if (!options_.run.profile) {
        device_->launch(c.call, args);
        continue;
      }
      const double start = stretto::now();
      device_->launch(c.call, args);
      c.seconds += stretto::now() - start;
      ++c.runs;
    } catch (Error& e) {
      e.within(fmt::format("{}, {}", where(r, step), body.calls->graph.node(c.node).op->name));
      throw;
    } catch (const std::exception& e) {
      throw std::move(Error("runtime", "{}", e.what()).as(Error::Kind::run))
          .within(fmt::format("{}, {}", where(r, step), body.calls->graph.node(c.node).op->name));
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
                       .kernel = std::string(c.collective >= 0 ? "group" : device_->kernel_name(c.call)),
                       .part = program_->step->tasks[t].part,
                       .shape = shape,
                       .seconds = c.seconds,
                       .runs = c.runs});
    }
  }
  return times;
}

}  // namespace stretto
