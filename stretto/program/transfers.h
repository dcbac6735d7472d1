// What goes from one actor to another while a program is made: a route for each thing that does, a transfer for each
// time.
//
//   Transfers transfers(program);
//   const std::uint32_t transfer = transfers.of_value(value, microbatch, source, target, true);
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "stretto/program/program.h"

namespace stretto {

// Each returns the transfer's place in the program's list.
class Transfers {
 public:
  explicit Transfers(Program& p) : p_(p) {}

  // The same one whenever it is asked for. `direct`: made where its reader looks for it.
  std::uint32_t of_value(std::uint32_t value, int microbatch, int source, int target, bool direct);
  std::uint32_t of(Binding persistent, int source, int target, std::string_view kind);
  std::uint32_t of_squares(std::vector<std::uint32_t> params, int source, int target);

 private:
  std::uint32_t route(int source, int target, u64 bytes, std::string name);
  std::uint32_t add(Transfer);

  Program& p_;
  std::map<std::tuple<std::string, int, int>, std::uint32_t> routes_;
  std::map<std::tuple<std::uint32_t, int, int>, std::uint32_t> values_;
};

// What is sent stays as it is while one more action runs: long enough to leave beside it. Persistent things stay to the
// end of the step.
void keep_sent(Program&);

}  // namespace stretto
