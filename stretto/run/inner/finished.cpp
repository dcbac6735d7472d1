#include "stretto/run/inner/finished.h"

#include "stretto/base/files.h"
#include "stretto/formats/atomic_file.h"
#include "stretto/run/measured_runs.h"
#include "stretto/run/prepare.h"
#include "stretto/run/inner/report.h"

namespace stretto {

void write_measured(const FinishedRun& r) {
  if (r.config.parallel.device != DeviceKind::cpu) return;
  const double tokens = r.config.train.batch * r.config.model.config.context;
  std::vector<double> seconds;
  for (const CurvePoint& p : r.curve)
    if (p.step > r.summary.resumed + 1 && p.tokens_per_second > 0) seconds.push_back(tokens / p.tokens_per_second);
  if (seconds.empty()) return;
  const double bytes = peak_memory();
  write_file(r.summary.directory / "measured.tsv", measured_tsv({{"config.toml", typical_seconds(seconds), bytes}}));
}

std::filesystem::path write_report(const FinishedRun& r) {
  Report report{.title = fmt::format("{}, {}", r.config.log.name, r.summary.directory.string()),
                .lines = r.lines,
                .curve = r.curve,
                .loads = r.loads,
                .planned = r.planned,
                .peak = peak_memory(),
                .config = resolved_toml(r.config)};
  if (r.drawn) report.timelines = {r.drawn->simulated, r.drawn->measured};
  const std::filesystem::path path = r.summary.directory / "report.html";
  write_file(path, report_html(report));
  return path;
}

}  // namespace stretto
