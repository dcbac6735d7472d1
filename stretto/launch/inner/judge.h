// How a launch ended, from what is known about its ranks and its mpirun.
//
//   LaunchResult r = judge(course, options);
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "stretto/launch/last_word.h"
#include "stretto/launch/launch.h"

namespace stretto {

struct RankEnd {
  int status = 0;              // as waitpid gave it
  double time = 0;             // steady clock
  bool told = false;           // we have killed it: because others had failed, or somebody asked for that
  std::string last_line = "";  // of its standard error, if it wrote any
};

struct RankCourse {
  bool begun = false;
  std::optional<LastWord> said = {};  // what it would end with
  std::optional<RankEnd> end = {};    // none after it has begun: the system does not end it
};

struct Course {
  std::vector<RankCourse> ranks;
  int mpirun = 0;                 // its status, as waitpid gave it
  bool killed_mpirun = false;     // by us, because it did not end
  bool too_late = false;          // it was ended because it had not started all ranks in time
  std::vector<int> signals = {};  // that we got, in order
};

LaunchResult judge(const Course&, const LaunchOptions&);

}  // namespace stretto
