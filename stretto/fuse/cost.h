// What kernel calls take on a machine: the one model of time, for predictions, cuts and emulated devices alike.
//
//   double t = seconds_of(*program.calls[task], Machine{.flops = 50e9});
//
// What one call takes is said by cost/kernel.h; calls run one after the other. Bytes are those that calls read and
// write: what a group of pointwise ops hands on inside of one kernel costs no traffic. The time of a collective on its
// links is not included (cost/collective.h).
#pragma once
#include "stretto/cost/kernel.h"
#include "stretto/fuse/calls.h"

namespace stretto {

KernelWork kernel_work(const Calls&, CallId);
double seconds_of(const Calls&, const Machine&);
double seconds_of(const Calls&, CallId, const Machine&);  // one of them

// Before it is known where results go: as if each got memory of its own.
double seconds_of(const Graph& body, const Machine&);

}  // namespace stretto
