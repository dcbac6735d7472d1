// Curves on common axes, as SVG inside of a page. Without a script it is a picture; with chart_script at the end of the
// page the pointer shows the values. Colours are the page's (document.h).
//
//   page += curve_chart({.title = "loss", .series = {{"training", points}, {"validation", few, .dots = true}}});
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace stretto {

struct ChartPoint {
  double x = 0, y = 0;
};

struct ChartSeries {
  std::string name;
  std::vector<ChartPoint> points;  // by rising x; those that are not finite are left out
  bool dots = false;               // few points, each of which is to be seen
};

struct CurveChart {
  std::string title;
  std::string across = "step";  // what x is
  std::vector<ChartSeries> series;
  bool from_zero = false;
};

std::string curve_chart(const CurveChart&);  // "" when there is no point
extern const std::string_view chart_style, chart_script;

}  // namespace stretto
