// The first time that a run meets devices whose bits are not the CPU's: what is looked at before a number of theirs is
// believed, one after the other up to the first that is wrong, as one table.
//
//   const Contact c = first_contact(read_run("run.toml", {"--parallel.device=cuda"}));
//   fmt::print("{}", c.str());
//   if (c.wrong) fmt::print("{}\n", *c.wrong);
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "stretto/run/verify.h"

namespace stretto {

struct ContactOptions {
  VerifyOptions verify = {};
  double scale = 1;                            // of the sizes that speeds are measured with
  std::size_t copied = std::size_t(16) << 20;  // bytes, between every two devices
};

struct Contact {
  struct Row {
    std::string what, found;
  };
  std::vector<Row> rows;
  std::optional<std::string> wrong;  // the last row's; nothing was looked at behind it
  std::string str() const;
};

bool has_first_contact(const RunConfig&);
Contact first_contact(const RunConfig&, const ContactOptions& = {});

}  // namespace stretto
