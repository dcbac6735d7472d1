// `stretto eval`: how well a model predicts a text.
#include <fmt/format.h>

#include <memory>

#include "commands.h"
#include "load_options.h"
#include "progress.h"
#include "run_file.h"
#include "stretto/base/error.h"
#include "stretto/base/text.h"
#include "stretto/run/evaluate.h"
#include "usage.h"

namespace stretto::app {
namespace {

struct EvalCommand {
  std::string directory;
  LoadOptions load;
  EvaluateOptions evaluate;
  bool plain = false;
};

void print_evaluated(const Evaluated& e, bool plain) {
  const std::optional<double> bits = e.bits_per_byte();
  if (plain) {
    fmt::print("loss\tperplexity\tbits_per_byte\ttokens\tseconds\n{:.17g}\t{:.17g}\t{}\t{}\t{:.3f}\n", e.loss,
               e.perplexity(), bits ? fmt::format("{:.17g}", *bits) : "", e.tokens, e.seconds);
    return;
  }
  fmt::print("data           {}\n", e.data);
  fmt::print("tokens         {}, {:.0f} per second\n", e.tokens, static_cast<double>(e.tokens) / e.seconds);
  fmt::print("loss           {:.6f}\n", e.loss);
  fmt::print("perplexity     {:.4f}\n", e.perplexity());
  if (bits) fmt::print("bits per byte  {:.6f}\n", *bits);
}

}  // namespace

void add_eval(CLI::App& app) {
  const auto o = std::make_shared<EvalCommand>();
  CLI::App* command = app.add_subcommand("eval", "how well a model predicts a text: loss, perplexity, bits per byte");
  command->add_option("DIR", o->directory, "a run, a checkpoint, a Hugging Face directory or one of PEFT's")
      ->required();
  add_load_options(*command, o->load);
  command
      ->add_option_function<std::string>(
          "--base", [o](const std::string& base) { o->load.base = base; },
          "of an adapter: the model it belongs to, if not the one it names")
      ->type_name("DIR");
  command->add_option("--data", o->evaluate.data, "text or token files, or globs")->required();
  command->add_option("--tokenizer", o->evaluate.tokenizer,
                      "tokenizer.json or its directory (default: the one beside the weights)");
  command->add_option("--field", o->evaluate.field,
                      "of .jsonl files: what holds the text (default: text); messages: conversations");
  command
      ->add_option("--template", o->evaluate.chat_template,
                   "of conversations: a Jinja file (default: the one beside the tokenizer)")
      ->type_name("FILE");
  command->add_option("--date", o->evaluate.date, "of conversations: for templates that ask for it (default: today)")
      ->type_name("2026-11-18")
      ->check(day());
  command->add_flag("--documents", o->evaluate.documents, "attention stays within documents");
  command->add_option("--batch", o->evaluate.batch, "rows at a time (default: 8)")
      ->check(whole_number(1))
      ->type_name("N");
  command->add_option("--batches", o->evaluate.batches, "at most so many, spread evenly; 0: all (default)")
      ->check(whole_number(0))
      ->type_name("N");
  command->add_flag("--plain", o->plain, "tab-separated, with all digits");
  command->allow_extras();
  command->footer("Layouts change no number: --parallel.data=2, --parallel.pipe=2, ... as of a run.");
  command->callback([o, command] {
    const std::vector<std::string> settings = settings_only(*command, "parallel");
    const StoredModel m = load_model(o->directory, o->load);
    for (const std::string& note : m.notes) fmt::print(stderr, "{}\n", note);
    const ParallelSection parallel = read_parallel(settings, m.config);
    o->evaluate.parallel = parallel_of(parallel, ProductType::as_kept);
    o->evaluate.run = options_of(parallel);
    Progress progress("evaluating");
    o->evaluate.progress = [&](i64 done, i64 all) {
      progress.show(static_cast<double>(done), static_cast<double>(all));
    };
    const Evaluated e = evaluate(m, o->evaluate);
    print_evaluated(e, o->plain);
  });
}

}  // namespace stretto::app
