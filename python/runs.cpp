// Runs as files and settings say: checked, predicted, planned, trained as `stretto train` does it.
#include <algorithm>
#include <memory>

#include "calls.h"
#include "stretto/base/text.h"
#include "stretto/cost/cluster_file.h"
#include "stretto/plan/explain.h"
#include "stretto/run/loop.h"
#include "stretto/run/measured_runs.h"
#include "stretto/run/planned.h"
#include "stretto/simulate/held.h"
#include "stretto/simulate/step_time.h"

namespace stretto::python {
namespace {

// The machines that are named, or what the run says of itself.
ClusterFile cluster_of(const Arguments& a, const RunConfig& run) {
  if (const std::string file = a.text("cluster"); !file.empty())
    return read_cluster(file, {}, run.train.dtype.products);
  ClusterFile file{.name = "parallel.machine and parallel.link"};
  file.cluster.machine = run.parallel.machine;
  if (run.parallel.link) file.cluster.inside = file.cluster.between = *run.parallel.link;
  return file;
}

Field as_sections(const RunKeys& k) {
  Field sections{Field::Table{}};
  for (const Member& m : settings_of(k)) sections.set(m.key, m.value);
  return sections;
}

}  // namespace

Field config(const Arguments& a) { return Field(resolved_toml(run_of(a))); }

Field check_of_run(const Arguments& a) { return Field(check_run(run_of(a))); }

Field simulate_run(const Arguments& a) {
  const RunConfig read = run_of(a);
  const ClusterFile file = cluster_of(a, read);
  const RunConfig run = as_stack_has_it(read, file.cluster.stack);
  const Compiled compiled = compile_run(run);
  check_ranks(file, compiled.program->ranks());
  const StepTime step = step_time(*compiled.program, file.cluster);
  double states = 0, activations = 0;
  for (const Held& h : held(*compiled.program, file.cluster))
    if (h.bytes() > states + activations) states = h.states, activations = h.activations;
  Field spent{Field::Table{}};
  for (const auto& [name, seconds] : step.spent.parts()) spent.set(name, seconds);
  const double tokens = double(run.train.batch) * double(run.model.config.context);
  return Field::Table{{"ranks", compiled.program->ranks()},
                      {"seconds", step.seconds},
                      {"period", step_period(*compiled.program, file.cluster)},
                      {"tokens_per_second", tokens / step.seconds},
                      {"bytes", states + activations},
                      {"states", states},
                      {"activations", activations},
                      {"fits", states + activations <= file.memory},
                      {"spent", spent}};
}

Field plan(const Arguments& a) {
  const PlanRequest request{.cluster = a.text("cluster"),
                            .ranks = a.count("ranks"),
                            .top = int(a.whole("top", 10, 1, 10000)),
                            .quick = a.flag("quick")};
  const RunPlanning all = plan_of_run(read_open_run(a.text("run"), a.texts("settings")), request);
  const Planning& found = all.best();
  Field::Array best;
  for (const Planned& p : found.plan.best)
    best.push_back(Field::Table{{"text", p.keys.str()},
                                {"settings", as_sections(p.keys)},
                                {"seconds", p.seconds},
                                {"bytes", p.bytes},
                                {"bubble", p.bubble},
                                {"mfu", mfu(found.problem, found.plan.flops, p.seconds)},
                                {"by", std::string(name_of(p.exact))}});
  return Field::Table{{"ranks", found.problem.ranks},
                      {"tried", found.plan.counts.tried},
                      {"best", best},
                      {"why_not", join(why_not(found.plan), "; ")}};
}

Field train_run(const Arguments& a) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> nowhere(std::fopen("/dev/null", "w"), &std::fclose);
  std::optional<std::string> resume;
  if (a.has("resume")) resume = a.text("resume");
  const bool quiet = a.flag("quiet");
  const RunSummary s =
      train(run_of(a), quiet ? nowhere.get() : stdout, quiet ? Verbosity::quiet : Verbosity::normal, resume);
  std::fflush(stdout);
  return Field::Table{{"directory", s.directory.string()},
                      {"steps", s.steps},
                      {"stopped", s.stopped},
                      {"first_loss", s.first_loss},
                      {"last_loss", s.last_loss},
                      {"validation_loss", s.validation_loss ? Field(*s.validation_loss) : Field()},
                      {"parameters", fmt::format("{:016x}", s.parameters)}};
}

}  // namespace stretto::python
