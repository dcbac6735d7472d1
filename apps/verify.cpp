// `stretto verify`: trains a few steps serially and as a run says, and compares everything.
#include <fmt/format.h>

#include <memory>

#include "run_file.h"
#include "stretto/base/error.h"
#include "stretto/run/contact.h"
#include "stretto/run/verify.h"
#include "usage.h"

namespace stretto::app {

void add_verify(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("verify", "compare every gradient and parameter of a run with the serial run's");
  struct Options {
    RunFile run;
    VerifyOptions verify;
  };
  const auto o = std::make_shared<Options>();
  o->run.declare(*command);
  command->add_option("--steps", o->verify.steps, "steps to train (default: 3)")
      ->type_name("N")
      ->check(whole_number(1));
  command
      ->add_option("--tolerance", o->verify.tolerance,
                   "largest difference, as a share of a tensor's largest element; 0: every bit (default: every bit "
                   "where gradients are added in the serial order, else 1e-5)")
      ->type_name("X")
      ->check(number_from(0));
  command->callback([o, command] {
    const RunConfig run = o->run.read(*command);
    if (has_first_contact(run)) {
      const Contact c = first_contact(run, {.verify = o->verify});
      fmt::print("{}", c.str());
      if (c.wrong) throw Error("verify", "{}", *c.wrong).as(Error::Kind::run);
      return;
    }
    const Verification v = verify(run, o->verify);
    fmt::print("{}", v.str());
    if (v.first)
      throw Error("verify", "{}", v.first->str())
          .hint(
              "--tolerance=X allows small differences; with one rank, and with pipe alone under most schedules, there "
              "must be none")
          .as(Error::Kind::run);
  });
}

}  // namespace stretto::app
