// A device that computes nothing: its memory is addresses only, and a task takes the time that a cost model gives it.
// The runtime around it is the real one and does not know.
//
//   std::unique_ptr<Device> device = emulated_device(program, actor, machine, {});
#pragma once
#include <memory>
#include <optional>

#include "stretto/cost/machine.h"
#include "stretto/cost/times.h"
#include "stretto/kernels/device.h"
#include "stretto/program/program.h"

namespace stretto {

// The program must outlive it. Times: see EmulatedTasks.
std::unique_ptr<Device> emulated_device(const Program&, ActorId, const Machine&, std::optional<Times>);

}  // namespace stretto
