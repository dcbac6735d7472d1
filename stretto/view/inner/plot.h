// Pieces of the pictures on pages: axes, marks, text. Classes are styled by plot_style.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stretto {

// A linear axis from a value `least` at the pixel `from` to `most` at `to`, with round steps.
struct PlotAxis {
  double least = 0, most = 1, from = 0, to = 1;
  int parts = 6;  // at most so many steps
  double at(double x) const { return from + (x - least) / (most - least) * (to - from); }
  double step() const;
  std::vector<double> ticks() const;
};

std::string plot_text(double x, double y, std::string_view text, std::string_view anchor = "start",
                      std::string_view kind = "");
std::string plot_line(double x1, double y1, double x2, double y2, std::string_view kind);
std::string plot_svg(double width, double height, const std::string& body);
extern const std::string_view plot_style;
std::string plot_seconds(double);  // with so many digits that neighbours differ

// A shape around a point, one per index; there are about a dozen.
std::string plot_mark(std::size_t shape, double x, double y, double radius);  // attributes of a path

std::string plot_legend(const std::vector<std::pair<std::string, std::string>>& names_and_hues);
std::string plot_shapes(const std::vector<std::string>& names);  // a legend of marks, in their order

}  // namespace stretto
