#include "stretto/train/journal.h"

#include <sys/resource.h>

namespace stretto {

u64 peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return u64(usage.ru_maxrss) * 1024;
}

Journal::Journal(Console& console, const std::filesystem::path& directory, JournalOptions options)
    : console_(console), options_(options), metrics_(directory / "metrics.jsonl"), events_(directory) {}

void Journal::step(const StepRecord& s) {
  const StepResult& r = s.result;
  seconds_ += s.seconds;
  interval_ += s.seconds;
  interval_idle_ += s.seconds * r.bubble;
  ++interval_steps_;
  metrics_.write(metrics_line(s));
  write_events(s);
  curve_.push_back({.step = r.step,
                    .loss = r.loss,
                    .grad_norm = r.grad_norm,
                    .lr = r.lr,
                    .tokens_per_second = options_.tokens_per_step / s.seconds,
                    .bubble = r.bubble,
                    .validation = s.validation});
  if (!console_.verbose() && curve_.size() != 1 && r.step % options_.every != 0 && !s.validation && !s.last) return;
  ConsoleRow row{.step = r.step,
                 .loss = r.loss,
                 .grad_norm = r.grad_norm,
                 .lr = r.lr,
                 .tokens_per_second = double(interval_steps_) * options_.tokens_per_step / interval_,
                 .memory = peak_memory(),
                 .validation = s.validation};
  if (options_.bubble) row.bubble = interval_idle_ / interval_;
  console_.row(row);
  interval_ = interval_idle_ = 0;
  interval_steps_ = 0;
}

Field::Table Journal::metrics_line(const StepRecord& s) const {
  const StepResult& r = s.result;
  Field line{Field::Table{}};
  line.set("step", r.step);
  line.set("loss", r.loss);
  line.set("grad_norm", r.grad_norm);
  line.set("lr", r.lr);
  line.set("tokens", r.step * i64(options_.tokens_per_step));
  line.set("seconds", s.seconds);
  line.set("tokens_per_second", options_.tokens_per_step / s.seconds);
  if (options_.bubble) line.set("bubble", r.bubble);
  if (s.validation) line.set("validation_loss", *s.validation);
  Field::Table table = *line.table();
  for (const auto& [name, value] : r.metrics)
    if (!line.find(name)) table.push_back({name, Field(value)});
  return table;
}

void Journal::write_events(const StepRecord& s) {
  const StepResult& r = s.result;
  events_.scalar("train/loss", r.step, r.loss);
  events_.scalar("train/grad_norm", r.step, r.grad_norm);
  events_.scalar("train/lr", r.step, r.lr);
  events_.scalar("speed/tokens_per_second", r.step, options_.tokens_per_step / s.seconds);
  if (options_.bubble) events_.scalar("speed/bubble", r.step, r.bubble);
  if (s.validation) events_.scalar("validation/loss", r.step, *s.validation);
}

}  // namespace stretto
