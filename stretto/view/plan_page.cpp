#include "stretto/view/plan_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <map>

#include "stretto/base/text.h"
#include "stretto/view/document.h"
#include "stretto/view/escape.h"
#include "stretto/view/inner/palette.h"
#include "stretto/view/inner/plot.h"
#include "stretto/view/svg.h"

namespace stretto {
namespace {

constexpr std::string_view plan_style = R"css(
pre span { display: block; white-space: pre-wrap; max-width: 170ch; padding-left: 9ch; text-indent: -9ch; }
.wide svg { min-width: 1100px; }
)css";

std::string percent(double part) {
  return std::abs(part) < 5e-4 ? "0%" : fmt::format("{:+.1f}%", 100 * part);  // not "-0.0%"
}

// Parts that no bar has are not drawn.
std::string bars(std::string_view title, const std::vector<PlanBar>& all, double limit, bool bytes) {
  if (all.empty()) return "";
  constexpr double wide = 620, high = 26, letter = 6.9;
  const auto shown = [&](double value) { return bytes ? decimal_bytes(value) : plot_seconds(value); };
  double most = 0, left = 120;
  std::map<std::size_t, std::string> used;
  for (const PlanBar& b : all) {
    left = std::max(left, letter * double(b.label.size()) + 20);
    most = std::max(most, b.sum());
    for (std::size_t k = 0; k < b.parts.size(); ++k)
      if (b.parts[k].second > 0) used[k] = hues[k % hues.size()];
  }
  if (limit > 4 * most) limit = 0;  // beside it nothing would be seen of the bars
  most = std::max({most, limit, 1e-300});
  std::string body;
  for (std::size_t i = 0; i < all.size(); ++i) {
    double from = left;
    body += plot_text(left - 10, i * high + 17, all[i].label, "end");
    for (const auto& [k, hue] : used) {
      const auto& [name, value] = all[i].parts[k];
      const double length = value / most * wide;
      body += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" fill=\"{}\"><title>{}: {}</title></rect>\n",
          from, i * high + 3, length, high - 6, hue, escape_xml(name), shown(value));
      from += length;
    }
    body += plot_text(left + wide + 12, i * high + 17, shown(all[i].sum()), "start", "soft");
  }
  const double rows = all.size() * high + 6, height = limit > 0 ? rows + 14 : rows;
  if (limit > 0) {
    body += plot_line(left + limit / most * wide, 0, left + limit / most * wide, rows, "limit");
    body += plot_text(left + limit / most * wide, height - 2, "memory of a rank", "middle");
  }
  std::vector<std::pair<std::string, std::string>> entries;
  for (const auto& [k, hue] : used) entries.push_back({all.front().parts[k].first, hue});
  return fmt::format("<h2>{}</h2>\n", escape_xml(title)) + plot_svg(left + wide + 110, height, body) +
         plot_legend(entries);
}

std::string tornado(const PlanPage& page) {
  if (page.swings.empty() || page.seconds <= 0) return "";
  constexpr double left = 230, wide = 640, high = 28;
  const auto size = [&](const PlanSwing& s) {
    return std::max(std::abs(s.slower - page.seconds), std::abs(s.faster - page.seconds));
  };
  std::vector<PlanSwing> swings = page.swings;
  std::stable_sort(swings.begin(), swings.end(), [&](const auto& a, const auto& b) { return size(a) > size(b); });
  const double most = std::max(1e-9 * page.seconds, size(swings.front()));
  const double middle = left + wide / 2;
  std::string body;
  for (std::size_t i = 0; i < swings.size(); ++i) {
    const PlanSwing& s = swings[i];
    const double a = middle + (s.faster - page.seconds) / most * wide / 2,
                 b = middle + (s.slower - page.seconds) / most * wide / 2, y = i * high + 4;
    body += plot_text(left - 10, y + 15, s.what, "end");
    body += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"20\" fill=\"{}\"/>\n",
                        std::min(a, middle), y, std::abs(middle - a), hues[2]);
    body += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"20\" fill=\"{}\"/>\n",
                        std::min(b, middle), y, std::abs(b - middle), hues[4]);
    body +=
        plot_text(left + wide + 10, y + 15,
                  fmt::format("{} .. {}", percent(s.faster / page.seconds - 1), percent(s.slower / page.seconds - 1)),
                  "start", "soft");
  }
  body += plot_line(middle, 0, middle, swings.size() * high, "ink");
  return "<h2>A step of the best if one thing is 20% faster or slower</h2>\n" +
         plot_svg(left + wide + 150, swings.size() * high + 4, body) +
         plot_legend({{"20% faster", std::string(hues[2])}, {"20% slower", std::string(hues[4])}});
}

constexpr double calibration_size = 420, calibration_left = 70, calibration_bottom = 54;

// Both axes are logarithms: what lies on the diagonal is predicted exactly.
std::string calibration(const PlanPage& page) {
  if (page.measured.empty()) return "";
  double least = std::numeric_limits<double>::infinity(), most = 0, error = 0;
  for (const PlanMeasured& m : page.measured) {
    least = std::min({least, m.measured, m.predicted}), most = std::max({most, m.measured, m.predicted});
    error += std::abs(m.predicted / m.measured - 1) / double(page.measured.size());
  }
  const double low = std::log(least) - 0.1, high = std::log(most) + 0.1, size = calibration_size;
  const PlotAxis x{low, high, calibration_left, calibration_left + size - calibration_bottom},
      y{low, high, size - calibration_bottom, 14};
  std::string body = plot_line(x.from, y.from, x.to, y.to, "ink\" stroke-dasharray=\"6 4");
  body += plot_line(x.from, y.from, x.to, y.from, "grid") + plot_line(x.from, y.from, x.from, y.to, "grid");
  for (const double v : {least, most}) {
    body += plot_text(x.at(std::log(v)), y.from + 18, plot_seconds(v), "middle", "soft");
    body += plot_text(x.from - 8, y.at(std::log(v)) + 4, plot_seconds(v), "end", "soft");
  }
  body += plot_text((x.from + x.to) / 2, y.from + 34, "measured, logarithms", "middle", "soft");
  body += plot_text(x.from + 8, y.to + 12, "predicted, logarithms", "start", "soft");
  for (const PlanMeasured& m : page.measured)
    body += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\" fill=\"{}\"><title>{}: {} measured, {} "
        "predicted</title></circle>\n",
        x.at(std::log(m.measured)), y.at(std::log(m.predicted)), hues[0], escape_xml(m.run), human_seconds(m.measured),
        human_seconds(m.predicted));
  return fmt::format("<h2>Predicted against measured: {:.1f}% off in the mean of {} run{}</h2>\n", 100 * error,
                     page.measured.size(), page.measured.size() == 1 ? "" : "s") +
         plot_svg(calibration_left + size, size + 10, body);
}

}  // namespace

double PlanBar::sum() const {
  double sum = 0;
  for (const auto& [name, value] : parts) sum += value;
  return sum;
}

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
  // Rows of the table begin with their number, or a space before it; all else is prose, which may be wrapped.
  std::string text;
  for (const std::string& one : page.lines) {
    const bool row = one.empty() || one.front() == ' ' || std::isdigit(static_cast<unsigned char>(one.front()));
    text += row ? escape_xml(one) + "\n" : fmt::format("<span>{}\n</span>", escape_xml(one));
  }
  std::string out = fmt::format("<h1>{}</h1>\n<pre>{}</pre>\n", escape_xml(page.title), text);
  out += plan_scatter(page);
  out += bars("What a step is made of", page.times, 0, false);
  out += bars("Memory of the fullest rank", page.memory, limited ? page.capacity : 0, true);
  if (!page.timelines.empty())
    out += "<h2>The best and the runner-up</h2>\n<div class=\"wide\">\n" +
           svg(page.timelines, {.width = 1400, .clock = Clock::seconds}) + "</div>\n";
  out += tornado(page);
  out += calibration(page);
  return html_document({.title = page.title, .css = {prose_style, plot_style, plan_style}, .body = out});
}

}  // namespace stretto
