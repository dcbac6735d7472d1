#include "stretto/run/inner/report.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <sstream>

#include "stretto/base/text.h"
#include "stretto/view/chart.h"
#include "stretto/view/document.h"
#include "stretto/view/escape.h"
#include "stretto/view/svg.h"

namespace stretto {
namespace {

constexpr std::string_view style = R"css(
summary { cursor: pointer; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 3px 18px 3px 0; text-align: right; border-bottom: 1px solid var(--line); font-weight: 400; }
th { color: var(--soft); }
th:first-child { text-align: left; }
.curves { display: flex; flex-wrap: wrap; gap: 8px 24px; }
.curves figure { flex: 1 1 460px; max-width: 640px; }
.loads td { width: 14px; height: 14px; padding: 0; background: var(--fg); border: 1px solid var(--bg); }
.loads .more { width: auto; background: none; padding-left: 8px; color: var(--soft); }
)css";

std::string curves(const std::vector<CurvePoint>& curve) {
  ChartSeries loss{"training", {}}, validation{"validation", {}, true}, speed{"", {}}, norm{"", {}}, rate{"", {}},
      idle{"", {}}, uneven{"", {}};
  for (const CurvePoint& p : curve) {
    const double step = p.step;
    loss.points.push_back({step, p.loss});
    speed.points.push_back({step, p.tokens_per_second});
    norm.points.push_back({step, p.grad_norm});
    rate.points.push_back({step, p.lr});
    if (p.bubble > 0) idle.points.push_back({step, 100 * p.bubble});  // 0: there was one actor
    if (p.imbalance) uneven.points.push_back({step, *p.imbalance});
    if (p.validation) validation.points.push_back({step, *p.validation});
  }
  return "<div class=\"curves\">\n" + curve_chart({.title = "loss", .series = {loss, validation}}) +
         curve_chart({.title = "tokens per second", .series = {speed}, .from_zero = true}) +
         curve_chart({.title = "gradient norm, before clipping", .series = {norm}, .from_zero = true}) +
         curve_chart({.title = "learning rate", .series = {rate}, .from_zero = true}) +
         curve_chart(
             {.title = "bubble: share of the actors' time without work, %", .series = {idle}, .from_zero = true}) +
         curve_chart({.title = "experts: the largest load over the mean, in the worst layer", .series = {uneven}}) +
         "</div>\n";
}

// The processor's own name for itself, as it is printed on the box; where it has none, its kind.
std::string processor_name(const utsname& system) {
#if defined(__x86_64__)
  std::array<unsigned, 12> words{};
  for (unsigned i = 0; i < 3; ++i)
    if (!__get_cpuid(0x80000002u + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2], &words[4 * i + 3]))
      return system.machine;
  std::array<char, sizeof words + 1> text{};
  std::memcpy(text.data(), words.data(), sizeof words);
  return text.data();
#else
  return system.machine;
#endif
}

#ifdef __clang__
constexpr std::string_view compiler = __VERSION__;  // names itself
#else
constexpr std::string_view compiler = "GCC " __VERSION__;
#endif

std::string machine_lines() {
  utsname system{};
  uname(&system);
  return fmt::format("processor {}, {} cores\nsystem    {} {}\nstretto   {}\ncompiler  {}", processor_name(system),
                     sysconf(_SC_NPROCESSORS_ONLN), system.sysname, system.release, STRETTO_VERSION, compiler);
}

// Text with its line breaks.
std::string block(const std::string& text) {
  std::string out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) out += escape_xml(line) + "\n";
  return out;
}

std::string memory_table(const Report& r) {
  std::string out = "<h2>Memory</h2>\n<table><tr><th>actor</th><th>planned</th></tr>\n";
  for (std::size_t a = 0; a < r.planned.size(); ++a)
    out += fmt::format("<tr><th>{}</th><td>{}</td></tr>\n", a, human_bytes(r.planned[a]));
  return out + fmt::format("<tr><th>process, at most</th><td>{}</td></tr></table>\n", human_bytes(r.peak));
}

}  // namespace

std::string report_html(const Report& r) {
  std::string out = fmt::format("<h1>{}</h1>\n<pre>{}</pre>\n", escape_xml(r.title), block(join(r.lines, "\n")));
  if (!r.curve.empty()) out += curves(r.curve);
  if (r.loads)
    out += "<h2>Loads of experts in the last step</h2>\n<p>A column per expert; half shaded is the mean.</p>\n" +
           load_table(*r.loads);
  if (!r.timelines.empty())
    out += "<h2>A measured step</h2>\n<div class=\"wide\">" +
           svg(r.timelines, {.width = 1400, .clock = Clock::seconds}) + "</div>\n";
  out += memory_table(r) + "<details><summary>Configuration</summary>\n<pre>" + block(r.config) + "</pre></details>\n";
  out += "<h2>Machine and versions</h2>\n<pre>" + block(machine_lines()) + "</pre>\n";
  return html_document(
      {.title = r.title, .css = {prose_style, chart_style, style}, .body = out, .script = chart_script});
}

}  // namespace stretto
