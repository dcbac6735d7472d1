// The scatter of a plan's page: time and memory of everything that was scored.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "stretto/base/text.h"
#include "stretto/view/escape.h"
#include "stretto/view/inner/palette.h"
#include "stretto/view/inner/plot.h"
#include "stretto/view/plan_page.h"

namespace stretto {
namespace {

constexpr double scatter_width = 1000, scatter_height = 460;

std::string grid(const PlotAxis& x, const PlotAxis& y) {
  std::string out;
  for (const double v : x.ticks()) {
    out += plot_line(x.at(v), y.from, x.at(v), y.to, "grid");
    out += plot_text(x.at(v), y.from + 18, plot_seconds(v), "middle", "soft");
  }
  for (const double v : y.ticks()) {
    out += plot_line(x.from, y.at(v), x.to, y.at(v), "grid");
    out += plot_text(x.from - 8, y.at(v) + 4, decimal_bytes(v), "end", "soft");
  }
  out += plot_text(x.to, y.from + 38, "time of a step", "end", "soft");
  return out + plot_text(x.from, y.to - 10, "memory of the fullest rank", "start", "soft");
}

// What is more than twice as slow as the best would only squeeze the others.
std::vector<PlanPoint> near_the_best(const std::vector<PlanPoint>& all) {
  const auto faster = [](const PlanPoint& a, const PlanPoint& b) { return a.seconds < b.seconds; };
  const double fastest = std::min_element(all.begin(), all.end(), faster)->seconds;
  std::vector<PlanPoint> near;
  for (const PlanPoint& p : all)
    if (p.seconds <= 2 * fastest) near.push_back(p);
  std::stable_sort(near.begin(), near.end(), faster);
  return near;
}

std::string front_of(const std::vector<PlanPoint>& points, const PlotAxis& x, const PlotAxis& y) {
  std::string front;
  for (const std::size_t i : pareto_front(points))
    front += fmt::format("{:.1f},{:.1f} ", x.at(points[i].seconds), y.at(points[i].bytes));
  return fmt::format("<polyline points=\"{}\" class=\"ink\" fill=\"none\" stroke-opacity=\".45\"/>\n", front);
}

}  // namespace

std::string plan_scatter(const PlanPage& page) {
  if (page.points.empty()) return "";
  const std::vector<PlanPoint> points = near_the_best(page.points);
  const double fastest = points.front().seconds, slowest = points.back().seconds;
  double largest = 0;
  std::map<int, std::string_view> hue_of;
  std::map<std::string, std::size_t> shapes;  // the fastest's first
  std::vector<std::string> kinds;
  for (const PlanPoint& p : points) {
    largest = std::max(largest, p.bytes);
    hue_of[p.group];
    if (shapes.emplace(p.kind, kinds.size()).second) kinds.push_back(p.kind);
  }
  const bool limited = page.capacity > 0 && std::isfinite(page.capacity) && page.capacity < 4 * largest;
  if (limited) largest = std::max(largest, page.capacity);
  std::vector<std::pair<std::string, std::string>> entries;
  for (auto& [group, hue] : hue_of) {
    hue = hues[entries.size() % hues.size()];
    entries.push_back({fmt::format("pipe {}", group), std::string(hue)});
  }
  const PlotAxis x{0.98 * fastest, std::max(slowest, 1.02 * fastest) * 1.01, 70, scatter_width - 40};
  const PlotAxis y{0, 1.06 * largest, scatter_height - 54, 26};
  std::string body = grid(x, y) + front_of(points, x, y);
  if (limited) {
    body += plot_line(x.from, y.at(page.capacity), x.to, y.at(page.capacity), "limit");
    body += plot_text(x.to, y.at(page.capacity) - 6, "memory of a rank", "end");
  }
  double from = x.from;  // of the next entry of the legend, which stands in the picture so that it can be shown alone
  for (const auto& [name, hue] : entries) {
    body += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"12\" height=\"12\" rx=\"2\" fill=\"{}\"/>", from,
                        y.from + 28, hue);
    body += plot_text(from + 18, y.from + 38, name);
    from += 84;
  }
  for (const PlanPoint& p : points)
    body += fmt::format("<path {} fill=\"{}\" fill-opacity=\"{}\" stroke=\"{}\"><title>{}</title></path>\n",
                        plot_mark(shapes[p.kind], x.at(p.seconds), y.at(p.bytes), p.compiled ? 6 : 4), hue_of[p.group],
                        p.compiled ? 0.95 : 0.3, hue_of[p.group], escape_xml(p.label));
  return "<h2>Time and memory of what was scored</h2>\n" + plot_svg(scatter_width, scatter_height, body) +
         plot_shapes(kinds) +
         "<p class=\"legend\">Large and filled: compiled and counted to the byte; pale: by the cost model alone. The "
         "line joins what nothing beats in both.</p>\n";
}

}  // namespace stretto
