#include "stretto/runtime/worker.h"

#include <algorithm>

#include "stretto/base/clock.h"
#include "stretto/base/match.h"
#include "stretto/base/text.h"
#include "stretto/runtime/devices.h"
#include "stretto/runtime/emulated_tasks.h"

namespace stretto {

Worker::Worker(std::shared_ptr<const Program> program, ActorId actor, int coordinate, WorkerOptions options)
    : program_(std::move(program)),
      actor_(actor),
      coordinate_(coordinate),
      coordinates_(coordinates_of(program_->mesh, coordinate)),
      options_(std::move(options)),
      device_(make_device(*program_, actor_, options_.run)),
      records_(*device_) {
  device_->time_kernels(options_.run.profile);
  for (std::size_t a = 0; a < arena_count; ++a)
    arenas_.at(a) = options_.shared.at(a) ? options_.shared.at(a) : device_->allocate(this->program().bytes.at(a));
  prepared_ = prepare(*program_, coordinates_, *device_);
  jitter_state_ = options_.run.jitter_seed * 1000003 + program_->rank_of(actor_, coordinate_) + 1;
  const ArenaBases alone = arenas_;
  if (program_->ranks() == 1) connect({&alone, 1}, nullptr, nullptr);
}

void Worker::connect(std::span<const ArenaBases> arenas_of_all, Transport* transport, Groups* groups) {
  transport_ = transport;
  shared_.clear();
  for (const SharedCall& c : prepared_.shared) {
    const Groups::Place at = groups->place(c.shape.axes, actor_, coordinate_, c.lane);
    shared_.push_back({at, at.group->prepare(c.shape)});
  }
  std::size_t most = 0;
  for (const PreparedBody& b : prepared_.bodies) most = std::max(most, b.prepared.size());
  in_flight_.reserve(program().collectives, most);
  addresses_.clear();
  for (const Slot& s : program().slots)
    addresses_.push_back((s.elsewhere ? arenas_of_all[s.elsewhere->value] : arenas_)[s.arena] + s.offset);
}

void Worker::run(i64 step) {
  step_ = step;
  ++round_;
  records_.begin_step();
  const auto& code = program().code;
  for (InstructionId i : code.ids()) {
    come_to(i);
    if (options_.run.jitter > 0) jitter();
    match(
        code[i], [&](const Run& r) { run(r, i); }, [&](const Send& s) { send(s.transfer); },
        [&](const Receive& r) { receive(r.transfer); }, [&](const Start& s) { start(s, i); },
        [&](const Await& w) { await(w); });
  }
  come_to(code.next_id());
  finish();
}

void Worker::finish() {
  const std::optional<KernelFault> fault = device_->finish();
  if (fault) throw refused(*fault);
  records_.settle();
}

void Worker::come_to(InstructionId i) {
  at_.store(i.value, std::memory_order_relaxed);
  if (transport_)
    waiting([&] {
      transport_->at(i);
      return 0.0;
    });
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
  in_flight_.start(s.collective, records_.begin(i, DeviceLane::compute));
  const PreparedBody& body = prepared_.body_of(s.run.task);
  std::byte* const* base = &addresses_[s.run.args];
  for (CallId c : ids(calls_of(s.run, *body.calls))) in_flight_.add(s.collective, start_call(body.prepared[c], base));
}

void Worker::await(const Await& w) {
  const std::optional<RecordId> open =
      in_flight_.await(w.collective, [&](const InFlight::Ticket& t) { records_.waited(wait_for(t)); });
  if (open) records_.end(*open);
}

InFlight::Ticket Worker::start_call(const PreparedCall& c, std::byte* const* base) {
  const Shared& x = shared_[std::get<SharedCallId>(c.does)];
  const PreparedRef &in = c.in[0], &out = c.out[0];
  return {x.at, x.at.group->start(x.at.member, x.prepared, base[in.buffer->value] + in.start,
                                  base[out.buffer->value] + out.start)};
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
            .poll = transport_ ? +[](void* self) { static_cast<Worker*>(self)->poll(); } : nullptr,
            .poller = this,
            .launch = {.instruction = i.value}};
  for (CallId id : ids(calls_of(r, *body.calls))) {
    const PreparedCall& c = body.prepared[id];
    if (std::holds_alternative<SharedCallId>(c.does)) {
      records_.waited_within(wait_for(start_call(c, base)));
      continue;
    }
    for (std::size_t k = 0; k < c.in.size(); ++k) in[k] = base[c.in[k].buffer->value] + c.in[k].start;
    for (std::size_t k = 0; k < c.out.size(); ++k)
      out[k] = c.out[k].buffer ? base[c.out[k].buffer->value] + c.out[k].start : nullptr;
    if (c.key) now.key = task.keys[*c.key];
    args.launch.call = id.value;
    launch(c, r, args);
  }
}

void Worker::launch(const PreparedCall& c, const Run& r, const Args& args) {
  const auto op_name = [&] { return prepared_.body_of(r.task).calls->graph.node(c.node).op->name; };
  try {
    args.pause();
    device_->launch(DeviceLane::compute, std::get<KernelId>(c.does), args);
  } catch (Error& e) {
    e.within(fmt::format("{}, {}", where(r), op_name()));
    throw;
  } catch (const std::exception& e) {
    throw std::move(Error("runtime", "{}", e.what()).as(Error::Kind::run))
        .within(fmt::format("{}, {}", where(r), op_name()));
  }
}

// A share of what is under way, between two tasks.
void Worker::help_along() {
  in_flight_.help_along([&](RecordId r) { records_.end(r); });
}

// Kernels call it more often than messages need.
void Worker::poll() {
  const double time = now();
  if (time - polled_ < 0.2e-3) return;
  polled_ = time;
  transport_->progress();
  help_along();
}

// One in four instructions, up to the given time.
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
  const Run& r = *task_of(program().code[InstructionId(f.launch.instruction)]);
  const Calls& body = *prepared_.body_of(r.task).calls;
  const Node& node = body.graph.node(body.calls[CallId(f.launch.call)].node);
  Error e = node.op->out_of_range({body.graph, node}, f.value, f.limit);
  e.within(fmt::format("{}, {}", where(r), node.op->name));
  return e;
}

}  // namespace stretto
