// What a worker did in a step and what it waited for, if that is recorded. Times come from events of the device.
//
//   Records records(device);
//   records.keep(true, 100);
//   records.begin_step();
//   records.waited(seconds, transfer);                       // for a message, before the run that needs it
//   records.run(instruction, [&] { execute(run); });
//   std::optional<RecordId> open = records.begin(start, lane);     // a collective, until somebody sees its end
//   if (open) records.end(*open);
//   records.settle();                                        // the device has finished the step
#pragma once
#include <optional>
#include <vector>

#include "stretto/kernels/device.h"
#include "stretto/program/instruction.h"

namespace stretto {

using RecordId = Id<struct RecordTag>;

// One run, or a collective from its start to its end. Seconds of the steady clock.
struct RunRecord {
  InstructionId instruction;
  double start = 0, end = 0;
  double waited = 0;                       // for messages and collectives, right before it
  double within = 0;                       // part of its time: waiting for collectives in place
  std::optional<TransferId> message = {};  // the one it waited for longest
};

class Records {
 public:
  explicit Records(Device& device) : device_(device) {}
  void keep(bool on, std::size_t most);  // from the next step on; `most`: so many in a step, room for them is made here
  void begin_step();
  const std::vector<RunRecord>& list() const { return records_.list(); }

  void waited(double seconds, TransferId);
  void waited(double seconds);               // for a collective that was started before
  void waited_before(InstructionId run);     // all that was waited since the last run; of a step that is over
  void waited_within(double seconds);        // in the middle of a run
  double waited() const { return waited_; }  // seconds of the step, recorded or not

  template <class Work>
  void run(InstructionId i, Work work) {
    if (!on_) return work();
    const RecordId r = add({.instruction = i, .waited = before_run_, .message = message_});
    within_ = 0;
    work();
    end(r);
    records_[r].within = within_;
    forget_waits();
  }
  std::optional<RecordId> begin(InstructionId, DeviceLane);
  void end(RecordId r, DeviceLane lane = DeviceLane::compute) { device_.record(events_[r].end, lane); }
  void settle();  // fills in the times

 private:
  struct Events {
    EventId start, end;
  };
  RecordId add(RunRecord, DeviceLane = DeviceLane::compute);
  void forget_waits();

  Device& device_;
  bool on_ = false;
  IdVector<RecordId, Events> events_;
  IdVector<RecordId, RunRecord> records_;
  RecordId settled_{0};                 // the waits of those before it are filled in
  double waited_ = 0, before_run_ = 0;  // in this step; since the last run
  double within_ = 0;                   // in the middle of the current run
  double longest_ = 0;                  // since the last run, for one message: `message_`
  std::optional<TransferId> message_;
};

}  // namespace stretto
