#include "stretto/view/text.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <string_view>

#include "stretto/view/inner/palette.h"

namespace stretto {
namespace {

using Colour = TextOptions::Colour;

// What one character cell shows: two half columns for colours, and a character on top once something is written.
struct Glyph {
  std::optional<Rgb> left, right;
  std::string character = {};
  Rgb ink = {};
};

class Line {
 public:
  Line(int columns, Colour mode) : glyphs_(columns), mode_(mode) {}

  Glyph& operator[](int column) { return glyphs_[column]; }

  std::string str() const {
    std::string out, style;
    const auto set = [&](std::string next) {
      if (next == style) return;
      out += next.empty() ? "\x1b[0m" : (style.empty() ? "" : "\x1b[0m") + next;
      style = std::move(next);
    };
    for (const Glyph& g : glyphs_) {
      if (mode_ == Colour::none) {
        out += g.character.empty() ? " " : g.character;
      } else if (!g.character.empty()) {
        set(g.left ? code(48, *g.left) + code(38, g.ink) : "");
        out += g.character;
      } else if (g.left == g.right) {
        set(g.left ? code(48, *g.left) : "");
        out += ' ';
      } else if (g.left) {
        set(code(38, *g.left) + (g.right ? code(48, *g.right) : ""));
        out += "▌";
      } else {
        set(code(38, *g.right));
        out += "▐";
      }
    }
    set("");
    return out;
  }

 private:
  std::string code(int layer, Rgb c) const {
    return mode_ == Colour::rgb ? fmt::format("\x1b[{};2;{};{};{}m", layer, c.r, c.g, c.b)
                                : fmt::format("\x1b[{};5;{}m", layer, xterm256(c));
  }
  std::vector<Glyph> glyphs_;
  Colour mode_;
};

std::vector<std::string> characters(std::string_view text) {  // UTF-8, one code point each
  std::vector<std::string> out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0) == 0x80 && !out.empty())
      out.back() += c;
    else
      out.emplace_back(1, byte < 0x20 || byte == 0x7f ? ' ' : c);
  }
  return out;
}

std::string fit(std::string_view text, int columns) {
  const std::vector<std::string> all = characters(text);
  std::string out;
  for (int i = 0; i < std::min<int>(columns, all.size()); ++i) out += all[i];
  return out;
}

Rgb colour_of(const Bar& b, int chunks) {
  if (b.span->action && b.span->lane == Lane::compute) return colour(b.span->action->phase, b.chunk, chunks);
  return colour(b.span->lane == Lane::compute ? Lane::other : b.span->lane);
}

// Neighbours of one kind need an edge between them: every second microbatch is a little darker.
Rgb shade(const Bar& b, int chunks) {
  const Rgb c = colour_of(b, chunks);
  return b.span->action && (b.span->action->microbatch.value + b.span->action->segment) % 2 ? mix(c, {0, 0, 0}, 0.07)
                                                                                            : c;
}

char symbol(const Span& s) {
  if (s.action && s.lane == Lane::compute) return letter(s.action->phase);
  return s.lane == Lane::message ? '>' : s.lane == Lane::collective ? '=' : '*';
}

// Which times to draw, and how many columns one unit of time gets.
struct Scale {
  int columns = 1;
  double per_time = 0;
  double panel = 0;      // time that fits on one line
  bool numbered = true;  // where most bars have no room for a number, the few that have would only confuse
};

Scale scale_for(const Scene& scene, int columns, bool fold) {
  std::vector<double> lengths;
  std::size_t widest = 2;
  bool regular = scene.shortest > 0;  // all bars are multiples of the shortest
  for (const Track& t : scene.tracks)
    for (const Bar& b : t.bars) {
      if (t.lane != Lane::compute || !b.span->action) continue;
      lengths.push_back(b.end - b.start);
      const double times = regular ? lengths.back() / scene.shortest : 0;
      regular = regular && std::abs(times - std::round(times)) < 1e-6;
      widest = std::max(widest, caption(*b.span).size() + 1);
    }
  Scale s{.columns = columns, .panel = scene.length};
  if (!(scene.length > 0) || lengths.empty()) return s;
  std::nth_element(lengths.begin(), lengths.begin() + lengths.size() / 2, lengths.end());
  const double usual = regular ? scene.shortest : lengths[lengths.size() / 2];
  s.per_time = columns / scene.length;
  if (fold && usual * s.per_time < widest && usual > 0) {
    s.columns = std::max<int>(1, columns / widest) * widest;
    s.per_time = std::min(widest / usual, 100.0 * s.columns / scene.length);
    s.panel = s.columns / s.per_time;
  } else if (regular) {
    // Whole columns for the shortest bar, where there is room: then equal times look equal.
    const double whole = std::floor(s.per_time * scene.shortest * (1 + 1e-9));
    if (whole >= 1) s.per_time = whole / scene.shortest;
    s.columns = std::clamp<int>(std::ceil(s.per_time * scene.length - 1e-6), 1, columns);
  }
  s.numbered = lengths[lengths.size() / 2] * s.per_time > 1.5;
  return s;
}

// One line per actor (and lane) of the times from `from` on.
class Chart {
 public:
  Chart(const Scene& scene, const Scale& scale, double from, const TextOptions& o)
      : scene_(scene),
        options_(o),
        columns_(scale.columns),
        from_(from),
        to_(std::min(scene.length, from + scale.panel)),
        per_time_(scale.per_time),
        numbered_(scale.numbered) {}

  std::string axis() const {
    std::string line(columns_, ' ');
    const double step = tick_step(columns_ / std::max(per_time_, 1e-300), std::max(1, columns_ / 8));
    for (std::int64_t k = std::llround(std::ceil(from_ / step - 1e-9)); to_ > from_; ++k) {
      const int at = column(k * step);
      const std::string text = time_text(k * step, options_.clock);
      if (at + std::ssize(text) > columns_ || k * step > to_ * (1 + 1e-9)) break;
      if (at > 0 && line[at - 1] != ' ') continue;
      line.replace(at, text.size(), text);
    }
    return line.substr(0, line.find_last_not_of(' ') + 1);
  }

  std::vector<std::string> draw(const Track& track) const {
    std::vector<Line> lines(std::clamp(track.slots, 1, 4), Line(columns_, options_.colour));
    for (int l = 0; l < std::ssize(lines); ++l) {
      if (numbered_)
        paint(track, l, int(lines.size()), lines[l]);
      else if (options_.colour == Colour::none)
        count(track, l, int(lines.size()), lines[l]);
      else
        blend(track, l, int(lines.size()), lines[l]);
      for (const Bar& b : track.bars)
        if (top(b, int(lines.size())) == l && (numbered_ || !b.span->action)) write(b, lines[l]);
    }
    std::vector<std::string> out;
    for (const Line& l : lines) out.push_back(l.str());
    return out;
  }

 private:
  static int top(const Bar& b, int lines) { return b.slots == 1 ? 0 : std::min(b.slot, lines - 1); }

  int column(double t) const { return std::lround(std::clamp((t - from_) * per_time_, -1.0, columns_ + 1.0)); }

  // Calls f(bar, half column, covered share of it) for the bars of one line.
  template <class Function>
  void for_halves(const Track& track, int line, int lines, Function f) const {
    for (const Bar& b : track.bars) {
      if (b.slots > 1 && top(b, lines) != line) continue;
      const double from = 2 * (b.start - from_) * per_time_, to = 2 * (b.end - from_) * per_time_;
      if (to <= 0 || from >= 2 * columns_) continue;
      for (int h = std::max<int>(0, from); h < std::min<int>(2 * columns_, std::ceil(to)); ++h)
        f(b, h, std::min<double>(to, h + 1) - std::max<double>(from, h));
    }
  }

  // Every half column shows what covers most of it.
  void paint(const Track& track, int line_index, int lines, Line& line) const {
    std::vector<double> best(columns_ * 2, 0.25);
    for_halves(track, line_index, lines, [&](const Bar& b, int h, double covered) {
      if (covered <= best[h]) return;
      best[h] = covered;
      Glyph& g = line[h / 2];
      (h % 2 ? g.right : g.left) = shade(b, scene_.chunks);
      // Below the numbered line of a bar that takes several lines stands nothing but its body.
      const bool body = numbered_ && b.slots == 1 && line_index > 0;
      if (options_.colour == Colour::none) g.character = body ? '-' : symbol(*b.span);
    });
  }

  // Bars narrower than half a column: the mean of their colours, since picking one of them would draw stripes of its
  // own.
  void blend(const Track& track, int line_index, int lines, Line& line) const {
    std::vector<std::array<double, 4>> sums(columns_ * 2);
    for_halves(track, line_index, lines, [&](const Bar& b, int h, double covered) {
      const Rgb c = colour_of(b, scene_.chunks);
      const double part[] = {double(c.r) * c.r, double(c.g) * c.g, double(c.b) * c.b, 1};
      for (int k = 0; k < 4; ++k) sums[h][k] += covered * part[k];
    });
    for (int h = 0; h < 2 * columns_; ++h) {
      if (sums[h][3] < 0.25) continue;
      const auto mean = [&](int k) { return std::uint8_t(std::lround(std::sqrt(sums[h][k] / sums[h][3]))); };
      (h % 2 ? line[h / 2].right : line[h / 2].left) = Rgb{mean(0), mean(1), mean(2)};
    }
  }

  // Without colour: the letter of the kind that has most of the column.
  void count(const Track& track, int line_index, int lines, Line& line) const {
    std::vector<std::map<char, double>> sums(columns_);
    for_halves(track, line_index, lines,
               [&](const Bar& b, int h, double covered) { sums[h / 2][symbol(*b.span)] += covered / 2; });
    for (int c = 0; c < columns_; ++c) {
      double busy = 0;
      char most = ' ';
      for (const auto& [sign, share] : sums[c]) {
        busy += share;
        if (most == ' ' || share > sums[c][most]) most = sign;
      }
      if (busy >= 0.25) line[c].character = most;
    }
  }

  void write(const Bar& b, Line& line) const {
    const int from = std::max(0, column(b.start)), to = std::min(columns_, column(b.end));
    const bool compute = b.span->action && b.span->lane == Lane::compute;
    const std::string number = caption(*b.span);
    const std::string full = compute ? letter(b.span->action->phase) + number : number;
    const bool plain = options_.colour == Colour::none;
    std::vector<std::string> text = characters(full);
    // In colour the hue already says the phase, so the number alone will do.
    if (!plain && std::ssize(text) > to - from) text = characters(number);
    if (text.empty() || std::ssize(text) > to - from) return;
    const Rgb fill = shade(b, scene_.chunks), ink = ink_on(colour_of(b, scene_.chunks));
    for (int c = from; c < to; ++c) line[c] = {fill, fill, plain ? "-" : "", ink};
    const int start = plain ? from : from + (to - from - std::ssize(text)) / 2;
    for (std::size_t i = 0; i < text.size(); ++i) line[start + i].character = text[i];
  }

  const Scene& scene_;
  const TextOptions& options_;
  int columns_;
  double from_, to_, per_time_;
  bool numbered_;
};

std::string legend(const Timeline& t, int chunks, const TextOptions& o) {
  std::string out;
  int used = 0;
  const auto add = [&](std::string_view sign, std::string_view text, Rgb c) {
    const int length = sign.size() + text.size() + 3;
    if (used + length > o.width) return;
    used += length;
    Line swatch(sign.size(), o.colour);
    for (std::size_t i = 0; i < sign.size(); ++i) swatch[i] = {c, c, std::string(1, sign[i]), ink_on(c)};
    out += fmt::format("{}{} {}", out.empty() ? "" : "  ", swatch.str(), text);
  };
  const std::span<const Timeline> one(&t, 1);
  for (const Phase p : phases_of(one)) add(std::string(1, letter(p)), name_of(p), colour(p, 0, 1));
  if (chunks > 1 && o.colour != Colour::none && !phases_of(one).empty())
    for (int c = 0; c < std::min(chunks, 4); ++c)
      add("  ", chunk_name(one, c), colour(phases_of(one).front(), c, chunks));
  for (const Lane l : lanes_of(one)) {
    const bool drawn = o.lanes || (l == Lane::other && std::any_of(t.spans.begin(), t.spans.end(), [](const Span& s) {
                                     return s.lane == Lane::compute && !s.action;
                                   }));
    if (drawn) add(l == Lane::message ? ">" : l == Lane::collective ? "=" : "*", name_of(l), colour(l));
  }
  return out;
}

}  // namespace

TextOptions options_for(std::FILE* stream) {
  TextOptions o;
  if (!isatty(fileno(stream))) return o;
  winsize size{};
  if (ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) o.width = size.ws_col;
  const auto variable = [](const char* name) {
    const char* v = std::getenv(name);
    return std::string_view(v ? v : "");
  };
  if (!variable("NO_COLOR").empty() || variable("TERM") == "dumb") return o;
  const std::string_view depth = variable("COLORTERM");
  o.colour = depth == "truecolor" || depth == "24bit" ? Colour::rgb : Colour::ansi256;
  return o;
}

std::string gantt_text(const Timeline& t, const TextOptions& given) {
  TextOptions o = given;
  o.width = std::clamp(o.width, 40, 100'000);
  Scene s = scene(t);
  if (folds(t)) std::erase_if(s.tracks, [&](const Track& k) { return !stands_for_actor(s, k); });

  std::size_t longest = 7;
  for (const Track& track : s.tracks) longest = std::max(longest, row_name(t, track).size());
  if (o.lanes)
    for (const Lane l : lanes_of(std::span(&t, 1))) longest = std::max(longest, name_of(l).size() + 2);
  const int name_width = longest + 2;
  std::map<const Track*, std::string> notes;  // right of each rank: how busy it is; of its actor the peak
  std::size_t note_width = 0;
  for (const Track& track : s.tracks) {
    if (track.lane != Lane::compute) continue;
    std::string& note = notes[&track] = fmt::format("{:3.0f}%", 100 * (1 - s.bubble(track)));
    const int a = track.actor;
    if (a < std::ssize(t.memory) && (folds(t) || track.coordinate == 0))
      note += t.memory_unit == "bytes" ? fmt::format(" {:>8}", memory_text(t.peak(a), t.memory_unit))
                                       : fmt::format(" {:>5.4g}", t.peak(a));
    note_width = std::max(note_width, note.size());
  }
  const Scale scale = scale_for(s, std::max<int>(10, o.width - name_width - note_width - 2), o.fold);

  const std::string title = t.title.empty() ? "" : t.title + ": ";
  std::string out = fit(title + summary(t, o.clock) + folded_text(t), o.width) + "\n";
  const std::string heads = note_width > 4 ? fmt::format("{:>4} {:>{}}", "busy", "peak", note_width - 5) : "busy";
  const int panels = scale.panel > 0 ? std::max<int>(1, std::ceil(s.length / scale.panel - 1e-9)) : 1;
  for (int p = 0; p < panels; ++p) {
    const Chart chart(s, scale, p * scale.panel, o);
    const auto line = [&](std::string_view name, const std::string& drawn, std::string_view note) {
      const std::string text = fmt::format("{:{}}{}  {}", name, name_width, drawn, note);
      out += text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
    };
    line("", fmt::format("{:{}}", chart.axis(), scale.columns), p == 0 ? heads : "");
    for (const Track& track : s.tracks) {
      if (!o.lanes && track.lane != Lane::compute) continue;
      const bool main = track.lane == Lane::compute;
      const std::vector<std::string> lines = chart.draw(track);
      for (std::size_t i = 0; i < lines.size(); ++i)
        line(i      ? ""
             : main ? row_name(t, track)
                    : "  " + std::string(name_of(track.lane)),
             lines[i], main && i == 0 && p == 0 ? notes[&track] : "");
    }
  }
  return out + legend(t, s.chunks, o) + "\n";
}

}  // namespace stretto
