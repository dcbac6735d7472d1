#include "stretto/train/routing.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "stretto/models/experts.h"
#include "stretto/view/escape.h"

namespace stretto {
namespace {

constexpr std::size_t most_shown = 128;  // experts of a row

// "h.3" of "h.3.load".
std::optional<std::string> layer_of(const std::string& name, std::string_view metric) {
  const std::string ending = fmt::format(".{}", metric);
  if (!name.ends_with(ending)) return std::nullopt;
  return name.substr(0, name.size() - ending.size());
}

double total(const std::vector<double>& load) { return std::accumulate(load.begin(), load.end(), 0.0); }

}  // namespace

std::optional<RoutedStep> routed(const StepResult& r) {
  RoutedStep step;
  double choices = 0, taken = 0;
  bool slots = false;
  for (const auto& [name, load] : r.lists) {
    const auto layer = layer_of(name, load_metric);
    if (!layer || load.empty() || total(load) <= 0) continue;
    step.load[*layer] = load;
    step.imbalance =
        std::max(step.imbalance, *std::max_element(load.begin(), load.end()) * double(load.size()) / total(load));
    if (const auto got = r.metrics.find(fmt::format("{}.{}", *layer, taken_metric)); got != r.metrics.end()) {
      slots = true;
      taken += got->second;
      choices += total(load);
    }
  }
  if (step.load.empty()) return std::nullopt;
  if (slots) step.dropped = 1 - taken / choices;
  return step;
}

std::string load_table(const RoutedStep& r) {
  std::string out = "<table class=\"loads\">\n";
  for (const auto& [layer, load] : r.load) {
    const double mean = total(load) / double(load.size());
    out += fmt::format("<tr><th>{}</th>", escape_xml(layer));
    for (std::size_t e = 0; e < std::min(load.size(), most_shown); ++e)
      out +=
          fmt::format("<td style=\"opacity:{:.2f}\" title=\"{}, expert {}: {:.0f} tokens, {:.2f} of the mean\"></td>",
                      std::clamp(0.5 * load[e] / mean, 0.03, 1.0), escape_xml(layer), e, load[e], load[e] / mean);
    out +=
        load.size() > most_shown ? fmt::format("<td class=\"more\">… {} experts</td></tr>\n", load.size()) : "</tr>\n";
  }
  return out + "</table>\n";
}

}  // namespace stretto
