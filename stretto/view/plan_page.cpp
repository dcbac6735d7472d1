#include "stretto/view/plan_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "stretto/base/text.h"
#include "stretto/view/chart.h"
#include "stretto/view/escape.h"
#include "stretto/view/svg.h"

namespace stretto {
namespace {

constexpr double plot_width = 900, plot_height = 420, plot_left = 70, plot_bottom = 54, plot_top = 14, plot_right = 20;
constexpr std::array<std::string_view, 9> hues{"#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00",
                                               "#56b4e9", "#7a5195", "#6b7280", "#c3c9d2"};

constexpr std::string_view plan_style = R"css(
body { margin: 0 auto; max-width: 1480px; padding: 20px 28px 40px; background: var(--bg); color: var(--fg);
  font: 14px/1.45 system-ui, "DejaVu Sans", sans-serif; }
h1 { font-size: 22px; font-weight: 600; margin: 0 0 12px; overflow-wrap: anywhere; }
h2 { font-size: 15px; font-weight: 600; margin: 28px 0 8px; }
pre { background: var(--panel); border: 1px solid var(--edge); border-radius: 6px; padding: 10px 14px; overflow-x: auto;
  font: 12.5px/1.5 "DejaVu Sans Mono", monospace; margin: 0; white-space: pre-wrap; min-width: 1200px; }
.wide { overflow-x: auto; }
.wide svg { max-width: 100%; min-width: 900px; height: auto; }
.plot { max-width: 100%; min-width: 640px; height: auto; }
.scroll { overflow-x: auto; }
.plot text { font: 12px system-ui, "DejaVu Sans", sans-serif; fill: var(--fg); }
.plot text.soft { fill: var(--soft); }
.plot .grid { stroke: var(--line); }
.plot .ink { stroke: var(--fg); }
.plot .limit { stroke: #e0445a; stroke-dasharray: 6 4; }
p.legend { margin: 6px 0; display: flex; flex-wrap: wrap; gap: 4px 16px; }
p.legend i { display: inline-block; width: 12px; height: 12px; border-radius: 2px; margin-right: 6px; }
)css";

// A linear axis with round steps.
struct Axis1 {
  double least = 0, most = 1, from = 0, to = 1;
  double at(double x) const { return from + (x - least) / (most - least) * (to - from); }
  double step() const {
    const double raw = (most - least) / 6, power = std::pow(10, std::floor(std::log10(raw)));
    for (const double k : {1.0, 2.0, 5.0})
      if (k * power >= raw) return k * power;
    return 10 * power;
  }
};

std::string text_at(double x, double y, std::string_view text, std::string_view anchor = "start",
                    std::string_view kind = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" class=\"{}\">{}</text>\n", x, y, anchor, kind,
                     escape_xml(text));
}

std::string line(double x1, double y1, double x2, double y2, std::string_view kind) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n", x1, y1, x2, y2,
                     kind);
}

std::string percent(double part) {
  return std::abs(part) < 5e-4 ? "0%" : fmt::format("{:+.1f}%", 100 * part);  // not "-0.0%"
}

std::string svg_of(double width, double height, const std::string& body) {
  return fmt::format(
      "<div class=\"scroll\"><svg class=\"plot\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
      "{1:.0f}\">\n{2}</svg></div>\n",
      width, height, body);
}

std::string legend(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string out = "<p class=\"legend\">";
  for (const auto& [name, hue] : entries)
    out += fmt::format("<span><i style=\"background:{}\"></i>{}</span>", hue, escape_xml(name));
  return out + "</p>\n";
}

std::string grid(const Axis1& x, const Axis1& y) {
  std::string out;
  const auto first = [](const Axis1& a) { return std::ceil(a.least / a.step() - 1e-9) * a.step() + 0.0; };
  for (double v = first(x); v <= x.most * (1 + 1e-9); v += x.step()) {
    out += line(x.at(v), y.from, x.at(v), y.to, "grid");
    out += text_at(x.at(v), y.from + 18, human_seconds(v), "middle", "soft");
  }
  for (double v = first(y); v <= y.most * (1 + 1e-9); v += y.step()) {
    out += line(x.from, y.at(v), x.to, y.at(v), "grid");
    out += text_at(x.from - 8, y.at(v) + 4, decimal_bytes(v), "end", "soft");
  }
  return out;
}

std::string scatter(const PlanPage& page) {
  if (page.points.empty()) return "";
  // What is more than twice as slow as the best would only squeeze the others.
  double fastest = page.points.front().seconds, slowest = 0, largest = 0;
  for (const PlanPoint& p : page.points) fastest = std::min(fastest, p.seconds);
  for (const PlanPoint& p : page.points)
    if (p.seconds <= 2 * fastest) slowest = std::max(slowest, p.seconds), largest = std::max(largest, p.bytes);
  const bool limited = page.capacity > 0 && std::isfinite(page.capacity) && page.capacity < 4 * largest;
  if (limited) largest = std::max(largest, page.capacity);
  const Axis1 x{fastest - 0.02 * fastest, std::max(slowest, 1.02 * fastest) * 1.01, plot_left, plot_width - plot_right};
  const Axis1 y{0, 1.06 * largest, plot_height - plot_bottom, plot_top};
  std::map<int, std::string_view> hue;
  for (const PlanPoint& p : page.points) hue[p.group];
  std::vector<std::pair<std::string, std::string>> entries;
  std::size_t n = 0;
  for (auto& [group, colour] : hue) {
    colour = hues[n++ % hues.size()];
    entries.push_back({fmt::format("pipe {}", group), std::string(colour)});
  }
  std::string body = grid(x, y);
  body += text_at(x.to, y.from + 38, "time of a step", "end", "soft");
  body += text_at(x.from, y.to - 6, "memory of the fullest rank", "start", "soft");
  if (limited) {
    body += line(x.from, y.at(page.capacity), x.to, y.at(page.capacity), "limit");
    body += text_at(x.to, y.at(page.capacity) - 6, "memory of a rank", "end");
  }
  std::string front;
  for (const std::size_t i : pareto_front(page.points)) {
    const PlanPoint& p = page.points[i];
    if (p.seconds <= 2 * fastest) front += fmt::format("{:.1f},{:.1f} ", x.at(p.seconds), y.at(p.bytes));
  }
  body += fmt::format("<polyline points=\"{}\" class=\"ink\" fill=\"none\" stroke-opacity=\".45\"/>\n", front);
  for (const PlanPoint& p : page.points)
    if (p.seconds <= 2 * fastest)
      body += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\" fill-opacity=\"{}\" stroke=\"{}\"><title>{}</title>"
          "</circle>\n",
          x.at(p.seconds), y.at(p.bytes), p.compiled ? 6 : 4, hue[p.group], p.compiled ? 0.95 : 0.35, hue[p.group],
          escape_xml(p.label));
  return "<h2>Time and memory of what was scored</h2>\n" + svg_of(plot_width, plot_height, body) + legend(entries) +
         "<p class=\"legend\">Filled: compiled and counted to the byte; pale: by the cost model alone. The line joins "
         "what "
         "nothing beats in both.</p>\n";
}

std::string bars(std::string_view title, const std::vector<PlanBar>& all, double limit, bool bytes) {
  if (all.empty()) return "";
  constexpr double wide = 620, high = 26, letter = 6.9;
  double most = 0, left = 120;
  for (const PlanBar& b : all) {
    left = std::max(left, letter * double(b.label.size()) + 20);
    double sum = 0;
    for (const auto& [name, value] : b.parts) sum += value;
    most = std::max(most, sum);
  }
  if (limit > 4 * most) limit = 0;  // beside it nothing would be seen of the bars
  most = std::max(most, limit);
  std::string body;
  std::vector<std::pair<std::string, std::string>> entries;
  for (std::size_t i = 0; i < all.size(); ++i) {
    double from = left;
    body += text_at(left - 10, i * high + 17, all[i].label, "end");
    double sum = 0;
    for (std::size_t k = 0; k < all[i].parts.size(); ++k) {
      const auto& [name, value] = all[i].parts[k];
      const std::string hue(hues[k % hues.size()]);
      if (i == 0) entries.push_back({name, hue});
      const double length = most > 0 ? value / most * wide : 0;
      body += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" fill=\"{}\"><title>{}: {}</title></rect>\n",
          from, i * high + 3, length, high - 6, hue, escape_xml(name),
          bytes ? decimal_bytes(value) : human_seconds(value));
      from += length;
      sum += value;
    }
    body += text_at(from + 8, i * high + 17, bytes ? decimal_bytes(sum) : human_seconds(sum), "start", "soft");
  }
  const double rows = all.size() * high + 6, height = limit > 0 ? rows + 14 : rows;
  if (limit > 0) {
    body += line(left + limit / most * wide, 0, left + limit / most * wide, rows, "limit");
    body += text_at(left + limit / most * wide, height - 2, "memory of a rank", "middle");
  }
  return fmt::format("<h2>{}</h2>\n", escape_xml(title)) + svg_of(left + wide + 110, height, body) + legend(entries);
}

std::string tornado(const PlanPage& page) {
  if (page.swings.empty() || page.seconds <= 0) return "";
  constexpr double left = 230, wide = 640, high = 28;
  double most = 1e-9;
  for (const PlanSwing& s : page.swings)
    most = std::max({most, std::abs(s.slower - page.seconds), std::abs(s.faster - page.seconds)});
  const double middle = left + wide / 2;
  std::string body;
  for (std::size_t i = 0; i < page.swings.size(); ++i) {
    const PlanSwing& s = page.swings[i];
    const double a = middle + (s.faster - page.seconds) / most * wide / 2,
                 b = middle + (s.slower - page.seconds) / most * wide / 2, y = i * high + 4;
    body += text_at(left - 10, y + 15, s.what, "end");
    body += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"20\" fill=\"{}\"/>\n",
                        std::min(a, middle), y, std::abs(middle - a), hues[2]);
    body += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"20\" fill=\"{}\"/>\n",
                        std::min(b, middle), y, std::abs(b - middle), hues[4]);
    body += text_at(left + wide + 10, y + 15,
                    fmt::format("{} .. {}", percent(s.faster / page.seconds - 1), percent(s.slower / page.seconds - 1)),
                    "start", "soft");
  }
  body += line(middle, 0, middle, page.swings.size() * high, "ink");
  return "<h2>A step of the best if one thing is 20% faster or slower</h2>\n" +
         svg_of(left + wide + 150, page.swings.size() * high + 4, body) +
         legend({{"20% faster", std::string(hues[2])}, {"20% slower", std::string(hues[4])}});
}

// Both axes are logarithms: what lies on the diagonal is predicted exactly.
std::string calibration(const PlanPage& page) {
  if (page.measured.empty()) return "";
  double least = std::numeric_limits<double>::infinity(), most = 0, error = 0;
  for (const PlanMeasured& m : page.measured) {
    least = std::min({least, m.measured, m.predicted}), most = std::max({most, m.measured, m.predicted});
    error += std::abs(m.predicted / m.measured - 1) / double(page.measured.size());
  }
  const double low = std::log(least) - 0.1, high = std::log(most) + 0.1, size = plot_height;
  const Axis1 x{low, high, plot_left, plot_left + size - plot_bottom}, y{low, high, size - plot_bottom, plot_top};
  std::string body = line(x.from, y.from, x.to, y.to, "ink\" stroke-dasharray=\"6 4");
  body += line(x.from, y.from, x.to, y.from, "grid") + line(x.from, y.from, x.from, y.to, "grid");
  for (const double v : {least, most}) {
    body += text_at(x.at(std::log(v)), y.from + 18, human_seconds(v), "middle", "soft");
    body += text_at(x.from - 8, y.at(std::log(v)) + 4, human_seconds(v), "end", "soft");
  }
  body += text_at((x.from + x.to) / 2, y.from + 34, "measured, logarithms", "middle", "soft");
  body += text_at(x.from + 8, y.to + 12, "predicted, logarithms", "start", "soft");
  for (const PlanMeasured& m : page.measured)
    body += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\" fill=\"{}\"><title>{}: {} measured, {} "
        "predicted</title></circle>\n",
        x.at(std::log(m.measured)), y.at(std::log(m.predicted)), hues[0], escape_xml(m.run), human_seconds(m.measured),
        human_seconds(m.predicted));
  return fmt::format("<h2>Predicted against measured: {:.1f}% off in the mean of {} run{}</h2>\n", 100 * error,
                     page.measured.size(), page.measured.size() == 1 ? "" : "s") +
         svg_of(plot_left + size, size + 10, body);
}

}  // namespace

std::vector<std::size_t> pareto_front(const std::vector<PlanPoint>& points) {
  std::vector<std::size_t> order(points.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(points[a].seconds, points[a].bytes) < std::pair(points[b].seconds, points[b].bytes);
  });
  std::vector<std::size_t> front;
  for (const std::size_t i : order)
    if (front.empty() || points[i].bytes < points[front.back()].bytes) front.push_back(i);
  return front;
}

std::string plan_html(const PlanPage& page) {
  const bool limited = page.capacity > 0 && std::isfinite(page.capacity);
  std::string text;
  for (const std::string& one : page.lines) text += escape_xml(one) + "\n";
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">\n<title>{0}</title>\n<style>{3}{1}</style>\n"
      "</head>\n<body>\n<h1>{0}</h1>\n<div class=\"scroll\"><pre>{2}</pre></div>\n",
      escape_xml(page.title), plan_style, text, chart_style);
  out += scatter(page);
  out += bars("What a step is made of", page.times, 0, false);
  out += bars("Memory of the fullest rank", page.memory, limited ? page.capacity : 0, true);
  if (!page.timelines.empty())
    out += "<h2>The best and the runner-up</h2>\n<div class=\"wide\">\n" +
           svg(page.timelines, {.width = 1400, .clock = Clock::seconds}) + "</div>\n";
  out += tornado(page);
  out += calibration(page);
  return out + "</body>\n</html>\n";
}

}  // namespace stretto
