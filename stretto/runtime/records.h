// What a worker did in a step and what it waited for, when that is recorded.
//
//   records.begin_step();
//   records.waited(seconds, transfer);                       // for a message, before the run that needs it
//   records.run(instruction, [&] { execute(run); });
//   std::optional<RecordId> open = records.begin(start);     // a collective, until somebody sees its end
//   if (open) records.end(*open);
#pragma once
#include <optional>
#include <vector>

#include "stretto/base/clock.h"
#include "stretto/program/instruction.h"

namespace stretto {

using RecordId = Id<struct RecordTag>;

// One run, or a collective from its start to its end. Seconds of the steady clock.
struct RunRecord {
  InstructionId instruction;
  double start = 0, end = 0;
  double waited = 0;                       // for messages and collectives, right before it
  std::optional<TransferId> message = {};  // the one it waited for longest
};

class Records {
 public:
  void keep(bool on, std::size_t most);  // from the next step on; `most`: so many in a step, room for them is made here
  void begin_step();
  const std::vector<RunRecord>& list() const { return records_.list(); }

  void waited(double seconds, TransferId);
  void waited(double seconds);               // for a collective that was started before
  void waited_within(double seconds);        // in the midst of a run
  double waited() const { return waited_; }  // seconds of the step, recorded or not

  template <class Work>
  void run(InstructionId i, Work work) {
    if (!on_) return work();
    RunRecord record{.instruction = i, .start = now(), .waited = before_run_, .message = message_};
    work();
    record.end = now();
    records_.push_back(record);
    forget_waits();
  }
  std::optional<RecordId> begin(InstructionId);
  void end(RecordId r) { records_[r].end = now(); }

 private:
  void forget_waits();

  bool on_ = false;
  IdVector<RecordId, RunRecord> records_;
  double waited_ = 0, before_run_ = 0;  // in this step; since the last run
  double longest_ = 0;                  // since the last run, for one message: `message_`
  std::optional<TransferId> message_;
};

}  // namespace stretto
