#include "stretto/train/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "stretto/base/text.h"
#include "stretto/view/escape.h"
#include "stretto/view/scene.h"
#include "stretto/view/svg.h"

namespace stretto {
namespace {

constexpr double kWidth = 640, kHeight = 240, kLeft = 64, kRight = 14, kTop = 12, kBottom = 30;
constexpr std::size_t kMostPoints = 600;

constexpr std::string_view style = R"css(
body { margin: 0 auto; max-width: 1480px; padding: 20px 28px 40px; background: #fff; color: #1c2430;
  font: 14px/1.45 system-ui, "DejaVu Sans", sans-serif; }
h1 { font-size: 22px; font-weight: 600; margin: 0 0 12px; }
h2 { font-size: 15px; font-weight: 600; margin: 28px 0 8px; }
pre { background: #f7f8fa; border: 1px solid #d5d9df; border-radius: 6px; padding: 10px 14px; overflow-x: auto;
  font: 12.5px/1.5 "DejaVu Sans Mono", monospace; margin: 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 3px 18px 3px 0; text-align: right; border-bottom: 1px solid #d5d9df; font-weight: 400; }
th { color: #667080; }
th:first-child { text-align: left; }
.curves { display: flex; flex-wrap: wrap; gap: 8px 24px; }
figure { margin: 0; }
figcaption { font-weight: 600; margin: 10px 0 4px; }
.wide { overflow-x: auto; }
)css";

struct Point {
  double x = 0, y = 0;
};

// As many points as can be told apart, each the mean of its neighbours.
std::vector<Point> thinned(const std::vector<Point>& all) {
  const std::size_t each = (all.size() + kMostPoints - 1) / kMostPoints;
  if (each <= 1) return all;
  std::vector<Point> out;
  for (std::size_t i = 0; i < all.size(); i += each) {
    Point sum;
    const std::size_t end = std::min(all.size(), i + each);
    const double n = end - i;
    for (std::size_t k = i; k < end; ++k) sum.x += all[k].x, sum.y += all[k].y;
    out.push_back({sum.x / n, sum.y / n});
  }
  return out;
}

struct Series {
  std::string name;
  std::string colour;
  std::vector<Point> points;
  bool dots = false;
};

// Curves on common axes; values that are not finite are left out.
std::string chart(const std::string& title, std::vector<Series> all, bool from_zero) {
  double low = std::numeric_limits<double>::infinity(), high = -low, first = low, last = -low;
  for (Series& s : all) {
    std::erase_if(s.points, [](const Point& p) { return !std::isfinite(p.y); });
    s.points = thinned(s.points);
    for (const Point& p : s.points) {
      low = std::min(low, p.y), high = std::max(high, p.y);
      first = std::min(first, p.x), last = std::max(last, p.x);
    }
  }
  if (!(high >= low)) return "";
  if (from_zero) low = std::min(0.0, low);
  if (high - low < 1e-12 * std::max(1.0, std::abs(high))) high = low + std::max(1e-12, std::abs(low) * 0.1);
  if (last <= first) last = first + 1;
  const double step = tick_step(high - low, 6), across = std::max(1.0, tick_step(last - first, 8));
  if (!from_zero) low = std::floor(low / step) * step;
  high = std::ceil(high / step - 1e-9) * step;
  const auto x = [&](double v) { return kLeft + (v - first) / (last - first) * (kWidth - kLeft - kRight); };
  const auto y = [&](double v) { return kHeight - kBottom - (v - low) / (high - low) * (kHeight - kTop - kBottom); };
  std::string svg = fmt::format(
      "<figure><figcaption>{}</figcaption><svg viewBox=\"0 0 {} {}\" width=\"{}\" height=\"{}\" font-size=\"11\" "
      "fill=\"#667080\" role=\"img\" aria-label=\"{}\">\n",
      escape_xml(title), kWidth, kHeight, kWidth, kHeight, escape_xml(title));
  for (double v = std::ceil(low / step - 1e-9) * step; v <= high + step * 1e-6; v += step)
    svg += fmt::format(
        "<path d=\"M{} {:.1f}H{}\" stroke=\"#e3e6ea\"/><text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:.6g}</text>\n",
        kLeft, y(v), kWidth - kRight, kLeft - 6, y(v) + 4, std::abs(v) < step * 1e-6 ? 0 : v);
  for (double v = std::ceil(first / across) * across; v <= last; v += across)
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:.0f}</text>\n", x(v), kHeight - 12, v);
  double at = kLeft + 10;
  for (const Series& s : all) {
    if (s.points.empty()) continue;
    std::string d;
    for (const Point& p : s.points) d += fmt::format("{}{:.1f} {:.1f}", d.empty() ? "M" : "L", x(p.x), y(p.y));
    svg += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\"/>\n", d, s.colour);
    if (s.dots)
      for (const Point& p : s.points)
        svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>", x(p.x), y(p.y), s.colour);
    if (all.size() > 1) {
      svg += fmt::format("<text x=\"{:.0f}\" y=\"{}\" text-anchor=\"end\" fill=\"{}\">{}</text>\n", kWidth - at,
                         kTop + 10, s.colour, escape_xml(s.name));
      at += 8.0 * s.name.size() + 10;
    }
  }
  return svg + "</svg></figure>\n";
}

std::string curves(const std::vector<CurvePoint>& curve) {
  Series loss{"training", "#0d5c94", {}}, validation{"validation", "#c8501e", {}, true}, speed{"", "#0d5c94", {}},
      norm{"", "#0d5c94", {}}, idle{"", "#0d5c94", {}};
  for (const CurvePoint& p : curve) {
    const double step = p.step;
    loss.points.push_back({step, p.loss});
    speed.points.push_back({step, p.tokens_per_second});
    norm.points.push_back({step, p.grad_norm});
    if (p.bubble > 0) idle.points.push_back({step, 100 * p.bubble});  // 0: there was one actor
    if (p.validation) validation.points.push_back({step, *p.validation});
  }
  std::string out = chart("loss", {loss, validation}, false) + chart("tokens per second", {speed}, true) +
                    chart("gradient norm, before clipping", {norm}, true);
  if (!idle.points.empty()) out += chart("bubble: share of the actors' time without work, %", {idle}, true);
  return "<div class=\"curves\">\n" + out + "</div>\n";
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
  const std::string title = escape_xml(r.title);
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{0}</title>\n"
      "<style>{1}</style>\n</head>\n<body>\n<h1>{0}</h1>\n<pre>{2}</pre>\n",
      title, style, block(join(r.lines, "\n")));
  if (!r.curve.empty()) out += curves(r.curve);
  if (!r.timelines.empty())
    out += "<h2>A measured step</h2>\n<div class=\"wide\">" +
           svg(r.timelines, {.width = 1400, .clock = Clock::seconds}) + "</div>\n";
  out += memory_table(r) + "<h2>Configuration</h2>\n<pre>" + block(r.config) + "</pre>\n";
  return out + fmt::format("<h2>Versions</h2>\n<pre>stretto {}\ncompiler {}</pre>\n</body>\n</html>\n", STRETTO_VERSION,
                           escape_xml(__VERSION__));
}

}  // namespace stretto
