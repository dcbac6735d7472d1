#include "load_options.h"

namespace stretto::app {

void add_load_options(CLI::App& command, LoadOptions& o) {
  command.add_flag("--ema", o.ema, "of a run with train.ema: the running averages of its parameters");
  command
      .add_option("--hf-as", o.hf_as, "of a Hugging Face directory: the model type that its own counts as, e.g. llama")
      ->type_name("TYPE");
}

}  // namespace stretto::app
