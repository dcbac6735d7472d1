#include "stretto/run/measured_runs.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "stretto/base/files.h"
#include "stretto/formats/fields.h"
#include "stretto/formats/tsv.h"

namespace stretto {
namespace {

constexpr double most_measured = 1e18;  // seconds or bytes: what is more was never measured

std::optional<double> positive(const std::string& text) {
  double x = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (wrong != std::errc() || end != text.data() + text.size() || !(x > 0) || x > most_measured) return {};
  return x;
}

// A number that is set anew.
void change(Field& root, std::string_view dotted, double old, double times) { root.set(dotted, old * times); }

double number_of(const Field& root, std::string_view key, double otherwise) {
  FieldReader(root).read(key, otherwise);
  return otherwise;
}

// Where the file says what attention takes: bytes per score where all are held, else the kernel's rate.
void change_attention(Field& root, const ClusterFile& file, double takes) {
  const Stack& stack = file.cluster.stack;
  const double rate = file.cluster.machine.rates->attention;
  if (stack.kept) return change(root, "scores", number_of(root, "scores", 1), takes);
  const bool own = file.device->attention.contains(stack.kernel);
  change(root, own ? "attention." + stack.kernel : "rates.attention", rate, 1 / takes);
}

// A device or a stack that is a file beside the cluster's, named from where that will be.
void move_named(Field& root, std::string_view key, const std::filesystem::path& from, const std::filesystem::path& to) {
  const Field* named = root.find(key);
  const std::string* name = named ? std::get_if<std::string>(&named->value) : nullptr;
  if (!name || !name->ends_with(".toml") || std::filesystem::path(*name).is_absolute()) return;
  const std::filesystem::path folder = absolute_path(to).parent_path(),
                              file = absolute_path(from).parent_path() / *name;
  root.set(key, file.lexically_normal().lexically_relative(folder.lexically_normal()).string());
}

}  // namespace

std::vector<MeasuredFile> read_measured(const std::string& file) {
  const TsvTable table =
      read_tsv(file, "its first line names the columns run and seconds, as measured.tsv of a run directory does");
  const auto run = table.column("run"), seconds = table.column("seconds"), bytes = table.column("bytes");
  if (!run || !seconds)
    throw Error(fmt::format("{}:1", file), "the columns run and seconds are not both there")
        .hint("begin with a line that names them, with tabs between");
  std::vector<MeasuredFile> runs;
  for (const TsvRow& row : table.rows) {
    const std::string where = fmt::format("{}:{}", file, row.line), name = row.cell(run), held = row.cell(bytes);
    const std::optional<double> took = positive(row.cell(seconds)), most = positive(held);
    if (name.empty() || !took)
      throw Error(where, "a run and its seconds are expected, and there is '{}' and '{}'", name, row.cell(seconds))
          .hint("seconds of a step are a number above 0");
    if (!held.empty() && !most)
      throw Error(where, "bytes are '{}'", held).hint("bytes of the fullest rank are a number above 0, or nothing");
    const std::filesystem::path beside = std::filesystem::path(file).parent_path() / name;
    if (!is_there(beside))
      throw Error(where, "there is no run '{}'", beside.string()).hint("runs are looked for beside the table");
    runs.push_back({beside.string(), *took, most});
  }
  if (runs.empty()) throw Error(file, "it has no run").hint("give a row for each run that was measured");
  return runs;
}

std::string measured_tsv(const std::vector<MeasuredFile>& runs) {
  std::string text = "run\tseconds\tbytes\n";
  for (const MeasuredFile& r : runs)
    text += fmt::format("{}\t{:.10g}\t{}\n", r.run, r.seconds, r.bytes ? fmt::format("{:.10g}", *r.bytes) : "");
  return text;
}

double typical_seconds(std::vector<double> steps) {
  STRETTO_ASSERT(!steps.empty());
  std::sort(steps.begin(), steps.end());
  return steps[steps.size() / 2];
}

RunConfig as_stack_has_it(RunConfig run, const Stack& stack) {
  for (Recompute& r : run.parallel.recompute)
    if (r == Recompute::full && stack.whole_layers) r = Recompute::layer;
  if (stack.whole_layers) {
    std::vector<std::string>& open = run.plan.recompute;
    if (open.empty()) open = {"none", "selective", "layer"};
    std::replace(open.begin(), open.end(), std::string("full"), std::string("layer"));
  }
  if (stack.hidden.tensor) run.parallel.overlap = Overlap::none;
  const bool cut = run.parallel.names.zero == 3 && run.parallel.names.data > 1;
  if (stack.keeps_gathered && run.parallel.pipe > 1 && cut) run.parallel.reshard = Reshard::step;
  return run;
}

StepTime predicted_on(const RunConfig& run, const std::string& cluster_file) {
  const ClusterFile file = read_cluster(cluster_file, {}, run.train.dtype.products);
  RunConfig there = as_stack_has_it(run, file.cluster.stack);
  there.parallel.cluster = cluster_file;  // stages are cut and calls are ordered for it
  const Compiled c = compile_run(there, Purpose::sizes);
  check_ranks(file, c.program->ranks());
  return step_time(*c.program, file.cluster);
}

std::string calibrated(const std::string& cluster_file, const std::string& to, const CalibrationFit& fit,
                       const CalibratedOn& on) {
  Field root = read_toml_file(cluster_file);
  for (const char* key : {"device", "stack"}) move_named(root, key, cluster_file, to);
  const ClusterFile file = read_cluster(cluster_file);
  root.set("calibrated", on.field());
  const Cluster& c = file.cluster;
  if (file.device) {
    change(root, "factor", number_of(root, "factor", 1), fit.factor);
    if (fit.attention != 1) change_attention(root, file, fit.attention);
    if (fit.elements != 1) change(root, "rates.elements", c.machine.rates->elements, 1 / fit.elements);
    return write_toml(root);
  }
  change(root, "machine.flops", c.machine.flops, 1 / fit.factor);
  if (c.machine.flops_bf16 > 0) change(root, "machine.flops_bf16", c.machine.flops_bf16, 1 / fit.factor);
  if (std::isfinite(c.machine.memory_bandwidth))
    change(root, "machine.memory_bandwidth", c.machine.memory_bandwidth, 1 / fit.factor);
  for (const auto& [name, link, given] :
       {std::tuple{"inside", c.inside, file.inside}, std::tuple{"between", c.between, file.between}}) {
    if (!given) continue;
    change(root, fmt::format("{}.latency", name), link.latency, fit.factor);
    if (std::isfinite(link.bandwidth)) change(root, fmt::format("{}.bandwidth", name), link.bandwidth, 1 / fit.factor);
  }
  return write_toml(root);
}

}  // namespace stretto
