// Whether a program fits into this machine's memory.
//
//   check_fits_here(*program, nullptr);   // Error: [memory] the run needs 31.2 GiB, and this machine has 16 GiB
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/comm/peers.h"
#include "stretto/program/program.h"

namespace stretto {

// Planned for a rank of each, without frozen parameters that it shares with others.
std::vector<double> bytes_per_actor(const Program&);

// All arenas are touched before the first step: what a machine does not have would end the process, or another one.
// Every arena is whole pages of 2 MiB, and every rank gets a buffer for matrix products (kernels/cpu/products.h): both
// count here and not in bytes_per_actor().
// Of ranks that are processes those on `node` count (`nodes` has every rank's), else all of them. Frozen parameters
// count once for all ranks that share them; `apart`: none do, since they do not reach each other's memory.
double planned_bytes(const Program&, std::span<const int> nodes = {}, int node = 0, bool apart = false);
std::string beside_plan(const Program&);  // "1.38 GiB in all, with ..."
double machine_bytes();                   // memory and swap of this one
inline constexpr std::string_view to_fit =
    "a smaller model or train.batch, more train.microbatches, parallel.recompute, or ranks on more machines";
void check_fits(double planned, double there, std::string_view hint = to_fit);  // throws
void check_fits_here(const Program&, const Peers*);  // what this machine's ranks need; peers: ranks are processes

}  // namespace stretto
