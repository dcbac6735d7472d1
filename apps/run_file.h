// The run that a command works on: RUN.toml and settings such as --train.steps=10.
//
//   auto run = std::make_shared<RunFile>();
//   run->declare(*command);
//   command->callback([run, command] { train(run->read(*command)); });
#pragma once
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "commands.h"
#include "stretto/config/run.h"
#include "stretto/cost/cluster_file.h"

namespace stretto::app {

struct RunFile {
  std::string file;

  void declare(CLI::App& command);
  bool given(const CLI::App& command) const;  // a file or settings; what is neither is an Error of usage
  RunConfig read(const CLI::App& command) const;
  RunConfig read_open(const CLI::App& command) const;  // for a plan: what is not given is open
  // A run that goes on needs no file: its own directory has one. `from`: what --resume says, "" for log.dir.
  void find(const std::string& from, const CLI::App& command);
};
// Of a command without a run: settings of one section, e.g. --parallel.data=2; others are refused.
std::vector<std::string> settings_only(const CLI::App& command, std::string_view section);
std::string config_of_run(const std::string& from, const std::vector<std::string>& settings);  // "": there is none
Mesh mesh_of(const ParallelSection&);                                                          // with the axes of names
// What is written must not be what was read.
void refuse_input(std::string_view command, const std::string& output, const std::vector<std::string>& inputs);
RunSizes sizes_of(const ModelConfig&, int ranks);

}  // namespace stretto::app
