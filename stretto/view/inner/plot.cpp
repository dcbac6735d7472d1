#include "stretto/view/inner/plot.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "stretto/view/escape.h"
#include "stretto/view/scene.h"

namespace stretto {
namespace {

// A polygon, or a star whose inner corners lie at `inner` of its radius; without corners a circle.
struct Shape {
  int corners;
  double inner, degrees;
};
constexpr Shape shapes[] = {{0, 1, 0}, {4, 1, 45},  {3, 1, -90}, {4, 1, 0},    {3, 1, 90}, {5, 1, -90},  {5, .45, -90},
                            {3, 1, 0}, {3, 1, 180}, {4, .35, 0}, {4, .35, 45}, {6, 1, 0},  {3, .3, -90}, {6, .5, 0}};

}  // namespace

const std::string_view plot_style = R"css(
.plot { max-width: 100%; height: auto; }
.scroll { overflow-x: auto; }
.plot text { font: 12px system-ui, "DejaVu Sans", sans-serif; fill: var(--fg); }
.plot text.soft { fill: var(--soft); }
.plot .grid { stroke: var(--faint); }
.plot .ink { stroke: var(--fg); }
.plot .limit { stroke: #e0445a; stroke-dasharray: 6 4; }
.mark { fill: var(--soft); }
p.legend { margin: 6px 0; display: flex; flex-wrap: wrap; gap: 4px 16px; }
p.legend i { display: inline-block; width: 12px; height: 12px; border-radius: 2px; margin-right: 6px; }
)css";

double PlotAxis::step() const { return tick_step(most - least, parts); }

std::vector<double> PlotAxis::ticks() const {
  std::vector<double> all;
  const double s = step();
  for (double k = std::ceil(least / s - 1e-9); k * s <= most + 1e-6 * s && all.size() < 100; ++k) all.push_back(k * s);
  return all;
}

std::string plot_text(double x, double y, std::string_view text, std::string_view anchor, std::string_view kind) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" class=\"{}\">{}</text>\n", x, y, anchor, kind,
                     escape_xml(text));
}

std::string plot_line(double x1, double y1, double x2, double y2, std::string_view kind) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n", x1, y1, x2, y2,
                     kind);
}

std::string plot_svg(double width, double height, const std::string& body) {
  return fmt::format(
      "<div class=\"scroll\"><svg class=\"plot\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "style=\"min-width:{2:.0f}px\">\n{3}</svg></div>\n",
      width, height, 0.8 * width, body);
}

std::string plot_seconds(double s) {
  if (s == 0) return "0";
  return s >= 1      ? fmt::format("{:.4g} s", s)
         : s >= 1e-3 ? fmt::format("{:.4g} ms", 1e3 * s)
                     : fmt::format("{:.4g} us", 1e6 * s);
}

std::string plot_mark(std::size_t shape, double x, double y, double radius) {
  const auto& [corners, inner, degrees] = shapes[shape % std::size(shapes)];
  if (corners == 0)
    return fmt::format("d=\"M{0:.1f} {1:.1f}a{2:.1f} {2:.1f} 0 1 0 {3:.1f} 0a{2:.1f} {2:.1f} 0 1 0 -{3:.1f} 0z\"",
                       x - radius, y, radius, 2 * radius);
  std::string path;
  const int points = inner < 1 ? 2 * corners : corners;
  for (int i = 0; i < points; ++i) {
    const double angle = (degrees + 360.0 * i / points) * std::numbers::pi / 180;
    const double r = 1.2 * radius * (inner < 1 && i % 2 == 1 ? inner : 1);
    path += fmt::format("{}{:.1f} {:.1f}", i == 0 ? "M" : "L", x + r * std::cos(angle), y + r * std::sin(angle));
  }
  return fmt::format("d=\"{}z\"", path);
}

std::string plot_legend(const std::vector<std::pair<std::string, std::string>>& names_and_hues) {
  std::string out = "<p class=\"legend\">";
  for (const auto& [name, hue] : names_and_hues)
    out += fmt::format("<span><i style=\"background:{}\"></i>{}</span>", hue, escape_xml(name));
  return out + "</p>\n";
}

std::string plot_shapes(const std::vector<std::string>& names) {
  std::string out = "<p class=\"legend\">";
  for (std::size_t i = 0; i < names.size(); ++i)
    out += fmt::format("<span><svg width=\"18\" height=\"14\"><path {} class=\"mark\"/></svg>{}</span>",
                       plot_mark(i, 7, 7, 5), escape_xml(names[i]));
  return out + "</p>\n";
}

}  // namespace stretto
