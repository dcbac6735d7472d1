// Schedules of tests/files/schedules.
#pragma once
#include <fstream>
#include <sstream>
#include <string>

#include "stretto/schedule/csv.h"

namespace stretto {

inline Schedule given(const std::string& name, CsvPipes pipes = CsvPipes::one) {
  std::ifstream in(std::string(STRETTO_TEST_DATA) + "/schedules/" + name, std::ios::binary);
  std::stringstream s;
  s << in.rdbuf();
  return read_csv(s.str(), name, {.pipes = pipes});
}

}  // namespace stretto
