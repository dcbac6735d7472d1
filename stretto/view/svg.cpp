#include "stretto/view/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <tuple>

#include "stretto/view/escape.h"
#include "stretto/view/inner/palette.h"

namespace stretto {
namespace {

constexpr double bar_height = 24, row_gap = 3, strip_height = 7, memory_height = 26, legend_height = 26,
                 title_height = 26, axis_height = 22, page_margin = 14;
constexpr double label_size = 11;

// Two decimals are enough for a pixel; trailing zeros only make the file longer.
std::string px(double v) {
  std::string s = fmt::format("{:.2f}", v);
  s.erase(s.find_last_not_of('0') + 1);
  if (s.back() == '.') s.pop_back();
  return s == "-0" ? "0" : s;
}

double text_width(std::string_view s, double size) { return 0.6 * size * s.size(); }

std::string fill_class(const Bar& b) {
  if (b.span->action && b.span->lane == Lane::compute)
    return fmt::format("{}{}", letter(b.span->action->phase), b.chunk);
  switch (b.span->lane) {
    case Lane::message:
      return "msg";
    case Lane::collective:
      return "col";
    default:
      return "oth";
  }
}

// Work that is nothing but waiting for others can hardly be seen.
std::string paler(const Span& s) {
  const double share = waiting_share(s);
  return share > 0.02 ? fmt::format(" fill-opacity=\"{:.2g}\"", 1 - 0.75 * share) : "";
}

class Picture {
 public:
  Picture(std::span<const Timeline> timelines, const SvgOptions& o) : timelines_(timelines), options_(o) {
    double shortest = 0;
    std::size_t longest = 7;  // the name of a row
    for (const Timeline& t : timelines) {
      scenes_.push_back(scene(t));
      length_ = std::max(length_, scenes_.back().length);
      chunks_ = std::max(chunks_, scenes_.back().chunks);
      if (Scene& s = scenes_.back(); folds(t))
        std::erase_if(s.tracks, [&](auto& k) { return !stands_for_actor(s, k); });
      for (const Track& track : scenes_.back().tracks) longest = std::max(longest, row_name(t, track).size());
      const double s = scenes_.back().shortest;
      if (s > 0 && (shortest == 0 || s < shortest)) shortest = s;
      for (const Span& span : t.spans)
        if (span.action) digits_ = std::max(digits_, caption(span).size());
    }
    left_ = page_margin + text_width(std::string(longest, '0'), 12) + 6;
    right_ = page_margin + 100;
    double chart = 800;
    if (shortest > 0 && length_ > 0) {
      const double readable = std::max(13.0, text_width(std::string(digits_, '0'), 9) + 3);
      chart = std::clamp(length_ / shortest * 24, 640.0, 1040.0);
      chart = std::max(chart, std::min(length_ / shortest * readable, 4000.0));
    }
    if (o.width > 0) chart = std::max(50.0, o.width - left_ - right_);
    scale_ = length_ > 0 ? chart / length_ : 0;
    width_ = left_ + chart + right_;
  }

  std::string str() {
    double y = page_margin;
    y = legend(y);
    for (std::size_t i = 0; i < scenes_.size(); ++i) y = panel(scenes_[i], y);
    y += page_margin / 2;
    return fmt::format(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
               "font-family=\"system-ui, 'DejaVu Sans', Helvetica, Arial, sans-serif\" font-size=\"12\" "
               "role=\"img\">\n",
               px(std::ceil(width_)), px(std::ceil(y))) +
           style() + fmt::format("<rect class=\"bg\" width=\"100%\" height=\"100%\" rx=\"6\"/>\n") + body_ + "</svg>\n";
  }

 private:
  template <class... A>
  void add(fmt::format_string<A...> f, A&&... a) {
    fmt::format_to(std::back_inserter(body_), f, std::forward<A>(a)...);
  }

  double x(double t) const { return left_ + t * scale_; }

  std::string style() const {
    std::string s =
        "<style>\n.grid,.mem,.half{stroke-width:1}.t{font-weight:600;font-size:14px}.s{font-size:11px}"
        ".e{text-anchor:end}.m{text-anchor:middle}.l{text-anchor:middle;font-size:11px}"
        ".w{fill:#fff}.k{fill:#000}.half{stroke:#fff;stroke-opacity:.55}.end{stroke-dasharray:3 3}\n" +
        theme_rules({{".bg", "fill", "bg"},
                     {".row", "fill", "row"},
                     {".grid", "stroke", "line"},
                     {".t", "fill", "fg"},
                     {".n", "fill", "label"},
                     {".s", "fill", "soft"},
                     {".mem", "fill", "memory"},
                     {".mem", "stroke", "edge"},
                     {".end", "stroke", "soft"}});
    for (const Phase p : phases_of(timelines_))
      for (int c = 0; c < chunks_; ++c) s += fmt::format(".{}{}{{fill:{}}}", letter(p), c, hex(colour(p, c, chunks_)));
    for (const Lane l : lanes_of(timelines_))
      s += fmt::format(".{}{{fill:{}}}",
                       l == Lane::message      ? "msg"
                       : l == Lane::collective ? "col"
                                               : "oth",
                       hex(colour(l)));
    return s + "\n</style>\n";
  }

  double legend(double y) {
    double at = left_;
    const auto item = [&](std::string_view cls, std::string_view text) {
      const double w = 22 + text_width(text, 11) + 8;
      if (at > left_ && at + w > width_ - page_margin) return;
      add("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"14\" height=\"12\" rx=\"2\"/>", cls, px(at), px(y + 1));
      add("<text class=\"s\" x=\"{}\" y=\"{}\">{}</text>\n", px(at + 19), px(y + 11), escape_xml(text));
      at += w;
    };
    const std::vector<Phase> phases = phases_of(timelines_);
    for (const Phase p : phases) item(fmt::format("{}0", letter(p)), fmt::format("{} {}", letter(p), name_of(p)));
    if (chunks_ > 1 && chunks_ <= 4 && !phases.empty())
      for (int c = 0; c < chunks_; ++c) item(fmt::format("{}{}", letter(phases.front()), c), chunk_name(timelines_, c));
    for (const Lane l : lanes_of(timelines_))
      item(l == Lane::message ? "msg" : l == Lane::collective ? "col" : "oth", name_of(l));
    item("row", "idle");
    return y + legend_height;
  }

  double panel(const Scene& s, double y) {
    const Timeline& t = *s.timeline;
    const std::string title = t.title.empty() ? "timeline" : t.title;
    add("<text class=\"t\" x=\"{}\" y=\"{}\">{}</text>", px(left_), px(y + 14), escape_xml(title));
    add("<text class=\"s\" x=\"{}\" y=\"{}\">{}</text>\n", px(left_ + text_width(title, 14) * 1.08 + 14), px(y + 14),
        escape_xml(summary(t, options_.clock) + folded_text(t)));
    add("<text class=\"s e\" x=\"{}\" y=\"{}\">busy</text>", px(width_ - right_ + 46), px(y + 14));
    if (!t.memory.empty())
      add("<text class=\"s e\" x=\"{}\" y=\"{}\">peak</text>\n", px(width_ - page_margin), px(y + 14));
    y += title_height;

    double height = 0;
    for (std::size_t i = 0; i < s.tracks.size(); ++i) height += advance(s, i);
    const double step = tick_step(length_, std::max<int>(2, length_ * scale_ / 60));
    for (int k = 0; k * step <= length_ * (1 + 1e-9); ++k) {
      if (length_ <= 0) break;
      add("<path class=\"grid\" d=\"M{} {}v{}\"/>", px(x(k * step)), px(y - 3), px(height + 6));
      add("<text class=\"s m\" x=\"{}\" y=\"{}\">{}</text>\n", px(x(k * step)), px(y + height + 16),
          time_text(k * step, options_.clock));
    }
    if (scenes_.size() > 1) add("<path class=\"end\" d=\"M{} {}v{}\"/>\n", px(x(s.length)), px(y - 3), px(height + 6));
    for (std::size_t i = 0; i < s.tracks.size(); ++i) {
      const Track& track = s.tracks[i];
      draw(track, s, y);
      y += advance(s, i);
      if (last_of_actor(s, i)) memory(t, s, track.actor, y - 2 * row_gap - memory_height);
    }
    return y + axis_height + row_gap;
  }

  static bool last_of_actor(const Scene& s, std::size_t i) {
    return i + 1 == s.tracks.size() || s.tracks[i + 1].actor != s.tracks[i].actor;
  }

  static double height_of(const Track& track) {
    return track.lane != Lane::compute ? strip_height : (track.slots > 1 ? 1.5 : 1) * bar_height;
  }

  // From the top of one track to the top of the next.
  double advance(const Scene& s, std::size_t i) const {
    const double below = last_of_actor(s, i) ? row_gap + (options_.memory ? memory_height + row_gap : 0) : 0;
    return height_of(s.tracks[i]) + 2 + below;
  }

  void draw(const Track& track, const Scene& s, double y) {
    const Timeline& t = *s.timeline;
    const bool main = track.lane == Lane::compute;
    const double height = height_of(track);
    if (main) {
      add("<text class=\"n e\" x=\"{}\" y=\"{}\">{}</text>", px(left_ - 8), px(y + height / 2 + 4), row_name(t, track));
      add("<text class=\"s e\" x=\"{}\" y=\"{}\">{:.0f}%</text>", px(width_ - right_ + 46), px(y + height / 2 + 4),
          100 * (1 - s.bubble(track)));
      if (track.actor < std::ssize(t.memory) && (folds(t) || track.coordinate == 0))
        add("<text class=\"s e\" x=\"{}\" y=\"{}\">{}</text>", px(width_ - page_margin), px(y + height / 2 + 4),
            escape_xml(t.memory_unit == "bytes" ? memory_text(t.peak(track.actor), t.memory_unit)
                                                : fmt::format("{:.4g}", t.peak(track.actor))));
      add("\n<rect class=\"row\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n", px(x(0)), px(y),
          px(s.length * scale_), px(height));
    }
    std::map<std::tuple<int, int, int, std::string, std::string>, Thin> thin;  // by pixel, slot and colour
    for (const Bar& b : track.bars) {
      // Half a pixel between neighbours keeps them apart without a stroke, which would swallow narrow bars.
      const double full = (b.end - b.start) * scale_, gap = std::min(1.0, full / 6);
      const double h = height / b.slots, top = y + h * b.slot, w = full - gap, from = x(b.start);
      const double tall = h - (b.slots > 1 ? 0.5 : 0);
      if (full < 1) {
        Thin& t = thin.try_emplace({int(from), b.slot, b.slots, fill_class(b), paler(*b.span)}, Thin{from, top, tall})
                      .first->second;
        t.width += w;
        continue;
      }
      bar(fill_class(b), from, top, w, tall, (w > 6 && main ? " rx=\"2\"" : "") + paler(*b.span));
      if (const auto& half = b.span->halfway; main && half && *half > b.span->start && *half < b.span->end)
        add("<path class=\"half\" d=\"M{} {}v{}\"/>", px(x(*half - s.origin)), px(top), px(h));
      if (main) label(b, s, from + w / 2, top, w, h);
    }
    for (const auto& [key, t] : thin)
      bar(std::get<3>(key), t.from, t.top, std::max(t.width, 0.3), t.height, std::get<4>(key));
    add("\n");
  }

  // Bars of one colour that are narrower than a pixel are one within it, as wide as all of them: there may be very
  // many.
  struct Thin {
    double from = 0, top = 0, height = 0, width = 0;
  };
  void bar(std::string_view kind, double from, double top, double w, double h, std::string_view more) {
    add("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{}/>", kind, px(from), px(top), px(w), px(h),
        more);
  }

  void label(const Bar& b, const Scene&, double centre, double top, double w, double h) {
    const std::string text = caption(*b.span);
    const double letters = b.span->action ? digits_ : std::max<std::size_t>(text.size(), 1);
    const double size = std::min({label_size, h - 2, (w - 1.5) / (0.62 * letters)});
    if (text.empty() || size < 6) return;
    const Rgb fill = b.span->action ? colour(b.span->action->phase, b.chunk, chunks_) : colour(Lane::other);
    // On what is hardly filled the page's own ink.
    const char* ink = waiting_share(*b.span) >= 0.5 ? "n" : ink_on(fill) == Rgb{255, 255, 255} ? "w" : "k";
    add("<text class=\"l {}\" x=\"{}\" y=\"{}\"{}>{}</text>", ink, px(centre), px(top + h / 2 + size * 0.36),
        size < label_size ? fmt::format(" style=\"font-size:{}px\"", px(size)) : "", escape_xml(text));
  }

  void memory(const Timeline& t, const Scene& s, int actor, double y) {
    if (!options_.memory || actor >= std::ssize(t.memory) || t.memory[actor].empty()) return;
    double most = 0;
    for (const Scene& other : scenes_) most = std::max(most, peak_memory(*other.timeline));
    if (!(most > 0)) return;
    std::string d = fmt::format("M{} {}", px(x(0)), px(y + memory_height));
    for (std::size_t i = 0; i < t.memory[actor].size(); ++i) {
      const auto& [time, amount] = t.memory[actor][i];
      // Only the last of several changes at one time can be seen.
      if (i + 1 < t.memory[actor].size() && t.memory[actor][i + 1].first <= time) continue;
      d += fmt::format("H{}V{}", px(x(std::clamp(time - s.origin, 0.0, s.length))),
                       px(y + memory_height - amount / most * (memory_height - 2)));
    }
    d += fmt::format("H{}V{}Z", px(x(s.length)), px(y + memory_height));
    add("<path class=\"mem\" d=\"{}\"/>\n", d);
  }

  std::span<const Timeline> timelines_;
  const SvgOptions& options_;
  std::vector<Scene> scenes_;
  double length_ = 0, scale_ = 0, left_ = 0, right_ = 0, width_ = 0;
  int chunks_ = 1;
  std::size_t digits_ = 1;  // of the longest microbatch number: all are written in one size
  std::string body_;
};

}  // namespace

std::string svg(std::span<const Timeline> timelines, const SvgOptions& o) { return Picture(timelines, o).str(); }
std::string svg(const Timeline& t, const SvgOptions& o) { return svg(std::span<const Timeline>(&t, 1), o); }

}  // namespace stretto
