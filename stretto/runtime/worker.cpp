#include "stretto/runtime/worker.h"

#include <algorithm>

#include "stretto/base/clock.h"
#include "stretto/base/match.h"
#include "stretto/base/text.h"
#include "stretto/runtime/devices.h"

namespace stretto {

Worker::Worker(std::shared_ptr<const Program> program, ActorId actor, int coordinate, WorkerOptions options)
    : program_(std::move(program)),
      actor_(actor),
      coordinate_(coordinate),
      coordinates_(coordinates_of(program_->mesh, coordinate)),
      options_(std::move(options)),
      device_(make_device(*program_, program_->rank_of(actor_, coordinate), options_.run)),
      records_(*device_) {
  device_->time_kernels(options_.run.profile);
  lanes_ = lanes_of(*program_, actor_);
  if (options_.run.lanes) options_.run.lanes(lanes_);
  if (!device_->calls_wait()) options_.run.jitter = 0;  // its lanes have their own
  for (std::size_t a = 0; a < arena_count; ++a)
    arenas_.at(a) = options_.shared.at(a) ? options_.shared.at(a) : device_->allocate(this->program().bytes.at(a));
  prepared_ = prepare(*program_, coordinates_, *device_);
  jitter_state_ = options_.run.jitter_seed * 1000003 + rank() + 1;
  const ArenaBases alone = arenas_;
  if (program_->ranks() == 1) connect({&alone, 1}, nullptr, nullptr);
}

void Worker::connect(std::span<const ArenaBases> arenas_of_all, Transport* transport, Groups* groups) {
  transport_ = transport;
  polls_ = device_->calls_wait() && (transport || program().collectives > 0);
  if (groups) find_groups(*groups);
  if (!device_->calls_wait()) {
    begun_ = device_->event();
    for (std::size_t i = 0; i < program().code.size(); ++i) ended_.push_back(device_->event());
  }
  std::size_t most = 0;
  for (const PreparedBody& b : prepared_.bodies) most = std::max(most, b.prepared.size());
  in_flight_.reserve(program().collectives, most);
  addresses_.clear();
  for (const Slot& s : program().slots)
    addresses_.push_back((s.elsewhere ? arenas_of_all[s.elsewhere->value] : arenas_)[s.arena] + s.offset);
}

// A call that all ranks of a group make together has a group in every lane in which it is made.
void Worker::find_groups(Groups& groups) {
  shared_.assign(prepared_.shared.size(), {});
  InstructionId next(0);
  for (const Instruction& x : program().code) {
    const InstructionId i = next;
    ++next.value;
    const Run* r = task_of(x);
    if (!r) continue;
    const PreparedBody& body = prepared_.body_of(r->task);
    for (CallId c : ids(calls_of(*r, *body.calls)))
      if (const SharedCallId* call = std::get_if<SharedCallId>(&body.prepared[c].does))
        if (std::optional<Shared>& shared = shared_[*call][lanes_.lane[i]]; !shared) {
          const CollectiveShape& shape = prepared_.shared[*call];
          const Groups::Membership at = groups.membership(shape.axes, actor_, coordinate_, lanes_.lane[i]);
          shared = {at, at.group->prepare(shape)};
        }
  }
}

void Worker::run(i64 step) {
  begin(step);
  InstructionId i(0);
  for (const Instruction& x : program().code) {
    come_to(i);
    match(
        x, [&](const Run& r) { run(r, i); }, [&](const Send& s) { send(s.transfer); },
        [&](const Receive& r) { receive(r.transfer); }, [&](const Start& s) { start(s, i); },
        [&](const Await& w) { await(w); });
    leave(i);
    ++i.value;
  }
  finish(i);
}

void Worker::begin(i64 step) {
  step_ = step;
  ++round_;
  records_.begin_step();
  if (!device_->calls_wait()) device_->record(begun_, DeviceLane::compute);
}

// All that an instruction waits for: the transport, other lanes, ranks in the step before.
void Worker::come_to(InstructionId i) {
  tell_transport(i);
  if (options_.run.jitter > 0) jitter();
  if (!device_->calls_wait())
    for (InstructionId j : lanes_.waits[i]) device_->wait(lanes_.lane[i], ended_[j]);
  keep_apart(i, lanes_.lane[i]);
}

void Worker::leave(InstructionId i) {
  if (!device_->calls_wait()) device_->record(ended_[i], lanes_.lane[i]);
}

void Worker::finish(InstructionId end) {
  tell_transport(end);
  std::optional<KernelFault> fault;
  waiting([&] {
    fault = finish_device();
    return 0.0;
  });
  if (fault) throw refused(*fault);
  keep_apart(end, DeviceLane::compute);  // all lanes are done
  records_.settle();
  if (!device_->calls_wait()) settle_waits();
}

std::optional<KernelFault> Worker::finish_device() {
  try {
    return device_->finish();
  } catch (const LaunchError& e) {
    const Instruction at = program().code[InstructionId(e.launch.instruction)];
    const Run& r = *task_of(at);
    naming(r, CallId(e.launch.call), [&] { std::rethrow_exception(e.why); });
  } catch (Error& e) {  // of the device itself
    std::string place = fmt::format("step {}, {}", step_, str());
    if (const InstructionId i = at(); program().code.has(i)) {
      const Instruction newest = program().code[i];
      const Run* const r = task_of(newest);
      place = r ? where(*r) : fmt::format("{}, {}", place, program_->str(newest));
    }
    e.within(place);
    throw;
  }
  return std::nullopt;
}

// Tasks run in one lane, one after the other, so a wait there took the time since the end of the instruction before it.
void Worker::settle_waits() {
  double before = device_->seconds(begun_);
  for (InstructionId i : program().code.ids()) {
    if (lanes_.lane[i] != DeviceLane::compute) continue;
    const double end = device_->seconds(ended_[i]), took = end - std::exchange(before, end);
    match(
        program().code[i], [&](const Run&) { records_.waited_before(i); },
        [&](const Receive& r) { records_.waited(took, r.transfer); }, [&](const Await&) { records_.waited(took); },
        [](const Send&) {}, [](const Start&) {});
  }
}

InstructionId Worker::at() const {
  const InstructionId host(at_.load(std::memory_order_relaxed));
  const std::optional<EventId> newest = device_->newest();
  if (!newest) return host;
  // Events of instructions follow that of the step's beginning; others belong to records, in the middle of an
  // instruction.
  if (*newest >= begun_ && *newest <= ended_.back())
    seen_.store(newest->value - begun_.value, std::memory_order_relaxed);
  InstructionId i(seen_.load(std::memory_order_relaxed));
  while (lanes_.lane.has(i) && lanes_.lane[i] != DeviceLane::compute) i = InstructionId(i.value + 1);
  return i;
}

void Worker::tell_transport(InstructionId i) {
  at_.store(i.value, std::memory_order_relaxed);
  if (transport_)
    waiting([&] {
      transport_->at(i);
      return 0.0;
    });
}

void Worker::keep_apart(InstructionId i, DeviceLane lane) {
  if (ahead_) records_.waited(waiting([&] { return ahead_->come_to(rank(), round_, i, lane); }));
}

template <class Wait>
double Worker::waiting(Wait wait) {
  waiting_.store(true, std::memory_order_relaxed);
  const double seconds = wait();
  waiting_.store(false, std::memory_order_relaxed);
  return seconds;
}

void Worker::run(const Run& r, InstructionId i) {
  records_.run(i, [&] { execute(r, i); });
  help_along();
}

void Worker::send(TransferId t) { transport_->send(t, round_); }

void Worker::receive(TransferId t) {
  records_.waited(waiting([&] { return transport_->receive(t, round_); }), t);
}

void Worker::start(const Start& s, InstructionId i) {
  const DeviceLane lane = lanes_.lane[i];
  const std::optional<RecordId> open = records_.begin(i, lane);
  const bool seen = device_->calls_wait();  // whoever looks sees its end; else the lane tells
  in_flight_.start(s.collective, seen ? open : std::nullopt);
  const PreparedBody& body = prepared_.body_of(s.run.task);
  std::byte* const* base = &addresses_[s.run.args];
  for (CallId c : ids(calls_of(s.run, *body.calls)))
    in_flight_.add(s.collective, start_call(body.prepared[c], base, lane));
  if (open && !seen) records_.end(*open, lane);
}

void Worker::await(const Await& w) {
  const std::optional<RecordId> open =
      in_flight_.await(w.collective, [&](const InFlight::Ticket& t) { records_.waited(wait_for(t)); });
  if (open) records_.end(*open);
}

InFlight::Ticket Worker::start_call(const PreparedCall& c, std::byte* const* base, DeviceLane lane) {
  const Shared& x = *shared_[std::get<SharedCallId>(c.does)][lane];
  const auto at = [&](const PreparedRef& r) { return base[r.buffer->value] + r.start; };
  const void* counts = c.in.size() > 1 ? at(c.in[1]) : nullptr;
  return {x.at, x.at.group->start(x.at.member, x.prepared, at(c.in[0]), at(c.out[0]), counts)};
}

double Worker::wait_for(const InFlight::Ticket& t) {
  return waiting([&] { return t.at.group->wait(t.at.member, t.number); });
}

void Worker::execute(const Run& r, InstructionId i) {
  const PreparedBody& body = prepared_.body_of(r.task);
  const Task& task = program_->task(r);
  std::byte* const* base = &addresses_[r.args];
  Now now{.seed = options_.seed,
          .step = step_,
          .first_row = program_->first_row(r.microbatch, coordinates_),
          .overwrite = r.overwrite};
  std::array<std::byte*, most_operands> in, out;
  Args args{.in = in.data(),
            .out = out.data(),
            .scratch = arenas_[Arena::scratch],
            .now = now,
            .poll = polls_ ? +[](void* self) { static_cast<Worker*>(self)->poll(); } : nullptr,
            .poller = this,
            .launch = {.instruction = i.value},
            .scratch_each = program().bytes[Arena::scratch] / program_->threads};
  for (CallId id : ids(calls_of(r, *body.calls))) {
    const PreparedCall& c = body.prepared[id];
    if (std::holds_alternative<SharedCallId>(c.does)) {
      records_.waited_within(wait_for(start_call(c, base, DeviceLane::compute)));
      continue;
    }
    for (std::size_t k = 0; k < c.in.size(); ++k) in[k] = base[c.in[k].buffer->value] + c.in[k].start;
    for (std::size_t k = 0; k < c.out.size(); ++k)
      out[k] = c.out[k].buffer ? base[c.out[k].buffer->value] + c.out[k].start : nullptr;
    if (c.key) now.key = task.keys[*c.key];
    args.launch.call = id.value;
    naming(r, id, [&] {
      args.pause();
      device_->launch(DeviceLane::compute, std::get<KernelId>(c.does), args);
    });
  }
}

// Adds to what `work` throws where that was.
template <class Work>
void Worker::naming(const Run& r, CallId call, Work work) {
  const auto place = [&] {
    const Calls& body = *prepared_.body_of(r.task).calls;
    return fmt::format("{}, {}", where(r), body.graph.node(body.calls[call].node).op->name);
  };
  try {
    work();
  } catch (Error& e) {
    e.within(place());
    throw;
  } catch (const std::exception& e) {
    throw std::move(Error("runtime", "{}", e.what()).as(Error::Kind::run)).within(place());
  }
}

void Worker::keep(int place) {
  const auto& bytes = program().bytes;
  std::byte* to = arenas_[Arena::kept] + place * bytes[Arena::kept] / 2;
  device_->copy(to, arenas_[Arena::params], bytes[Arena::params]);
  device_->copy(to + bytes[Arena::params], arenas_[Arena::state], bytes[Arena::state]);
}

void Worker::put_back(int place) {
  const auto& bytes = program().bytes;
  const std::byte* from = arenas_[Arena::kept] + place * bytes[Arena::kept] / 2;
  device_->copy(arenas_[Arena::params], from, bytes[Arena::params]);
  device_->copy(arenas_[Arena::state], from + bytes[Arena::params], bytes[Arena::state]);
}

// Does a share of what is under way, between two tasks.
void Worker::help_along() {
  in_flight_.help_along([&](RecordId r) { records_.end(r); });
}

// Kernels call this more often than messages and collectives need it.
void Worker::poll() {
  const double time = now();
  if (time - polled_ < 0.2e-3) return;
  polled_ = time;
  if (transport_) transport_->progress();
  help_along();
}

// Before one instruction in four, sleeps for up to the given time.
void Worker::jitter() {
  jitter_state_ = jitter_state_ * 6364136223846793005ull + 1442695040888963407ull;
  const u64 random = jitter_state_ >> 33;
  if (random % 4 == 0) sleep_until(now() + options_.run.jitter * static_cast<double>((random / 4) % 1000) / 1000);
}

void Worker::record(bool on) {
  const auto runs = std::ranges::count_if(program().code, [](const Instruction& i) { return task_of(i) != nullptr; });
  records_.keep(on, runs);
}

std::string Worker::str() const {
  std::vector<std::string> at;
  for (std::size_t i = 0; i < coordinates_.size(); ++i)
    at.push_back(fmt::format("{}={}", program_->mesh[i].name, coordinates_[i]));
  return fmt::format("actor {}{}{}", actor_.value, at.empty() ? "" : ", ", join(at, " "));
}

std::string Worker::where(const Run& r) const {
  const Task& t = program_->task(r);
  if (!r.action) return fmt::format("step {}, {}, {}", step_, str(), name_of(t.part));
  return fmt::format("step {}, {}, stage {}, {} of piece {}, microbatch {}", step_, str(),
                     program_->stage_of[*t.piece].value, name_of(t.part), t.piece->value, r.microbatch.value);
}

Error Worker::refused(const KernelFault& f) const {
  const Instruction at = program().code[InstructionId(f.launch.instruction)];
  const Run& r = *task_of(at);
  const Calls& body = *prepared_.body_of(r.task).calls;
  const Node& node = body.graph.node(body.calls[CallId(f.launch.call)].node);
  Error e = node.op->out_of_range({body.graph, node}, f.value, f.limit);
  e.within(fmt::format("{}, {}", where(r), node.op->name));
  return e;
}

}  // namespace stretto
