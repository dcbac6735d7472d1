// Schedules for torch.distributed.pipelining: what its runtime refuses, and the rows that it reads.
//
//   refuse(refused_by_torch(schedule));
//   write_file("mine.csv", torch_csv(schedule));   // for _PipelineScheduleRuntime._load_csv(file, "compute_only")
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "stretto/base/error.h"
#include "stretto/schedule/schedule.h"

namespace stretto {

inline constexpr std::string_view torch_version = "torch 2.15";

// Of a schedule that is valid here: what its rows cannot say, or its runtime does not run.
std::vector<Fault> refused_by_torch(const Schedule&);

// Actions alone: torch places messages, and gathers of parameters, itself.
std::string torch_csv(Schedule);

}  // namespace stretto
