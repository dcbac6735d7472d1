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
bool computes(DeviceKind);                                                         // its memory holds numbers
// The options with what the environment asks for: STRETTO_DEVICE=async makes every device asynchronous that can be, so
// that all tests test it, and STRETTO_JITTER=SEED lets its lanes dawdle. Error: options that a device cannot be
// combined with.
RunOptions on_device(RunOptions);
// What connects the ranks that are threads of this process. `spins`: how often a waiting thread looks before it sleeps.
std::unique_ptr<Wiring> wiring_of(std::span<Device* const> of_all_ranks, int spins);

}  // namespace stretto
