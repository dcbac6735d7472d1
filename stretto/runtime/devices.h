// The one place that knows which devices there are.
//
//   std::unique_ptr<Device> device = make_device(program, actor, options);
#pragma once
#include <memory>

#include "stretto/kernels/device.h"
#include "stretto/program/program.h"
#include "stretto/runtime/options.h"

namespace stretto {

std::unique_ptr<Device> make_device(const Program&, ActorId, const RunOptions&);  // the program must live longer
bool computes(DeviceKind);                                                        // numbers are in its memory

}  // namespace stretto
