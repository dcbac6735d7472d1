#include "stretto/schedule/messages.h"

#include <fmt/format.h>

#include <unordered_map>

#include "stretto/base/error.h"
#include "stretto/schedule/index.h"

namespace stretto {

namespace {

class Maker {
 public:
  Maker(const Schedule& s, ChannelKey key) : s_(s), key_(key), ix_(s) {}

  Traffic make() {
    if (key_ == ChannelKey::stages) t_.shares = s_.pipes();
    messages();
    t_.actors.resize(s_.rows.size());
    for (std::uint32_t actor = 0; actor < t_.actors.size(); ++actor) steps(actor);
    return std::move(t_);
  }

 private:
  // One message per action whose input another actor makes, numbered in the order of the consumers.
  void messages() {
    in_.assign(ix_.size(), ActionIndex::none);
    out_.assign(ix_.size(), ActionIndex::none);
    number_.assign(2 * std::size_t(s_.pipes()) * std::size_t(s_.stages), ActionIndex::none);
    t_.messages.reserve(ix_.size());
    for (std::uint32_t to = 0; to < ix_.size(); ++to) {
      const std::uint32_t from = ix_.producer(to);
      // An output is sent once: a second action that wants it has a fault of its own.
      if (from == ActionIndex::none || ix_.actor[from] == ix_.actor[to] || out_[from] != ActionIndex::none) continue;
      const std::uint32_t channel = channel_of(from, to);
      in_[to] = out_[from] = std::uint32_t(t_.messages.size());
      t_.messages.push_back({.channel = channel,
                             .taken = t_.channels[channel].messages++,
                             .sent_at = std::uint32_t(ix_.position(from)),
                             .taken_at = std::uint32_t(ix_.position(to))});
    }
    std::vector<std::uint32_t> sent(t_.channels.size());
    for (const std::uint32_t m : out_) {
      if (m != ActionIndex::none) t_.messages[m].sent = sent[t_.messages[m].channel]++;
    }
  }

  std::uint32_t channel_of(std::uint32_t from, std::uint32_t to) {
    const Action& a = ix_.actions[from];
    const Action& b = ix_.actions[to];
    const bool forward = a.phase == Phase::F;
    std::uint32_t& number =
        key_ == ChannelKey::stages
            ? number_[(std::size_t(a.pipe) * 2 + (forward ? 0 : 1)) * std::size_t(s_.stages) + a.stage]
            : pair_number_.try_emplace(std::uint64_t(ix_.actor[from]) << 32 | ix_.actor[to], ActionIndex::none)
                  .first->second;
    if (number == ActionIndex::none) {
      number = std::uint32_t(t_.channels.size());
      t_.channels.push_back({.kind = forward ? Phase::F : Phase::I,
                             .pipe = a.pipe,
                             .merged = key_ == ChannelKey::actors,
                             .from = a.stage,
                             .to = b.stage,
                             .source = int(ix_.actor[from]),
                             .target = int(ix_.actor[to])});
    }
    return number;
  }

  void steps(std::uint32_t actor) {
    using Kind = MessageStep::Kind;
    auto& steps = t_.actors[actor];
    const std::uint32_t begin = ix_.row_begin[actor], end = ix_.row_begin[actor + 1];
    std::size_t count = 0;
    for (std::uint32_t i = begin; i < end; ++i)
      count += 1 + 2 * (in_[i] != ActionIndex::none) + 2 * (out_[i] != ActionIndex::none);
    steps.reserve(count);
    for (std::uint32_t i = begin; i < end;) {
      std::uint32_t stop = i, time = 0;
      while (stop < end && ix_.item[stop] == ix_.item[i]) time += ix_.actions[stop++].phase == Phase::B ? 2 : 1;
      auto each = [&](Kind kind, const std::vector<std::uint32_t>& of) {
        for (std::uint32_t k = i; k < stop; ++k) {
          if (of[k] != ActionIndex::none) steps.push_back({kind, of[k], k - begin});
        }
      };
      each(Kind::post, in_);
      each(Kind::receive, in_);
      steps.push_back({Kind::run, time, i - begin});
      each(Kind::send, out_);
      each(Kind::complete, out_);
      i = stop;
    }
  }

  const Schedule& s_;
  ChannelKey key_;
  ActionIndex ix_;
  Traffic t_;
  std::vector<std::uint32_t> in_, out_;  // per action the message it takes and the one it sends
  std::vector<std::uint32_t> number_;    // of a channel, by pipe, kind and stage
  std::unordered_map<std::uint64_t, std::uint32_t> pair_number_;  // ... by source and target
};

}  // namespace

std::string Channel::str() const {
  if (merged) return fmt::format("actor {} -> {}", source, target);
  return fmt::format("stage {} -> {} {}{}, actor {} -> {}", from, to, letter(kind), pipe ? " (up pipe)" : "", source,
                     target);
}

Traffic traffic_of(const Schedule& s, ChannelKey key) {
  if (!ActionIndex::fits(s)) {
    throw Error("schedule", "the schedule is not valid: no messages can be told from it")
        .hint("validate() names its faults");
  }
  return Maker(s, key).make();
}

}  // namespace stretto
