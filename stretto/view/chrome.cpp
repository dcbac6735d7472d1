#include "stretto/view/chrome.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>

#include "stretto/view/escape.h"

namespace stretto {
namespace {

// Slices of a thread must nest: the ends that are still open form a stack. A bar that would cross another one goes to
// the next thread of its lane.
struct Thread {
  std::vector<std::int64_t> open;
  bool takes(std::int64_t start, std::int64_t end) {
    while (!open.empty() && open.back() <= start) open.pop_back();
    if (!open.empty() && open.back() < end) return false;
    open.push_back(end);
    return true;
  }
};

struct Slice {
  int pid = 0, tid = 0;
  std::int64_t start = 0, end = 0;  // nanoseconds: rounding once, to integers, keeps nesting exact
};

class Trace {
 public:
  Trace(Clock clock) : nanoseconds_(clock == Clock::seconds ? 1e9 : 1e6) {}

  void add(const Timeline& t, int first_pid, bool named) {
    const Scene s = scene(t);
    slices_.clear();
    producers_.clear();
    for (const Track& track : s.tracks) this->track(t, track, first_pid, named);
    for (const Track& track : s.tracks)
      if (track.lane == Lane::compute)
        for (const Bar& b : track.bars) arrow(t, b);
    for (int a = 0; a < std::min<int>(t.actors, t.memory.size()); ++a)
      for (const auto& [time, amount] : t.memory[a])
        if (std::isfinite(time) && std::isfinite(amount))
          event(R"({{"ph":"C","name":{},"pid":{},"ts":{},"args":{{"live":{}}}}})",
                quoted_json("memory, " + t.memory_unit), first_pid + a * t.ranks, micro(nano(time - s.origin)), amount);
  }

  std::string str() const { return "{\"traceEvents\":[\n" + events_ + "\n],\"displayTimeUnit\":\"ms\"}\n"; }

 private:
  template <class... A>
  void event(fmt::format_string<A...> f, A&&... a) {
    if (!events_.empty()) events_ += ",\n";
    fmt::format_to(std::back_inserter(events_), f, std::forward<A>(a)...);
  }

  std::int64_t nano(double t) const { return std::llround(std::clamp(t * nanoseconds_, -9e15, 9e15)); }
  static std::string micro(std::int64_t nano) {
    const char* sign = nano < 0 ? "-" : "";
    nano = std::abs(nano);
    return fmt::format("{}{}.{:03}", sign, nano / 1000, nano % 1000);
  }

  void track(const Timeline& t, const Track& track, int first_pid, bool named) {
    const int pid = first_pid + track.actor * t.ranks + track.coordinate;
    if (track.lane == Lane::compute) {
      const std::string name = (named && !t.title.empty() ? t.title + ": " : "") + row_name(t, track);
      event(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":{}}}}})", pid, quoted_json(name));
      event(R"({{"ph":"M","name":"process_sort_index","pid":{0},"args":{{"sort_index":{0}}}}})", pid);
    }
    std::vector<Bar> bars = track.bars;  // the longer of two that start together is the outer one
    std::stable_sort(bars.begin(), bars.end(), [&](const Bar& a, const Bar& b) {
      return std::pair(nano(a.start), -nano(a.end)) < std::pair(nano(b.start), -nano(b.end));
    });
    std::vector<Thread> threads;
    for (const Bar& b : bars) {
      const std::int64_t start = nano(b.start), end = nano(b.end);
      std::size_t k = 0;
      while (k < threads.size() && !threads[k].takes(start, end)) ++k;
      if (k == threads.size()) {
        threads.emplace_back().takes(start, end);
        const std::string name =
            k ? fmt::format("{} {}", name_of(track.lane), k + 1) : std::string(name_of(track.lane));
        event(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}}}})", pid, tid(track, k),
              quoted_json(name));
        event(R"({{"ph":"M","name":"thread_sort_index","pid":{0},"tid":{1},"args":{{"sort_index":{1}}}}})", pid,
              tid(track, k));
      }
      slice(t, b, {pid, tid(track, k), start, end});
    }
  }

  static int tid(const Track& track, std::size_t thread) { return int(track.lane) + 4 * int(thread); }

  void slice(const Timeline& t, const Bar& b, Slice s) {
    const Span& span = *b.span;
    std::string name = span.label, category(name_of(span.lane)), arguments;
    if (span.action) {
      const Action& a = *span.action;
      if (span.lane == Lane::compute) {
        name = cell(a, t.stages);
        category = std::string(1, letter(a.phase));
        slices_.emplace(&span, s);
        producers_.emplace(key(a.stage.value, span), &span);
      } else if (name.empty()) {
        name = cell(a, t.stages);
      }
      arguments = fmt::format(R"("phase":"{}","stage":{},"microbatch":{},"pipe":{},"segment":{},"chunk":{})",
                              name_of(a.phase), a.stage.value, a.microbatch.value, a.pipe.value, a.segment, b.chunk);
    }
    if (!span.waited.empty())
      arguments += fmt::format(R"({}"waited for":{})", arguments.empty() ? "" : ",", quoted_json(span.waited));
    if (name.empty()) name = category;
    event(R"({{"ph":"X","name":{},"cat":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}})", quoted_json(name),
          category, s.pid, s.tid, micro(s.start), micro(s.end - s.start), arguments);
  }

  // What is sent: backward?, pipe (none: it stays), stage, microbatch, segment; by which of an actor's ranks.
  using Key = std::tuple<bool, std::optional<PipeId>, int, MicrobatchId, int, int>;
  static Key key(int stage, const Span& s) {
    const Action& a = *s.action;
    const bool stays = a.phase == Phase::W || a.phase == Phase::R;
    return {a.phase != Phase::F, stays ? std::nullopt : std::optional(a.pipe), stage, a.microbatch, a.segment,
            s.coordinate};
  }

  // From the stage before (forward) or after (backward), when it lives on another actor.
  void arrow(const Timeline& t, const Bar& b) {
    if (!b.span->action) return;
    const Action& a = *b.span->action;
    if (a.phase == Phase::W || a.phase == Phase::R) return;
    const int stage = a.phase == Phase::F ? a.stage.value - 1 : a.stage.value + 1;
    if (stage < 0 || stage >= t.stages) return;
    const auto source = producers_.find(key(stage, *b.span));
    if (source == producers_.end()) return;
    const Slice &from = slices_.at(source->second), &to = slices_.at(b.span);
    if (from.pid == to.pid) return;
    ++arrows_;
    event(R"({{"ph":"s","name":"message","cat":"message","id":{},"pid":{},"tid":{},"ts":{}}})", arrows_, from.pid,
          from.tid, micro(std::max(from.start, from.end - 1)));
    event(R"({{"ph":"f","bp":"e","name":"message","cat":"message","id":{},"pid":{},"tid":{},"ts":{}}})", arrows_,
          to.pid, to.tid, micro(to.start));
  }

  double nanoseconds_;
  std::string events_;
  std::map<const Span*, Slice> slices_;
  std::map<Key, const Span*> producers_;
  std::int64_t arrows_ = 0;
};

}  // namespace

std::string chrome_trace(std::span<const Timeline> timelines, Clock clock) {
  Trace trace(clock);
  int pid = 0;
  for (const Timeline& t : timelines) {
    trace.add(t, pid, timelines.size() > 1);
    pid += std::max(0, t.actors) * t.ranks;
  }
  return trace.str();
}

std::string chrome_trace(const Timeline& t, Clock clock) {
  return chrome_trace(std::span<const Timeline>(&t, 1), clock);
}

}  // namespace stretto
