// `stretto calibrate`: a cluster file made to agree with runs that were measured.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "run_file.h"
#include "stretto/base/error.h"
#include "stretto/base/text.h"
#include "stretto/config/run.h"
#include "stretto/cost/cluster_file.h"
#include "stretto/formats/atomic_file.h"
#include "stretto/simulate/calibrate.h"
#include "stretto/run/measured_runs.h"
#include "usage.h"

namespace stretto::app {
namespace {

struct CalibrateCommand {
  std::string cluster, measured, output;
};

constexpr double most_factor = 100;

std::string percent(double x) { return fmt::format("{:+.1f}%", 100 * x); }

void print_runs(const std::vector<MeasuredFile>& runs, const Calibration& c) {
  std::vector<std::vector<std::string>> rows{{"run", "measured", "before", "after", "left out"}};
  for (std::size_t i = 0; i < runs.size(); ++i)
    rows.push_back({runs[i].run, human_seconds(runs[i].seconds), percent(c.before[i]), percent(c.after[i]),
                    c.left_out.empty() ? "-" : percent(c.left_out[i])});
  fmt::print("{}\n", table(rows));
  fmt::print("error    {:.1f}% before, {:.1f}% after", 100 * mean_error(c.before), 100 * mean_error(c.after));
  if (!c.left_out.empty()) fmt::print(", {:.1f}% of runs that the others predict", 100 * mean_error(c.left_out));
  fmt::print("\nfactor   {:.4g}", c.fit.factor);
  if (runs.size() >= runs_for_rates)
    fmt::print("; attention {:.4g}, elements {:.4g} of what they were taken for", c.fit.attention, c.fit.elements);
  fmt::print("\n");
}

void run_calibrate(const CalibrateCommand& o) {
  if (!o.output.empty()) check_directory_of(o.output);
  const std::vector<MeasuredFile> runs = read_measured(o.measured);
  for (const MeasuredFile& r : runs) refuse_input("calibrate", o.output, {o.measured, r.run});
  std::vector<MeasuredRun> measured;
  CalibratedOn on;
  for (const MeasuredFile& r : runs) {
    const RunConfig run = read_run(r.run);
    measured.push_back({predicted_on(run, o.cluster).spent, r.seconds});
    on.add(sizes_of(run.model.config, mesh_of(run.parallel).ranks()));
  }
  const Calibration c = calibrate(measured);
  if (c.fit.factor > most_factor || c.fit.factor < 1 / most_factor)
    throw Error(o.measured, "its runs take {:.3g} times as long as {} predicts, which no calibration explains",
                c.fit.factor, o.cluster)
        .hint("seconds are those of one step; is it the cluster on which they were measured?");
  print_runs(runs, c);
  if (o.output.empty()) return;
  write_file(o.output, calibrated(o.cluster, o.output, c.fit, on));
  fmt::print("cluster  {}\n", o.output);
}

}  // namespace

void add_calibrate(CLI::App& app) {
  CLI::App* command = app.add_subcommand("calibrate", "make a cluster file agree with runs that were measured");
  const auto o = std::make_shared<CalibrateCommand>();
  command->add_option("cluster", o->cluster, "the cluster file that predicts them now")
      ->type_name("CLUSTER.toml")
      ->required();
  command->add_option("--measured", o->measured, "columns run and seconds, as `train` leaves them in its directory")
      ->type_name("RUNS.tsv")
      ->required();
  command->add_option("-o,--output", o->output, "the file that agrees with them")->type_name("X.toml");
  command->callback([o] { run_calibrate(*o); });
}

}  // namespace stretto::app
