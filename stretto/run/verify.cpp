#include "stretto/run/verify.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "stretto/base/text.h"
#include "stretto/run/prepare.h"
#include "stretto/runtime/devices.h"

namespace stretto {
namespace {

double element(const Array& a, std::size_t i) { return a.dtype == f64 ? a.as<double>()[i] : a.as<float>()[i]; }

std::vector<i64> place_of(const Array& a, std::size_t i) {
  std::vector<i64> at(a.sizes.size());
  i64 rest = i;
  for (std::size_t d = at.size(); d-- > 0;) {
    at[d] = rest % a.sizes[d];
    rest /= a.sizes[d];
  }
  return at;
}

// Fills in everything but step, kind and name. `wrong` stays 0 when the two agree.
Difference compare(const Array& serial, const Array& parallel, double tolerance) {
  Difference d;
  const std::size_t size = size_of(serial.dtype), n = serial.bytes.size() / size;
  d.elements = n;
  if (serial.bytes == parallel.bytes) return d;
  double most = 0;
  for (std::size_t i = 0; i < n; ++i)
    if (const double v = std::abs(element(serial, i)); std::isfinite(v)) most = std::max(most, v);
  for (std::size_t i = 0; i < n; ++i) {
    if (std::memcmp(&serial.bytes[i * size], &parallel.bytes[i * size], size) == 0) continue;
    const double a = element(serial, i), b = element(parallel, i);
    double share = std::abs(a - b) / (most > 0 ? most : 1);
    if (std::isnan(share)) share = std::isnan(a) && std::isnan(b) ? 0 : std::numeric_limits<double>::infinity();
    d.worst = std::max(d.worst, share);
    if (tolerance > 0 && share <= tolerance) continue;
    if (d.wrong++ == 0) d.element = place_of(serial, i), d.serial = a, d.parallel = b;
  }
  return d;
}

double tolerance_of(const VerifyOptions& o, const Program& p, DType dtype, DeviceKind device) {
  if (o.tolerance) return *o.tolerance;
  // Ranks that have a run of neighbouring rows each have the serial bits. The serial run is the CPU's.
  bool ascending = type_of(device).same_bits && p.schedule.pipes() == 1 &&
                   p.ranks_per_actor() == p.shared.parts(p.mesh);
  for (const Finding& f : validate(p.schedule).notes) ascending = ascending && f.kind != Finding::Kind::accumulation;
  return ascending ? 0 : dtype == f64 ? 1e-10 : dtype == f32 ? 1e-5 : 0.05;
}

class Verifier {
 public:
  Verifier(const RunConfig& config, const VerifyOptions& options) : config_(config), options_(options) {
    if (options.steps < 1) throw Error("verify", "{} steps", options.steps).hint("take at least one");
    if (!computes(config.parallel.device))
      throw Error("verify", "device {} computes nothing that could be compared", type_of(config.parallel.device).name)
          .hint("leave parallel.device out");
    prepared_ = prepare(config_);
    result_.tolerance = tolerance_of(options, *prepared_.compiled.program, config.train.dtype, config.parallel.device);
    result_.schedule = prepared_.compiled.program->schedule.name;
    if (prepared_.compiled.sharded) result_.schedule += " on " + prepared_.compiled.parallel.mesh.str();
    Compiled serial = prepared_.compiled;
    serial = compile(serial.model, serial.optimizer, serial.training);
    check_fits(planned_bytes(*serial.program) + planned_bytes(*prepared_.compiled.program), machine_bytes());
    for (i64 step = 1; step <= options.steps; ++step) batches_.push_back(batch_of(config_, prepared_, step));
    serial_.emplace(std::move(serial));
    parallel_.emplace(std::move(prepared_.compiled), options_of(config.parallel));
    load_weights(config_, *serial_);
    load_weights(config_, *parallel_);
  }

  Verification run() {
    for (i64 step = 1; step <= options_.steps; ++step) one_step(step);
    return std::move(result_);
  }

 private:
  void one_step(i64 step) {
    const Batch& batch = batches_[step - 1];
    VerifiedStep now{.step = step, .serial_loss = serial_->step(batch).loss, .loss = parallel_->step(batch).loss};
    if (options_.plant) options_.plant(*parallel_, step);
    result_.steps.push_back(now);
    const std::vector<i64> scalar{};
    take("loss", "", Array::of<double>(std::vector{now.serial_loss}, scalar),
         Array::of<double>(std::vector{now.loss}, scalar));
    const auto& params = serial_->compiled().params;
    result_.tensors = 0;
    for (const CompiledParam& p : params)
      if (!p.accumulators.empty()) {
        ++result_.tensors;
        take("gradient", p.name, serial_->gradient(p.name), parallel_->gradient(p.name));
      }
    for (const CompiledParam& p : params) {
      ++result_.tensors;
      take("parameter", p.name, serial_->parameter(p.name), parallel_->parameter(p.name));
    }
  }

  void take(const std::string& kind, const std::string& name, const Array& serial, const Array& parallel) {
    Difference d = compare(serial, parallel, result_.tolerance);
    d.step = result_.steps.back().step;
    d.kind = kind;
    d.name = name;
    VerifiedStep& now = result_.steps.back();
    if (Worst* worst = kind == "gradient"    ? &now.gradient
                       : kind == "parameter" ? &now.parameter
                                             : nullptr;
        worst && d.worst > worst->difference)
      *worst = {name, d.worst};
    const bool held = result_.tolerance == 0 || kind == "loss" || (kind == "gradient" && d.step == 1);
    if (d.wrong == 0 || !held) return;
    ++now.wrong;
    if (!result_.first) result_.first = std::move(d);
  }

  const RunConfig& config_;
  const VerifyOptions& options_;
  Prepared prepared_;           // `compiled` is the trainer's afterwards
  std::vector<Batch> batches_;  // of all steps
  std::optional<Trainer> serial_, parallel_;
  Verification result_;
};

std::string text_of(const Worst& w) {
  return w.difference > 0 ? fmt::format("{:.2e} {}", w.difference, w.name) : "equal";
}

}  // namespace

std::string Difference::str() const {
  if (kind == "loss")
    return fmt::format("step {}: the loss is {:.17g} serially and {:.17g} in the run", step, serial, parallel);
  std::vector<std::string> at;
  for (const i64 i : element) at.push_back(std::to_string(i));
  return fmt::format(
      "step {}: the {} {}'{}' differs in {} of {} elements, first at [{}]: {:.9g} serially, {:.9g} in the run", step,
      kind, kind == "gradient" ? "of " : "", name, wrong, elements, join(at, ", "), serial, parallel);
}

std::string Verification::str() const {
  std::vector<std::vector<std::string>> rows{
      {"step", "serial loss", "loss", "worst gradient", "worst parameter", "wrong"}};
  for (const VerifiedStep& s : steps)
    rows.push_back({std::to_string(s.step), fmt::format("{:.9f}", s.serial_loss), fmt::format("{:.9f}", s.loss),
                    text_of(s.gradient), text_of(s.parameter), std::to_string(s.wrong)});
  const std::string what =
      tolerance > 0
          ? fmt::format("losses and the first step's gradients compared within {:g} of the largest element", tolerance)
          : fmt::format("{} tensors and the loss compared bit for bit", tensors);
  return table(rows) +
         fmt::format("{}: schedule {} and the serial run {}\n", what, schedule, first ? "differ" : "agree");
}

Verification verify(const RunConfig& config, const VerifyOptions& options) { return Verifier(config, options).run(); }

}  // namespace stretto
