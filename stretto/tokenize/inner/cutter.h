// Cuts text into pieces, one step after the other.
//
//   Cutter cutter(tables.steps);
//   cutter.cut("two words", true, [](std::string_view piece) { ... });   // "two", " words"
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/tokenize/parts.h"
#include "stretto/tokenize/split_pattern.h"

namespace stretto {

struct PreparedStep {
  CutStep what;
  std::optional<SplitPattern> pattern;
};

class Cutter {
 public:
  explicit Cutter(const std::vector<PreparedStep>& steps) : steps_(steps) {  // which must outlive it
    for (const PreparedStep& s : steps)
      searches_.push_back(s.pattern ? std::optional<SplitPattern::Search>(*s.pattern) : std::nullopt);
  }

  // `text` is UTF-8; `first`: the whole text begins with it.
  template <class Use>
  void cut(std::string_view text, bool first, Use&& use) {
    from_step(0, text, first, use);
  }

 private:
  struct Range {
    std::size_t begin = 0, end = 0;
    bool match = false;
  };

  template <class Use>
  void from_step(std::size_t step, std::string_view piece, bool first, Use& use) {
    if (piece.empty()) return;
    if (step == steps_.size()) return use(piece);
    const CutStep& s = steps_[step].what;
    if (searches_[step]) {
      const auto next = [&](Range r) {
        from_step(step + 1, piece.substr(r.begin, r.end - r.begin), first && r.begin == 0, use);
      };
      return by_pattern(s, *searches_[step], piece, next);
    }
    if (s.prefix_space) {
      if (piece[0] == ' ') return from_step(step + 1, piece, first, use);
      const std::string longer = " " + std::string(piece);
      return from_step(step + 1, longer, first, use);
    }
    from_step(step + 1, with_spaces(s, piece, first), first, use);
  }

  template <class Next>
  static void by_pattern(const CutStep& s, SplitPattern::Search& search, std::string_view piece, const Next& next) {
    using Matches = CutStep::Matches;
    std::optional<Range> held;  // may still grow
    const auto put = [&](Range r) {
      r.match = r.match != s.invert;
      const bool grows = held && ((s.matches == Matches::with_previous && r.match && !held->match) ||
                                  (s.matches == Matches::with_next && !r.match && held->match) ||
                                  (s.matches == Matches::contiguous && r.match == held->match));
      if (grows) {
        held->end = r.end;
        // What was joined ends with r, and so what follows sees r.
        if (s.matches != Matches::contiguous) held->match = r.match;
        return;
      }
      if (held && !(s.matches == Matches::removed && held->match)) next(*held);
      held = r;
    };
    search.start(piece);
    std::size_t done = 0, begin = 0, end = 0;
    while (search.next(begin, end)) {
      if (begin > done) put({done, begin, false});
      put({begin, end, true});
      done = end;
    }
    if (done < piece.size()) put({done, piece.size(), false});
    if (held && !(s.matches == Matches::removed && held->match)) next(*held);
  }

  static std::string with_spaces(const CutStep& s, std::string_view piece, bool first);

  const std::vector<PreparedStep>& steps_;
  std::vector<std::optional<SplitPattern::Search>> searches_;  // one per step
};

}  // namespace stretto
