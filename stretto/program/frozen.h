// Parameters that nobody writes lie once in memory that several ranks read.
//
//   std::byte* frozen = keeper(program, rank) == rank ? allocate(bytes) : arenas[keeper(program, rank)][Arena::frozen];
//
// All ranks of an actor that have the same of them share one copy, as far as they reach each other's memory. Only who
// keeps it fills it, before the first step.
#pragma once
#include <span>

#include "stretto/program/program.h"

namespace stretto {

IdVector<ParamId, bool> frozen_params(const Step&);

// The first rank that has the same frozen parameters in memory that `rank` reaches. `nodes`: per rank, which machine it
// is on; empty: all are on one.
int keeper(const Program&, int rank, std::span<const int> nodes = {});
int sharers(const Program&);             // how many ranks of an actor share them, when all are on one machine
std::string shared_str(const Program&);  // "4.62 GiB of frozen weights, shared by 8 ranks"; "": nothing is shared

}  // namespace stretto
