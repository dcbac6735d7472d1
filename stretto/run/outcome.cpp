#include "stretto/run/outcome.h"

#include "stretto/base/text.h"
#include "stretto/run/inner/metrics.h"

namespace stretto {

double validation_loss(Trainer& trainer, const Prepared& p, const RunConfig& config) {
  const TokenSource& source = *p.corpus.validation;
  const i64 batches = validation_batches(source, p.rows, config.train.validate_batches);
  double sum = 0, rows = 0;
  for (i64 i = 0; i < batches; ++i) {
    const Rows r = validation_rows(source, p.rows, batches, i);
    sum += trainer.evaluate(batch_of(p.rows, r)).loss * r.filled;
    rows += r.filled;
  }
  return sum / rows;
}

Error not_finite(const RunConfig& config, const StepResult& r) {
  const std::string lr = config.optimizer.warmup == 0 ? "a warm-up (optimizer.warmup)" : "a longer warm-up";
  return Error("train", "step {}: the loss is {} and the gradient norm {}, with lr {:.3g}", r.step, r.loss, r.grad_norm,
               r.lr)
      .hint("a smaller optimizer.lr, {} or train.clip may help, or train.nonfinite = \"skip\"; all steps are in {}", lr,
            (std::filesystem::path(config.log.dir) / "metrics.jsonl").string())
      .as(Error::Kind::run);
}

std::optional<i64> last_step_in(const std::filesystem::path& run) {
  const std::vector<Field> lines = read_metrics(run / "metrics.jsonl");
  const Field* step = lines.empty() ? nullptr : lines.back().find("step");
  const i64* number = step ? std::get_if<i64>(&step->value) : nullptr;
  return number ? std::optional(*number) : std::nullopt;
}

std::string ending(const RunSummary& s, i64 steps, double seconds) {
  if (s.steps == s.resumed)
    return fmt::format("nothing to do: {} of {} steps are done; train.steps says how many there are", s.steps, steps);
  const std::string what = fmt::format("{} {} of {} steps, {} of training",
                                       s.stopped ? "stopped after" : "done:", s.steps, steps, human_seconds(seconds));
  if (!s.computed) return what;
  return what + fmt::format(", loss {:.5f} -> {:.5f}", s.first_loss, s.last_loss);
}

}  // namespace stretto
