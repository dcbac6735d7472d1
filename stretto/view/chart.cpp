#include "stretto/view/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "stretto/view/escape.h"
#include "stretto/view/scene.h"

namespace stretto {

const std::string_view chart_style = R"css(
:root { --bg: #ffffff; --fg: #1c2430; --soft: #667080; --line: #e3e6ea; --panel: #f7f8fa; --edge: #d5d9df;
  --series0: #0d5c94; --series1: #c8501e; --series2: #2f7d4f; }
@media (prefers-color-scheme: dark) {
  :root { --bg: #12161c; --fg: #e6e9ee; --soft: #98a2b1; --line: #2a313c; --panel: #191e26; --edge: #323a46;
    --series0: #5aa9e0; --series1: #f0905f; --series2: #6fc493; } }
figure { margin: 0; }
figcaption { font-weight: 600; margin: 10px 0 4px; }
figure svg { fill: var(--soft); font-size: 11px; max-width: 100%; height: auto; }
figure .grid { stroke: var(--line); }
figure .curve { fill: none; stroke-width: 1.6; stroke-linejoin: round; }
figure .s0 { stroke: var(--series0); } figure .s1 { stroke: var(--series1); } figure .s2 { stroke: var(--series2); }
figure .f0 { fill: var(--series0); } figure .f1 { fill: var(--series1); } figure .f2 { fill: var(--series2); }
figure .cross { stroke: var(--soft); stroke-dasharray: 3 3; }
#tip { position: fixed; z-index: 3; padding: 6px 10px; pointer-events: none; background: var(--bg); color: var(--fg);
  border: 1px solid var(--edge); border-radius: 6px; box-shadow: 0 4px 16px rgba(0, 0, 0, .22); font-size: 12px;
  font-variant-numeric: tabular-nums; white-space: pre; }
)css";

// Every series is looked up at the x that is nearest to the pointer; one that has no point near it says nothing.
const std::string_view chart_script = R"js(
"use strict";
(() => {
  const tip = document.createElement("div");
  tip.id = "tip"; tip.hidden = true; document.body.append(tip);
  const nearest = (xs, x) => xs.reduce((best, v, i) => Math.abs(v - x) < Math.abs(xs[best] - x) ? i : best, 0);
  for (const svg of document.querySelectorAll("svg[data-chart]")) {
    const { left, right, first, last, across, series } = JSON.parse(svg.dataset.chart);
    const cross = svg.querySelector(".cross"), box = svg.viewBox.baseVal;
    svg.addEventListener("pointermove", e => {
      const place = svg.getBoundingClientRect(), px = (e.clientX - place.left) / place.width * box.width;
      const at = first + (px - left) / (right - left) * (last - first);
      const x = series[0].x[nearest(series[0].x, at)];
      const rows = [];
      for (const s of series) {
        const i = nearest(s.x, x);
        if (s === series[0] || Math.abs(s.x[i] - x) * 40 < last - first)
          rows.push(`${s.name ? s.name + "  " : ""}${s.y[i]}${s.x[i] === x ? "" : `  (${across} ${s.x[i]})`}`);
      }
      tip.textContent = `${across} ${x}\n${rows.join("\n")}`;
      tip.hidden = false;
      tip.style.left = Math.min(e.clientX + 14, innerWidth - tip.offsetWidth - 8) + "px";
      tip.style.top = e.clientY + 14 + "px";
      cross.setAttribute("d", `M${left + (x - first) / (last - first) * (right - left)} 12V${box.height - 30}`);
    });
    svg.addEventListener("pointerleave", () => { tip.hidden = true; cross.setAttribute("d", ""); });
  }
})();
)js";

namespace {

constexpr double chart_width = 640, chart_height = 240, chart_left = 64, chart_right = 14, chart_top = 12,
                 chart_bottom = 38;
constexpr std::size_t most_points = 600;

// As many points as can be told apart, each the mean of its neighbours.
std::vector<ChartPoint> thinned(const std::vector<ChartPoint>& all) {
  const std::size_t each = (all.size() + most_points - 1) / most_points;
  if (each <= 1) return all;
  std::vector<ChartPoint> out;
  for (std::size_t i = 0; i < all.size(); i += each) {
    ChartPoint sum;
    const std::size_t end = std::min(all.size(), i + each);
    const double n = end - i;
    for (std::size_t k = i; k < end; ++k) sum.x += all[k].x, sum.y += all[k].y;
    out.push_back({sum.x / n, sum.y / n});
  }
  return out;
}

// What is drawn, and where: from data to the picture.
struct Frame {
  double first = std::numeric_limits<double>::infinity(), last = -first, low = first, high = -first;
  double step = 1, across = 1;  // between marks

  double x(double v) const {
    return chart_left + (v - first) / (last - first) * (chart_width - chart_left - chart_right);
  }
  double y(double v) const {
    return chart_height - chart_bottom - (v - low) / (high - low) * (chart_height - chart_top - chart_bottom);
  }
};

Frame frame_of(const CurveChart& c) {
  Frame f;
  for (const ChartSeries& s : c.series)
    for (const ChartPoint& p : s.points) {
      f.low = std::min(f.low, p.y), f.high = std::max(f.high, p.y);
      f.first = std::min(f.first, p.x), f.last = std::max(f.last, p.x);
    }
  if (c.from_zero) f.low = std::min(0.0, f.low);
  if (f.high - f.low < 1e-12 * std::max(1.0, std::abs(f.high))) f.high = f.low + std::max(1e-12, std::abs(f.low) * 0.1);
  if (f.last <= f.first) f.last = f.first + 1;
  f.step = tick_step(f.high - f.low, 6), f.across = std::max(1.0, tick_step(f.last - f.first, 8));
  if (!c.from_zero) f.low = std::floor(f.low / f.step) * f.step;
  f.high = std::ceil(f.high / f.step - 1e-9) * f.step;
  return f;
}

std::string axes(const Frame& f, const std::string& across) {
  std::string svg;
  for (double v = std::ceil(f.low / f.step - 1e-9) * f.step; v <= f.high + f.step * 1e-6; v += f.step)
    svg += fmt::format(
        "<path class=\"grid\" d=\"M{} {:.1f}H{}\"/><text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:.6g}</text>\n",
        chart_left, f.y(v), chart_width - chart_right, chart_left - 6, f.y(v) + 4, std::abs(v) < f.step * 1e-6 ? 0 : v);
  for (double v = std::ceil(f.first / f.across) * f.across; v <= f.last; v += f.across)
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:.0f}</text>\n", f.x(v),
                       chart_height - chart_bottom + 16, v);
  return svg + fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", chart_width - chart_right,
                           chart_height - 6, escape_xml(across));
}

std::string drawn(const ChartSeries& s, std::size_t colour, const Frame& f) {
  std::string d, dots;
  for (const ChartPoint& p : s.points) {
    d += fmt::format("{}{:.1f} {:.1f}", d.empty() ? "M" : "L", f.x(p.x), f.y(p.y));
    if (s.dots)
      dots += fmt::format("<circle class=\"f{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.2\"/>", colour, f.x(p.x), f.y(p.y));
  }
  return fmt::format("<path class=\"curve s{}\" d=\"{}\"/>{}\n", colour, d, dots);
}

std::string json_of(const CurveChart& c, const Frame& f) {
  std::string series;
  for (const ChartSeries& s : c.series) {
    std::string x, y;
    for (const ChartPoint& p : s.points) {
      x += fmt::format("{}{:.8g}", x.empty() ? "" : ",", p.x);
      y += fmt::format("{}{:.5g}", y.empty() ? "" : ",", p.y);
    }
    series +=
        fmt::format("{}{{\"name\":{},\"x\":[{}],\"y\":[{}]}}", series.empty() ? "" : ",", quoted_json(s.name), x, y);
  }
  return fmt::format("{{\"left\":{},\"right\":{},\"first\":{},\"last\":{},\"across\":{},\"series\":[{}]}}", chart_left,
                     chart_width - chart_right, f.first, f.last, quoted_json(c.across), series);
}

}  // namespace

std::string curve_chart(const CurveChart& given) {
  CurveChart c = given;
  for (ChartSeries& s : c.series) {
    std::erase_if(s.points, [](const ChartPoint& p) { return !std::isfinite(p.y); });
    s.points = thinned(s.points);
  }
  std::erase_if(c.series, [](const ChartSeries& s) { return s.points.empty(); });
  if (c.series.empty()) return "";
  const Frame f = frame_of(c);
  std::string svg = fmt::format(
      "<figure><figcaption>{0}</figcaption><svg viewBox=\"0 0 {1} {2}\" width=\"{1}\" height=\"{2}\" role=\"img\" "
      "aria-label=\"{0}\" data-chart=\"{3}\">\n",
      escape_xml(c.title), chart_width, chart_height, escape_xml(json_of(c, f)));
  svg += axes(f, c.across);
  // The first series is drawn last: the others do not cover it.
  for (std::size_t i = c.series.size(); i-- > 0;) svg += drawn(c.series[i], i, f);
  double at = chart_right;
  for (std::size_t i = c.series.size(); i-- > 0 && c.series.size() > 1;) {
    svg += fmt::format("<text class=\"f{}\" x=\"{:.0f}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", i, chart_width - at,
                       chart_top + 10, escape_xml(c.series[i].name));
    at += 7.0 * c.series[i].name.size() + 12;
  }
  return svg + "<path class=\"cross\" d=\"\"/></svg></figure>\n";
}

}  // namespace stretto
