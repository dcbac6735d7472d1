#include "stretto/view/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <unordered_map>

#include "stretto/view/document.h"
#include "stretto/view/escape.h"
#include "stretto/view/inner/compare.h"
#include "stretto/view/inner/page.h"
#include "stretto/view/inner/palette.h"

namespace stretto {
namespace {

std::string number(double v) { return std::isfinite(v) ? fmt::format("{:.9g}", v) : "0"; }

std::string title_of(const Timeline& t, std::size_t index) {
  return t.title.empty() ? fmt::format("timeline {}", index + 1) : t.title;
}

// Of a backward when its gradient leaves; of what waited for others in the midst of it how long: left out where there
// is neither.
std::string more_of(const Span& s, double origin) {
  if (!s.halfway && s.waiting <= 0) return "";
  return fmt::format(",{},{}", s.halfway ? number(*s.halfway - origin) : "null", number(s.waiting));
}

// The data of the page. Strings are kept once, in a table, and named by index: "stage 3" occurs thousands of times.
class Data {
 public:
  Data(std::span<const Timeline> timelines, Clock clock) {
    std::string bodies;
    for (std::size_t i = 0; i < timelines.size(); ++i)
      bodies += fmt::format("{}{}", i ? ",\n" : "", timeline(timelines[i], i));
    std::string styles, strings;
    for (const auto& [fill, ink] : styles_)
      styles += fmt::format("{}[\"{}\",\"{}\"]", styles.empty() ? "" : ",", hex(fill), hex(ink));
    for (const std::string& s : strings_) strings += fmt::format("{}{}", strings.empty() ? "" : ",", quoted_json(s));
    text = fmt::format("{{\"seconds\":{},\"styles\":[{}],\"strings\":[{}],\n\"timelines\":[{}]}}",
                       clock == Clock::seconds, styles, strings, bodies);
  }
  std::string text;

 private:
  int string(std::string s) {
    const auto [at, fresh] = string_index_.emplace(std::move(s), strings_.size());
    if (fresh) strings_.push_back(at->first);
    return at->second;
  }

  int style(const Bar& b, int chunks) {
    const Span& s = *b.span;
    const bool phase = s.action && s.lane == Lane::compute;
    const Rgb fill =
        phase ? colour(s.action->phase, b.chunk, chunks) : colour(s.lane == Lane::compute ? Lane::other : s.lane);
    for (std::size_t i = 0; i < styles_.size(); ++i)
      if (styles_[i].first == fill) return i;
    styles_.emplace_back(fill, ink_on(fill));
    return styles_.size() - 1;
  }

  std::string timeline(const Timeline& t, std::size_t index) {
    const Scene s = scene(t);
    std::string tracks, memory;
    for (const Track& track : s.tracks) {
      std::string bars;
      for (const Bar& b : track.bars) {
        const std::string microbatch = b.span->action ? fmt::to_string(b.span->action->microbatch.value) : "null";
        fmt::format_to(std::back_inserter(bars), "{}[{},{},{},{},{},{},{},{},{}{}]", bars.empty() ? "" : ",",
                       number(b.start), number(b.end), style(b, s.chunks), b.slot, b.slots, string(caption(*b.span)),
                       string(describe(*b.span, t.stages)), string(b.span->waited), microbatch,
                       more_of(*b.span, s.origin));
      }
      fmt::format_to(std::back_inserter(tracks),
                     "{}{{\"actor\":{},\"name\":{},\"stands\":{},\"lane\":{},\"slots\":{},\"bars\":[{}]}}",
                     tracks.empty() ? "" : ",\n", track.actor, quoted_json(row_name(t, track)),
                     stands_for_actor(s, track), int(track.lane), track.slots, bars);
    }
    for (int a = 0; a < t.actors; ++a) {
      std::string curve;
      if (a < std::ssize(t.memory))
        for (const auto& [time, amount] : t.memory[a])
          curve += fmt::format("{}[{},{}]", curve.empty() ? "" : ",", number(time - s.origin), number(amount));
      memory += fmt::format("{}[{}]", a ? "," : "", curve);
    }
    return fmt::format(
        "{{\"title\":{},\"actors\":{},\"ranks\":{},\"length\":{},\"unit\":{},\"memory\":[{}],\n\"tracks\":[{}]}}",
        quoted_json(title_of(t, index)), std::max(0, t.actors), t.ranks, number(s.length), quoted_json(t.memory_unit),
        memory, tracks);
  }

  std::vector<std::pair<Rgb, Rgb>> styles_;
  std::vector<std::string> strings_;
  std::unordered_map<std::string, int> string_index_;
};

std::string legend(std::span<const Timeline> timelines) {
  int chunks = 1;
  for (const Timeline& t : timelines) chunks = std::max(chunks, scene(t).chunks);
  std::string out = "<p class=\"legend\">";
  const auto item = [&](Rgb fill, std::string_view sign, std::string_view text) {
    out += fmt::format("<span><i style=\"background:{};color:{}\">{}</i>{}</span>", hex(fill), hex(ink_on(fill)), sign,
                       escape_xml(text));
  };
  const std::vector<Phase> phases = phases_of(timelines);
  for (const Phase p : phases) item(colour(p, 0, 1), std::string(1, letter(p)), name_of(p));
  if (chunks > 1 && chunks <= 8 && !phases.empty())
    for (int c = 0; c < chunks; ++c) item(colour(phases.front(), c, chunks), "", chunk_name(timelines, c));
  for (const Lane l : lanes_of(timelines)) item(colour(l), "", name_of(l));
  return out + "</p>\n";
}

std::string summary_table(std::span<const Timeline> timelines, Clock clock) {
  double best = std::numeric_limits<double>::infinity();
  for (const Timeline& t : timelines) best = std::min(best, t.makespan());
  std::string out = fmt::format(
      "<table><tr><th></th><th title=\"from the first start to the last end\">the step takes</th>{}"
      "<th title=\"from its first start to its last end\">rank that takes longest</th>"
      "<th title=\"the bubble: share of all ranks' time without work\">idle</th>"
      "<th title=\"of the actor that needs most\">most memory</th></tr>\n",
      timelines.size() > 1 ? "<th>longer than the best by</th>" : "");
  for (std::size_t i = 0; i < timelines.size(); ++i) {
    const Timeline& t = timelines[i];
    const std::string against =
        t.makespan() > best && best > 0 ? fmt::format("{:.1f}%", 100 * (t.makespan() / best - 1)) : "is the best";
    out +=
        fmt::format("<tr><th>{}</th><td>{}</td>{}<td>{}</td><td>{:.1f}%</td><td>{}</td></tr>\n",
                    escape_xml(title_of(t, i)), time_text(t.makespan(), clock),
                    timelines.size() > 1 ? fmt::format("<td>{}</td>", against) : "", time_text(t.span(), clock),
                    100 * t.bubble(), t.memory.empty() ? "" : escape_xml(memory_text(peak_memory(t), t.memory_unit)));
  }
  return out + "</table>\n";
}

std::string difference_table(const Timeline& a, const Timeline& b, std::size_t index, Clock clock) {
  std::string out = fmt::format(
      "<table><caption>{0} beside {1}: how long each kind of work takes</caption><tr><th></th><th>count</th><th>mean, "
      "{1}</th>"
      "<th>mean, {0}</th><th>difference</th><th>shortest</th><th>longest</th><th>all together, {1}</th>"
      "<th>all together, {0}</th></tr>\n",
      escape_xml(title_of(b, index)), escape_xml(title_of(a, 0)));
  for (const KindDifference& d : compare(a, b)) {
    const std::string counts =
        d.count == d.other_count ? fmt::format("{}", d.count) : fmt::format("{} / {}", d.count, d.other_count);
    const std::string least = d.other_count ? time_text(d.other_least, clock) : "";
    const std::string most = d.other_count ? time_text(d.other_most, clock) : "";
    out += fmt::format(
        "<tr><th>{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>"
        "<td>{}</td></tr>\n",
        escape_xml(d.kind), counts, d.count ? time_text(d.mean(), clock) : "",
        d.other_count ? time_text(d.other_mean(), clock) : "",
        d.count && d.other_count && d.total > 0 ? fmt::format("{:+.1f}%", d.percent()) : "", least, most,
        d.count ? time_text(d.total, clock) : "", d.other_count ? time_text(d.other_total, clock) : "");
  }
  return out + "</table>\n";
}

std::string heading(std::span<const Timeline> timelines) {
  std::string text;
  for (std::size_t i = 0; i < timelines.size(); ++i)
    text += fmt::format("{}{}", i ? " · " : "", title_of(timelines[i], i));
  return text.empty() ? "timelines" : text;
}

}  // namespace

std::string html(std::span<const Timeline> timelines, const HtmlOptions& o) {
  const std::string title = o.title.empty() ? heading(timelines) : o.title;
  std::string body = fmt::format("<header><h1>{}</h1>\n", escape_xml(title));
  body += summary_table(timelines, o.clock) + legend(timelines) +
          "<p class=\"controls\"><button id=\"in\">zoom in</button><button id=\"out\">zoom out</button>"
          "<button id=\"fit\">fit</button><label><input type=\"checkbox\" id=\"memory\" checked>memory</label>"
          "<label><input type=\"checkbox\" id=\"lanes\" checked>messages and collectives</label>"
          "<label><input type=\"checkbox\" id=\"ranks\">every rank (else of each actor the busiest)</label>"
          "<span class=\"hint\">ctrl + wheel zooms, dragging moves, dragging along the time axis selects, a click "
          "follows one microbatch; keys: w s a d 0</span></p>\n</header>\n"
          "<main><canvas id=\"axis\"></canvas><div id=\"charts\"></div></main>\n<div id=\"tip\" hidden></div>\n"
          "<noscript><p>The charts need JavaScript.</p></noscript>\n";
  if (timelines.size() > 1) {
    body += "<section class=\"differences\">\n";
    for (std::size_t i = 1; i < timelines.size(); ++i) body += difference_table(timelines[0], timelines[i], i, o.clock);
    body += "</section>\n";
  }
  body += "<script type=\"application/json\" id=\"data\">" + Data(timelines, o.clock).text + "</script>\n";
  return html_document({.title = title, .css = {page_style}, .body = body, .script = page_script});
}

std::string html(const Timeline& t, const HtmlOptions& o) { return html(std::span<const Timeline>(&t, 1), o); }

}  // namespace stretto
