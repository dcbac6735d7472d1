// Which devices there are: a line in devices.def for each, and what it can do. A new one is that line and a file of
// its own:
//
//   extern const DeviceType null_device_type{.name = "null", .about = "takes no time", .make = make_null,
//                                            .computes = false};
//
//   std::unique_ptr<Device> device = make_device(program, rank, options);
#pragma once
#include <memory>
#include <span>
#include <string_view>

#include "stretto/comm/wiring.h"
#include "stretto/kernels/device.h"
#include "stretto/program/program.h"
#include "stretto/runtime/options.h"

namespace stretto {

struct DeviceType {
  std::string_view name, about;
  std::unique_ptr<Device> (*make)(const Program&, int rank, const RunOptions&);
  bool computes = true;    // its memory holds numbers; else there are no losses, no parameters and no checkpoints
  bool emulates = false;   // takes the time that RunOptions::machine would take
  bool same_bits = true;   // as the CPU; else its numbers agree to rounding
  bool one_memory = true;  // its ranks read one copy of frozen parameters
  bool processes = true;   // ranks may be processes
  bool threads = false;    // of a rank share the work of its kernels
  bool late = true;        // messages can be made to take longer (RunOptions::link, cluster)
  bool takes_time() const { return computes || emulates; }  // else its speed says nothing
};
const DeviceType& type_of(DeviceKind);
std::span<const DeviceKind> device_kinds();  // in the order of devices.def
inline bool computes(DeviceKind kind) { return type_of(kind).computes; }

// Whether every thread of every rank on this machine has a core of its own: then one that waits looks for a while
// before it sleeps.
bool enough_cores(const Program&, const RunOptions&);
std::unique_ptr<Device> make_device(const Program&, int rank, const RunOptions&);  // the program must live longer
// The options with what the environment asks for: STRETTO_DEVICE=async makes every device asynchronous that can be, so
// that all tests test it, and STRETTO_JITTER=SEED lets its lanes dawdle. Error: options that a device cannot be
// combined with.
RunOptions on_device(RunOptions);
// What connects the ranks that are threads of this process, given the devices and arenas of all of them. `spins`: how
// often a waiting thread looks before it sleeps.
std::unique_ptr<Wiring> wiring_of(const Program&, std::span<Device* const>, std::span<const ArenaBases>, int spins);

}  // namespace stretto
