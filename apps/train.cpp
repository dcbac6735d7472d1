// `stretto train`: a run as RUN.toml says.
#include <memory>

#include "run_file.h"
#include "stretto/train/loop.h"

namespace stretto::app {

void add_train(CLI::App& app) {
  CLI::App* command = app.add_subcommand("train", "train a model; the run directory gets its config and metrics");
  auto run = std::make_shared<RunFile>();
  run->declare(*command);
  command->callback([run, command] { train(run->read(*command)); });
}

}  // namespace stretto::app
