// The one place that knows which devices there are.
//
//   std::unique_ptr<Device> device = make_device(program, rank, options);
#pragma once
#include <memory>
#include <span>

#include "stretto/comm/wiring.h"
#include "stretto/kernels/device.h"
#include "stretto/program/program.h"
#include "stretto/runtime/options.h"

namespace stretto {

std::unique_ptr<Device> make_device(const Program&, int rank, const RunOptions&);  // the program must live longer
bool computes(DeviceKind);                                                         // numbers are in its memory
// What is really run on, by the environment: STRETTO_DEVICE=async makes every device asynchronous that can be, so that
// all tests are tests of it, and STRETTO_JITTER=SEED lets its lanes dawdle. Error: what a device cannot be combined with.
RunOptions on_device(RunOptions);
// What connects the ranks that are threads of this process; `spins`: looks before a thread that waits sleeps.
std::unique_ptr<Wiring> wiring_of(std::span<Device* const> of_all_ranks, int spins);

}  // namespace stretto
