#include "stretto/runtime/records.h"

namespace stretto {

void Records::keep(bool on, std::size_t most) {
  on_ = on;
  if (!on) return;
  records_.reserve(most);
  while (events_.size() < most) events_.push_back({device_.event(), device_.event()});
}

void Records::begin_step() {
  records_.clear();
  waited_ = 0;
  settled_ = RecordId(0);
  forget_waits();
}

void Records::forget_waits() {
  before_run_ = longest_ = 0;
  message_.reset();
}

void Records::waited(double seconds, TransferId t) {
  waited(seconds);
  if (seconds <= longest_) return;
  longest_ = seconds;
  message_ = t;
}

void Records::waited(double seconds) {
  waited_ += seconds;
  before_run_ += seconds;
}

void Records::waited_before(InstructionId run) {
  while (records_.has(settled_) && records_[settled_].instruction != run) settled_ = RecordId(settled_.value + 1);
  if (records_.has(settled_)) {
    records_[settled_].waited = before_run_;
    records_[settled_].message = message_;
  }
  forget_waits();
}

void Records::waited_within(double seconds) {
  waited_ += seconds;
  within_ += seconds;
}

RecordId Records::add(RunRecord record, DeviceLane lane) {
  const RecordId r = records_.push_back(record);
  device_.record(events_[r].start, lane);
  return r;
}

std::optional<RecordId> Records::begin(InstructionId i, DeviceLane lane) {
  if (!on_) return std::nullopt;
  return add({.instruction = i}, lane);
}

void Records::settle() {
  for (RecordId r : records_.ids()) {
    records_[r].start = device_.seconds(events_[r].start);
    records_[r].end = device_.seconds(events_[r].end);
  }
}

}  // namespace stretto
