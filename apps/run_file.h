// The run that a command works on: RUN.toml and settings such as --train.steps=10.
//
//   auto run = std::make_shared<RunFile>();
//   run->declare(*command);
//   command->callback([run, command] { train(run->read(*command)); });
#pragma once
#include <string>
#include <vector>

#include "commands.h"
#include "stretto/config/run.h"

namespace stretto::app {

struct RunFile {
  std::string file;

  void declare(CLI::App& command);
  bool given(const CLI::App& command) const;  // a file or settings; what is neither is an Error of usage
  RunConfig read(const CLI::App& command) const;
};

}  // namespace stretto::app
