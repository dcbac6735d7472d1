#include "stretto/train/loop.h"

#include <sys/resource.h>

#include <chrono>
#include <cmath>

#include "stretto/base/text.h"
#include "stretto/formats/atomic_file.h"
#include "stretto/models/hf.h"
#include "stretto/train/console.h"
#include "stretto/train/metrics.h"
#include "stretto/train/run_directory.h"
#include "stretto/train/stop.h"
#include "stretto/train/trainer.h"

namespace stretto {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

u64 peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return u64(usage.ru_maxrss) * 1024;
}

// Everything that is made from a RunConfig before the first step.
struct Prepared {
  Corpus corpus;
  RowsOptions rows;
  Compiled compiled;
};

Prepared prepare(const RunConfig& c) {
  Prepared p;
  p.corpus = open_corpus(corpus_of(c), c.model.config.context);
  for (const auto& source : {p.corpus.training, p.corpus.validation})
    if (source && source->vocab() > c.model.config.vocab)
      throw Error("data", "{} has ids up to {}, and the model's vocabulary is {}", source->str(), source->vocab() - 1,
                  c.model.config.vocab)
          .hint("use model.vocab = {} or more", source->vocab());
  p.rows = {.length = c.model.config.context, .batch = c.train.batch, .seed = u64(c.train.seed)};
  p.compiled = compile(model_of(c), optimizer_of(c), training_of(c));
  return p;
}

std::string memory_line(const Program& program) {
  const auto& bytes = program.actors.at(0).bytes;
  u64 total = 0;
  std::vector<std::string> parts;
  for (std::size_t k = 0; k < arena_count; ++k) {
    total += bytes[k];
    if (bytes[k] > 0) parts.push_back(fmt::format("{} {}", name_of(Arena(k)), human_bytes(double(bytes[k]))));
  }
  return fmt::format("{} planned: {}", human_bytes(double(total)), join(parts, ", "));
}

std::vector<std::string> about(const RunConfig& c, const Prepared& p) {
  const auto plural = [](i64 n, std::string_view what) { return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s"); };
  std::vector<std::string> lines;
  lines.push_back(
      fmt::format("model    {}: {} parameters", c.model.config.str(), human_count(double(p.compiled.parameters()))));
  lines.push_back(fmt::format("data     {}; {} tokens to train on", p.corpus.name, p.corpus.training->tokens()));
  if (p.corpus.validation) lines.back() += fmt::format(", {} to validate on", p.corpus.validation->tokens());
  lines.push_back(fmt::format("step     {} of {} tokens in {}, {}", plural(c.train.batch, "sequence"), p.rows.length,
                              plural(c.train.microbatches, "microbatch") + (c.train.microbatches == 1 ? "" : "es"),
                              name_of(c.train.dtype)));
  lines.push_back(fmt::format("update   {}, lr {}, {} over {}", c.optimizer.name, c.optimizer.lr, c.optimizer.schedule,
                              plural(c.train.steps, "step")));
  lines.push_back("memory   " + memory_line(*p.compiled.program));
  return lines;
}

class TrainingRun {
 public:
  TrainingRun(RunConfig config, std::FILE* out)
      : config_(std::move(config)), prepared_(prepare(config_)), console_(out) {
    for (const std::string& line : about(config_, prepared_)) console_.say(line);
    trainer_.emplace(std::move(prepared_.compiled));
    load_weights();
    summary_.directory = make_run_directory(config_.log);
    config_.log.dir = summary_.directory.string();
    write_file(summary_.directory / "config.toml", resolved_toml(config_));
    console_.say("run      " + config_.log.dir);
  }

  RunSummary run() {
    MetricsFile metrics(summary_.directory / "metrics.jsonl");
    const StopSignals stop;
    const Clock::time_point start = Clock::now();
    double interval = 0;  // seconds of training since the last row
    i64 interval_steps = 0;
    for (i64 step = 1; step <= config_.train.steps && !stop.asked(); ++step) {
      const Clock::time_point step_start = Clock::now();
      const StepResult r = trainer_->step(batch_of(training_rows(*prepared_.corpus.training, prepared_.rows, step)));
      const double seconds = seconds_since(step_start);
      training_seconds_ += seconds;
      interval += seconds;
      ++interval_steps;
      summary_.steps = step;
      summary_.last_loss = r.loss;
      if (step == 1) summary_.first_loss = r.loss;
      const bool finite = std::isfinite(r.loss) && std::isfinite(r.grad_norm);
      const bool last = step == config_.train.steps || stop.asked() || !finite;
      std::optional<double> validation;
      if (finite && validates_after(step, last)) summary_.validation_loss = validation = validate();
      metrics.write(metrics_line(r, seconds, validation));
      if (step == 1 || step % config_.log.every == 0 || validation || last) {
        console_.row({.step = step,
                      .loss = r.loss,
                      .grad_norm = r.grad_norm,
                      .lr = r.lr,
                      .tokens_per_second = double(interval_steps) * tokens_per_step() / interval,
                      .memory = peak_memory(),
                      .validation = validation});
        interval = 0;
        interval_steps = 0;
      }
      if (!finite) throw not_finite(r);
      console_.progress(step, config_.train.steps,
                        seconds_since(start) / double(step) * double(config_.train.steps - step));
    }
    finish(stop.asked());
    return summary_;
  }

 private:
  void load_weights() {
    if (config_.model.from.empty()) return;
    for (const auto& [name, weights] : load_hf(config_.model.from, config_.train.dtype).weights)
      trainer_->set_parameter(name, weights);
  }

  Batch batch_of(const Rows& rows) const {
    const std::vector<i64> sizes{prepared_.rows.batch, prepared_.rows.length};
    return {{"ids", Array::of<std::int32_t>(rows.ids, sizes)},
            {"targets", Array::of<std::int32_t>(rows.targets, sizes)}};
  }

  double tokens_per_step() const { return double(prepared_.rows.batch * prepared_.rows.length); }

  bool validates_after(i64 step, bool last) const {
    if (!prepared_.corpus.validation) return false;
    return last || (config_.train.validate > 0 && step % config_.train.validate == 0);
  }

  double validate() {
    const TokenSource& source = *prepared_.corpus.validation;
    const i64 batches = validation_batches(source, prepared_.rows, config_.train.validate_batches);
    double sum = 0, rows = 0;
    for (i64 i = 0; i < batches; ++i) {
      const Rows r = validation_rows(source, prepared_.rows, batches, i);
      sum += trainer_->evaluate(batch_of(r)).loss * double(r.filled);
      rows += double(r.filled);
    }
    return sum / rows;
  }

  Field::Table metrics_line(const StepResult& r, double seconds, const std::optional<double>& validation) const {
    Field line{Field::Table{}};
    line.set("step", r.step);
    line.set("loss", r.loss);
    line.set("grad_norm", r.grad_norm);
    line.set("lr", r.lr);
    line.set("tokens", r.step * i64(tokens_per_step()));
    line.set("seconds", seconds);
    line.set("tokens_per_second", tokens_per_step() / seconds);
    if (validation) line.set("validation_loss", *validation);
    Field::Table table = *line.table();
    for (const auto& [name, value] : r.metrics)
      if (!line.find(name)) table.push_back({name, Field(value)});
    return table;
  }

  Error not_finite(const StepResult& r) const {
    const std::string lr = config_.optimizer.warmup == 0 ? "a warm-up (optimizer.warmup)" : "a longer warm-up";
    return Error("train",
                 "step {}: the loss is {} and the gradient norm {}, with lr "
                 "{:.3g}",
                 r.step, r.loss, r.grad_norm, r.lr)
        .hint(
            "a smaller optimizer.lr, {} or train.clip may help; all steps "
            "are in {}",
            lr, (summary_.directory / "metrics.jsonl").string())
        .as(Error::Kind::run);
  }

  void finish(bool stopped) {
    console_.close();
    summary_.stopped = stopped && summary_.steps < config_.train.steps;
    summary_.parameters = trainer_->parameters_hash();
    console_.say(fmt::format("{} {} of {} steps, {} of training, loss {:.5f} -> {:.5f}",
                             summary_.stopped ? "stopped after" : "done:", summary_.steps, config_.train.steps,
                             human_seconds(training_seconds_), summary_.first_loss, summary_.last_loss));
    console_.say(fmt::format("parameters {:016x}", summary_.parameters));
  }

  RunConfig config_;
  Prepared prepared_;
  Console console_;
  std::optional<Trainer> trainer_;
  RunSummary summary_;
  double training_seconds_ = 0;
};

}  // namespace

RunSummary train(const RunConfig& config, std::FILE* out) { return TrainingRun(config, out).run(); }

std::string check_run(const RunConfig& config) { return join(about(config, prepare(config)), "\n") + "\n"; }

}  // namespace stretto
