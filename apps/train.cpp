// `stretto train`: a run as RUN.toml says, from its beginning or from a checkpoint.
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "plan_run.h"
#include "progress.h"
#include "ranks.h"
#include "run_file.h"
#include "stretto/config/describe.h"
#include "stretto/run/loop.h"
#include "usage.h"

namespace stretto::app {

void add_train(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("train", "train a model; the run directory gets its config, metrics and checkpoints");
  auto run = std::make_shared<RunFile>();
  auto verbosity = std::make_shared<Verbosity>(Verbosity::normal);
  run->declare(*command);
  auto keys = std::make_shared<std::string>();
  command
      ->add_flag(
          "--help-keys{text}", *keys,
          "every key of a run with its default, what it means and what it takes; --help-keys=markdown: as a page")
      ->check(one_of({"text", "markdown"}));
  CLI::Option* quiet = command->add_flag_callback(
      "-q,--quiet", [verbosity] { *verbosity = Verbosity::quiet; }, "print the last two lines only");
  command
      ->add_flag_callback(
          "-v,--verbose", [verbosity] { *verbosity = Verbosity::verbose; }, "a row for every step, and details")
      ->excludes(quiet);
  auto resume = std::make_shared<std::string>();
  command->add_flag("--resume{}", *resume,
                    "go on from the newest checkpoint in log.dir; --resume=DIR: in that run directory, or from that "
                    "checkpoint");
  auto flags = std::make_shared<WorldFlags>();
  command->add_option("--ranks", flags->size, "how many processes there are; by default as the launcher says")
      ->check(whole_number(1));
  command->add_option("--rank", flags->rank, "which of them this is; by default as the launcher says")
      ->check(whole_number(0));
  auto shared = std::make_shared<bool>(true);
  command->add_flag("!--no-shared-memory", *shared,
                    "between processes of one machine too, everything goes through MPI");
  command->callback([run, keys, resume, verbosity, flags, shared, command] {
    if (!keys->empty()) return fmt::print("{}", *keys == "markdown" ? keys_markdown() : keys_text());
    const std::optional<std::string> from = command->count("--resume") > 0 ? std::optional(*resume) : std::nullopt;
    Ranks ranks(*flags);
    ranks.run([&] {
      if (from) run->find(*from, *command);
      RunConfig config = run->read(*command);
      if (!config.searched.empty()) {
        if (find_world(environment(), *flags).size > 1)
          throw Error("train", "'{}' is \"auto\", and ranks are processes, of which each would plan by itself",
                      config.searched.front())
              .hint("stretto plan RUN.toml --cluster CLUSTER.toml -o BEST.toml, then train BEST.toml");
        std::string said;
        {
          Progress progress("planning");
          config = planned_here(run->read_open(*command), said,
                                [&](std::string_view what, double done, double of) { progress.show(done, of, what); });
        }
        if (*verbosity != Verbosity::quiet) fmt::print("{}\n", said);
      }
      const PeersOptions peers{.timeouts = timeouts_of(config), .shared = *shared};
      train(config, stdout, *verbosity, from, ranks.join(peers));
    });
  });
}

}  // namespace stretto::app
