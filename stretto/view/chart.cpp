#include "stretto/view/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "stretto/view/escape.h"
#include "stretto/view/inner/plot.h"

namespace stretto {

const std::string_view chart_style = R"css(
figure { margin: 0; }
figcaption { font-weight: 600; margin: 10px 0 4px; }
figure svg { fill: var(--soft); font-size: 11px; max-width: 100%; height: auto; }
figure .grid { stroke: var(--faint); }
figure .curve { fill: none; stroke-width: 1.6; stroke-linejoin: round; }
figure .s0 { stroke: var(--series0); } figure .s1 { stroke: var(--series1); } figure .s2 { stroke: var(--series2); }
figure .f0 { fill: var(--series0); } figure .f1 { fill: var(--series1); } figure .f2 { fill: var(--series2); }
figure .cross { stroke: var(--soft); stroke-dasharray: 3 3; }
#tip { position: fixed; z-index: 3; padding: 6px 10px; pointer-events: none; background: var(--bg); color: var(--fg);
  border: 1px solid var(--line); border-radius: 6px; box-shadow: 0 4px 16px rgba(0, 0, 0, .22); font-size: 12px;
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

struct Frame {
  PlotAxis x, y;
};

Frame frame_of(const CurveChart& c) {
  constexpr double none = std::numeric_limits<double>::infinity();
  PlotAxis x{none, -none, chart_left, chart_width - chart_right, 8};
  PlotAxis y{none, -none, chart_height - chart_bottom, chart_top};
  for (const ChartSeries& s : c.series)
    for (const ChartPoint& p : s.points) {
      x.least = std::min(x.least, p.x), x.most = std::max(x.most, p.x);
      y.least = std::min(y.least, p.y), y.most = std::max(y.most, p.y);
    }
  if (c.from_zero) y.least = std::min(0.0, y.least);
  if (y.most - y.least < 1e-12 * std::max(1.0, std::abs(y.most)))
    y.most = y.least + std::max(1e-12, std::abs(y.least) * 0.1);
  if (x.most <= x.least) x.most = x.least + 1;
  const double step = y.step();
  if (!c.from_zero) y.least = std::floor(y.least / step) * step;
  y.most = std::ceil(y.most / step - 1e-9) * step;
  return {x, y};
}

std::string axes(const Frame& f, const std::string& across) {
  std::string svg;
  for (const double v : f.y.ticks())
    svg += plot_line(f.x.from, f.y.at(v), f.x.to, f.y.at(v), "grid") +
           plot_text(f.x.from - 6, f.y.at(v) + 4, fmt::format("{:.6g}", v + 0.0), "end");
  for (const double v : f.x.ticks())
    if (v == std::floor(v)) svg += plot_text(f.x.at(v), f.y.from + 16, fmt::format("{:.0f}", v), "middle");
  return svg + plot_text(f.x.to, chart_height - 6, across, "end");
}

std::string drawn(const ChartSeries& s, std::size_t colour, const Frame& f) {
  std::string d, dots;
  for (const ChartPoint& p : s.points) {
    d += fmt::format("{}{:.1f} {:.1f}", d.empty() ? "M" : "L", f.x.at(p.x), f.y.at(p.y));
    if (s.dots)
      dots += fmt::format("<circle class=\"f{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.2\"/>", colour, f.x.at(p.x),
                          f.y.at(p.y));
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
  return fmt::format("{{\"left\":{},\"right\":{},\"first\":{},\"last\":{},\"across\":{},\"series\":[{}]}}", f.x.from,
                     f.x.to, f.x.least, f.x.most, quoted_json(c.across), series);
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
    svg += plot_text(chart_width - at, chart_top + 10, c.series[i].name, "end", fmt::format("f{}", i));
    at += 7.0 * c.series[i].name.size() + 12;
  }
  return svg + "<path class=\"cross\" d=\"\"/></svg></figure>\n";
}

}  // namespace stretto
