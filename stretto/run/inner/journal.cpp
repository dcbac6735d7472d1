#include "stretto/run/inner/journal.h"

#include <sys/resource.h>

#include <limits>
#include <utility>

namespace stretto {
namespace {

double number_in(const Field& line, std::string_view key) {
  const Field* f = line.find(key);
  const auto* v = f ? std::get_if<double>(&f->value) : nullptr;
  const auto* whole = f ? std::get_if<i64>(&f->value) : nullptr;
  if (whole) return *whole;
  return v ? *v : std::numeric_limits<double>::quiet_NaN();
}

std::vector<CurvePoint> curve_of(const std::vector<Field>& lines) {
  std::vector<CurvePoint> curve;
  for (const Field& l : lines) {
    const i64 step = number_in(l, "step");
    curve.push_back({.step = step,
                     .loss = number_in(l, "loss"),
                     .grad_norm = number_in(l, "grad_norm"),
                     .lr = number_in(l, "lr"),
                     .tokens_per_second = number_in(l, "tokens_per_second"),
                     .bubble = l.find("bubble") ? number_in(l, "bubble") : 0});
    if (l.find("validation_loss")) curve.back().validation = number_in(l, "validation_loss");
    if (l.find("imbalance")) curve.back().imbalance = number_in(l, "imbalance");
  }
  return curve;
}

}  // namespace

u64 peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

Journal::Journal(Console& console, const std::filesystem::path& directory, JournalOptions options)
    : console_(console),
      options_(options),
      metrics_(directory / "metrics.jsonl"),
      events_(directory),
      curve_(curve_of(read_metrics(directory / "metrics.jsonl"))) {}

void Journal::step(const StepRecord& s) {
  const StepResult& r = s.result;
  seconds_ += s.seconds;
  interval_ += s.seconds;
  interval_idle_ += s.seconds * r.bubble;
  ++interval_steps_;
  loads_ = routed(r);
  const bool row_now = has_row(s);
  metrics_.write(metrics_line(s, row_now));
  write_events(s, row_now);
  say_trouble();
  curve_.push_back({.step = r.step,
                    .loss = r.loss,
                    .grad_norm = r.grad_norm,
                    .lr = r.lr,
                    .tokens_per_second = options_.tokens_per_step / s.seconds,
                    .bubble = options_.bubble ? r.bubble : 0,
                    .validation = s.validation});
  if (loads_) curve_.back().imbalance = loads_->imbalance;
  if (!row_now) return;
  raise_peak();
  ConsoleRow row{.step = r.step,
                 .loss = r.loss,
                 .grad_norm = r.grad_norm,
                 .lr = r.lr,
                 .tokens_per_second = interval_steps_ * options_.tokens_per_step / interval_,
                 .memory = peak_memory(),
                 .mfu = mfu(interval_steps_, interval_),
                 .validation = s.validation};
  if (options_.bubble) row.bubble = interval_idle_ / interval_;
  if (loads_) row.imbalance = loads_->imbalance, row.dropped = loads_->dropped;
  console_.row(row);
  interval_ = interval_idle_ = 0;
  interval_steps_ = 0;
}

// What several steps in a row have reached was possible.
void Journal::raise_peak() {
  constexpr i64 enough_steps = 3;
  const double reached = interval_steps_ * options_.flops_per_step / interval_;
  if (!options_.measured || interval_steps_ < enough_steps || reached <= options_.peak) return;
  if (!std::exchange(raised_, true))
    console_.say(fmt::format(
        "note: {}flop/s are reached, and the measured peak is {}flop/s (other work was in the way, or rows need less "
        "than is counted): what is reached counts as the peak from here on",
        human_count(reached), human_count(options_.peak)));
  options_.peak = reached;
}

bool Journal::has_row(const StepRecord& s) {
  const bool first = std::exchange(first_, false);
  return console_.verbose() || first || s.result.step % options_.every == 0 || s.validation || s.last;
}

// A run is worth more than its journal: it goes on as it does when a checkpoint cannot be written.
void Journal::say_trouble() {
  const bool now = !trouble().empty();
  if (now && !troubled_)
    console_.say(trouble() + "; training goes on, and what is missing is written as soon as it can be");
  if (!now && troubled_) console_.say("metrics and events are written again, with the steps that were missing");
  troubled_ = now;
}

void Journal::finish() {
  if (trouble().empty()) return;
  throw Error("metrics", "steps are missing in the files of the run: {}", trouble())
      .hint("the parameters are not touched by that")
      .as(Error::Kind::run);
}

// Lists are long: they stand in the lines of steps that have a row on the console.
Field::Table Journal::metrics_line(const StepRecord& s, bool lists) const {
  const StepResult& r = s.result;
  Field line{Field::Table{}};
  line.set("step", r.step);
  line.set("loss", r.loss);
  line.set("grad_norm", r.grad_norm);
  line.set("lr", r.lr);
  line.set("tokens", r.step * i64(options_.tokens_per_step));
  line.set("seconds", s.seconds);
  line.set("tokens_per_second", options_.tokens_per_step / s.seconds);
  line.set("mfu", mfu(1, s.seconds));
  if (options_.bubble) line.set("bubble", r.bubble);
  if (s.validation) line.set("validation_loss", *s.validation);
  if (loads_) line.set("imbalance", loads_->imbalance);
  if (loads_ && loads_->dropped) line.set("dropped", *loads_->dropped);
  Field::Table table = *line.table();
  for (const auto& [name, value] : r.metrics)
    if (!line.find(name)) table.push_back({name, Field(value)});
  if (lists)
    for (const auto& [name, values] : r.lists) table.push_back({name, Field::Array(values.begin(), values.end())});
  return table;
}

void Journal::write_events(const StepRecord& s, bool lists) {
  const StepResult& r = s.result;
  events_.scalar("train/loss", r.step, r.loss);
  events_.scalar("train/grad_norm", r.step, r.grad_norm);
  events_.scalar("train/lr", r.step, r.lr);
  events_.scalar("speed/tokens_per_second", r.step, options_.tokens_per_step / s.seconds);
  events_.scalar("speed/mfu", r.step, mfu(1, s.seconds));
  if (options_.bubble) events_.scalar("speed/bubble", r.step, r.bubble);
  if (s.validation) events_.scalar("validation/loss", r.step, *s.validation);
  if (!loads_) return;
  events_.scalar("experts/imbalance", r.step, loads_->imbalance);
  if (loads_->dropped) events_.scalar("experts/dropped", r.step, *loads_->dropped);
  if (!lists) return;
  for (const auto& [layer, load] : loads_->load)
    for (std::size_t e = 0; e < load.size(); ++e)
      events_.scalar(fmt::format("load {}/expert {}", layer, e), r.step, load[e]);
}

}  // namespace stretto
