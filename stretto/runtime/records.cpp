#include "stretto/runtime/records.h"

namespace stretto {

void Records::keep(bool on, std::size_t most) {
  on_ = on;
  if (on) records_.reserve(most);
}

void Records::begin_step() {
  records_.clear();
  waited_ = 0;
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

void Records::waited_within(double seconds) { waited_ += seconds; }

std::optional<RecordId> Records::begin(InstructionId i) {
  if (!on_) return std::nullopt;
  return records_.push_back({.instruction = i, .start = now()});
}

}  // namespace stretto
