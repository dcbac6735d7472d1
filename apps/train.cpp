// `stretto train`: a run as RUN.toml says.
#include <memory>

#include "run_file.h"
#include "stretto/train/loop.h"

namespace stretto::app {

void add_train(CLI::App& app) {
  CLI::App* command = app.add_subcommand("train", "train a model; the run directory gets its config and metrics");
  auto run = std::make_shared<RunFile>();
  auto verbosity = std::make_shared<Verbosity>(Verbosity::normal);
  run->declare(*command);
  CLI::Option* quiet = command->add_flag_callback(
      "-q,--quiet", [verbosity] { *verbosity = Verbosity::quiet; }, "print the last two lines only");
  command
      ->add_flag_callback(
          "-v,--verbose", [verbosity] { *verbosity = Verbosity::verbose; }, "a row for every step, and details")
      ->excludes(quiet);
  command->callback([run, verbosity, command] { train(run->read(*command), stdout, *verbosity); });
}

}  // namespace stretto::app
