// Tests that train under many layouts, run once more as processes: under mpirun every configuration that has as many
// ranks as there are processes is trained by them, through shared memory and through messages alone, and must give the
// bits that threads give.
//
//   STRETTO_TEST_PROCESSES=1 mpirun -n 8 build/tests/test_layouts --gtest_filter='*Families*'
//
// The number thins them out: 5 takes every fifth. The last line says how many were compared.
#pragma once
#include <functional>

#include "stretto/stretto.h"

namespace stretto::test {

bool in_processes();  // whether this is such a run

// What a test does instead of its own comparison; all processes make the same calls.
void same_in_processes(const Parallel&, const std::function<Compiled(const Parallel&)>& compiled,
                       const std::function<Batch(const Trainer&, int step)>& batch);

// For a program of so many ranks: processes, when there are as many of them, else threads.
RunOptions ranks_of_this_run(int ranks);

}  // namespace stretto::test
