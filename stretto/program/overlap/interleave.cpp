#include "stretto/program/overlap/interleave.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <span>
#include <tuple>

#include "stretto/base/error.h"

namespace stretto {
namespace {

class Interleaving {
 public:
  explicit Interleaving(const IdVector<WorkId, Work>& work)
      : work_(work),
        next_from_(work.size() + 1, 0),
        missing_(work.size(), 0),
        ready_(work.size(), 0),
        left_(work.size(), 0),
        urgent_(work.size(), false) {
    out_.ends = IdVector<WorkId, double>(work.size(), 0);
    for (WorkId w : work_.ids()) ready_[w] = work_[w].ready;
    find_next();
    look_back();
    for (WorkId w : work_.ids())
      if (missing_[w] == 0) open_.push_back(w);
  }

  Interleaved run() {
    while (!open_.empty()) {
      const auto best =
          std::min_element(open_.begin(), open_.end(), [&](WorkId x, WorkId y) { return rank_of(x) < rank_of(y); });
      const WorkId w = *best;
      open_.erase(best);
      take(w);
      out_.order.push_back(w);
    }
    out_.seconds = time_;
    return std::move(out_);
  }

 private:
  // All lists as one: there are very many, and most are short.
  void find_next() {
    for (WorkId w : work_.ids())
      for (WorkId before : work_[w].after) {
        STRETTO_ASSERT(before < w, "work comes after what is later in the list");
        ++next_from_[before.value + 1];
        ++missing_[w];
      }
    std::partial_sum(next_from_.begin(), next_from_.end(), next_from_.begin());
    next_.resize(next_from_.back());
    std::vector<std::uint32_t> at(next_from_);
    for (WorkId w : work_.ids())
      for (WorkId before : work_[w].after) next_[at[before.value]++] = w;
  }
  std::span<const WorkId> next(WorkId w) const {
    return {next_.data() + next_from_[w.value], next_.data() + next_from_[w.value + 1]};
  }

  // From the end: how long it takes from here on, and whether that ends at another actor.
  void look_back() {
    for (std::size_t i = work_.size(); i-- > 0;) {
      const WorkId w(i);
      urgent_[w] = work_[w].urgent;
      for (WorkId x : next(w)) {
        left_[w] = std::max(left_[w], left_[x]);
        urgent_[w] = urgent_[w] || urgent_[x];
      }
      left_[w] += work_[w].seconds + work_[w].then;
    }
  }

  // The smaller the sooner: when it can begin, what takes no time or goes on by itself, what another actor waits for,
  // its turn, what takes longest from here on, the order it was given in.
  using Rank = std::tuple<double, bool, bool, std::uint32_t, double, WorkId>;
  Rank rank_of(WorkId w) const {
    const bool waits = work_[w].seconds > 0 && !work_[w].link;
    return {std::max(time_, ready_[w]), waits, !urgent_[w], work_[w].turn, -left_[w], w};
  }

  void take(WorkId w) {
    const Work& x = work_[w];
    time_ = std::max(time_, ready_[w]);
    double end = time_ + x.seconds;
    if (x.link) {
      double& free = free_[*x.link];
      end = free = std::max(free, time_) + x.seconds;
    } else {
      time_ = end;
    }
    out_.ends[w] = end;
    for (WorkId n : next(w)) {
      ready_[n] = std::max(ready_[n], end);
      if (--missing_[n] == 0) open_.push_back(n);
    }
  }

  const IdVector<WorkId, Work>& work_;
  std::vector<std::uint32_t> next_from_;
  std::vector<WorkId> next_;                 // of each, from next_from_ on, what comes after it
  IdVector<WorkId, std::uint32_t> missing_;  // of what it comes after
  IdVector<WorkId, double> ready_, left_;
  IdVector<WorkId, char> urgent_;
  std::vector<WorkId> open_;  // nothing is missing
  std::map<std::uint32_t, double> free_;
  double time_ = 0;
  Interleaved out_;
};

}  // namespace

Interleaved interleave(const IdVector<WorkId, Work>& work) { return Interleaving(work).run(); }

}  // namespace stretto
