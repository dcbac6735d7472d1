#include "stretto/train/measured_runs.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>

#include "stretto/base/files.h"
#include "stretto/formats/fields.h"

namespace stretto {
namespace {

std::vector<std::string> columns_of(std::string_view line) {
  std::vector<std::string> all;
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t end = std::min(line.find('\t', at), line.size());
    all.emplace_back(line.substr(at, end - at));
    at = end + 1;
  }
  return all;
}

std::string text_of_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in)
    throw file_error(path, "read", last_error())
        .hint("a table with the columns run and seconds, such as measured.tsv of a run directory");
  return {std::istreambuf_iterator<char>(in), {}};
}

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

}  // namespace

std::vector<MeasuredFile> read_measured(const std::string& file) {
  const std::string text = text_of_file(file);
  std::vector<MeasuredFile> runs;
  std::optional<std::size_t> run, seconds, bytes;
  int line = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::vector<std::string> cells = columns_of(std::string_view(text).substr(at, end - at));
    at = end + 1;
    if (++line == 1) {
      for (std::size_t i = 0; i < cells.size(); ++i)
        (cells[i] == "run"       ? run
         : cells[i] == "seconds" ? seconds
                                 : bytes) =
            cells[i] == "run" || cells[i] == "seconds" || cells[i] == "bytes" ? std::optional(i) : bytes;
      if (!run || !seconds)
        throw Error(fmt::format("{}:1", file), "the columns run and seconds are not both there")
            .hint("begin with a line that names them, with tabs between");
      continue;
    }
    if (cells.size() == 1 && cells[0].empty()) continue;
    const auto cell = [&](std::size_t i) { return i < cells.size() ? cells[i] : std::string(); };
    const std::optional<double> took = positive(cell(*seconds));
    if (cell(*run).empty() || !took)
      throw Error(fmt::format("{}:{}", file, line), "a run and its seconds are expected, and there is '{}' and '{}'",
                  cell(*run), cell(*seconds))
          .hint("seconds of a step are a number above 0");
    const std::filesystem::path beside = std::filesystem::path(file).parent_path() / cell(*run);
    runs.push_back({beside.string(), *took, bytes ? positive(cell(*bytes)) : std::nullopt});
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
  if (stack.hidden.tensor) run.parallel.overlap = Overlap::none;
  const bool cut = run.parallel.names.zero == 3 && run.parallel.names.data > 1;
  if (stack.keeps_gathered && run.parallel.pipe > 1 && cut) run.parallel.reshard = Reshard::step;
  return run;
}

StepTime predicted_on(const RunConfig& run, const std::string& cluster_file) {
  const ClusterFile file = read_cluster(cluster_file, {}, run.train.dtype.products);
  const Compiled c = compile_run(as_stack_has_it(run, file.cluster.stack), Purpose::sizes);
  check_ranks(file, c.program->ranks());
  return step_time(*c.program, file.cluster);
}

std::string calibrated(const std::string& cluster_file, const CalibrationFit& fit, const CalibratedOn& on) {
  Field root = read_toml_file(cluster_file);
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
