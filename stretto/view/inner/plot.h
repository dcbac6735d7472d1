// Pieces of the pictures on a plan's page: axes, marks, text.
#pragma once
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stretto {

constexpr std::array<std::string_view, 12> plot_hues{"#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9",
                                                     "#7a5195", "#6b7280", "#8c6d31", "#2f4b7c", "#a3b18a", "#b0b7c3"};

// A linear axis with round steps.
struct PlotAxis {
  double least = 0, most = 1, from = 0, to = 1;
  double at(double x) const { return from + (x - least) / (most - least) * (to - from); }
  double step() const;
  std::vector<double> ticks() const;
};

std::string plot_text(double x, double y, std::string_view text, std::string_view anchor = "start",
                      std::string_view kind = "");
std::string plot_line(double x1, double y1, double x2, double y2, std::string_view kind);
std::string plot_svg(double width, double height, const std::string& body);
std::string plot_seconds(double);  // with so many digits that neighbours differ

// A shape around a point, one per index; there are about a dozen.
std::string plot_mark(std::size_t shape, double x, double y, double radius);  // attributes of a path

std::string plot_legend(const std::vector<std::pair<std::string, std::string>>& names_and_hues);
std::string plot_shapes(const std::vector<std::string>& names);  // a legend of marks, in their order

}  // namespace stretto
