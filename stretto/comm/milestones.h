// How far each rank is, for others that wait for it. Numbers rise, and no rank is ever 2^29 ahead of another.
//
//   milestones.tell(rank, 7);                                       // in the order of the rank's compute lane
//   double waited = milestones.wait(rank, DeviceLane::compute, other, 7);
#pragma once
#include <cstdint>

#include "stretto/ir/lane.h"

namespace stretto {

class Milestones {
 public:
  virtual ~Milestones() = default;
  virtual void tell(int rank, std::uint32_t number) = 0;
  // What follows in this lane of `rank` begins once `other` has told this number. Returns the seconds waited, where
  // calls wait.
  virtual double wait(int rank, DeviceLane, int other, std::uint32_t number) = 0;
  virtual void stop() noexcept = 0;  // everybody who waits, or will, gets an Error
};

}  // namespace stretto
