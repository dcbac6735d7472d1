#include "stretto/schedule/messages.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <optional>
#include <utility>

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
    for (const ActorId actor : t_.actors.ids()) steps(actor);
    return std::move(t_);
  }

 private:
  // One message per action whose input another actor makes, numbered in the order of the consumers.
  void messages() {
    in_.resize(ix_.size());
    out_.resize(ix_.size());
    number_.resize(s_.pipes() * s_.stages);
    t_.messages.reserve(ix_.size());
    for (std::uint32_t to = 0; to < ix_.size(); ++to) {
      const ActionNumber from = ix_.producer(to);
      // An output is sent once: a second action that wants it has a fault of its own.
      if (!from || ix_.actor[*from] == ix_.actor[to] || out_[*from]) continue;
      in_[to] = out_[*from] = t_.messages.size();
      Message& m = t_.messages.emplace_back();
      m.channel = channel_of(*from, to);
      m.taken = t_.channels[m.channel].messages++;
      m.sent_at = ix_.position(*from);
      m.taken_at = ix_.position(to);
    }
    std::vector<std::uint32_t> sent(t_.channels.size());
    for (const MessageNumber m : out_)
      if (m) t_.messages[*m].sent = sent[t_.messages[*m].channel]++;
  }

  std::uint32_t channel_of(std::uint32_t from, std::uint32_t to) {
    const Action& a = ix_.actions[from];
    const bool forward = a.phase == Phase::F;
    std::optional<std::uint32_t>& number = key_ == ChannelKey::stages ? number_[ix_.stage_key(a)][forward ? 0 : 1]
                                                                      : pair_number_[{ix_.actor[from], ix_.actor[to]}];
    if (!number) {
      number = t_.channels.size();
      t_.channels.push_back({.kind = forward ? Phase::F : Phase::I,
                             .pipe = a.pipe,
                             .merged = key_ == ChannelKey::actors,
                             .from = a.stage,
                             .to = ix_.actions[to].stage,
                             .source = ix_.actor[from],
                             .target = ix_.actor[to]});
    }
    return *number;
  }

  void steps(ActorId actor) {
    using Kind = MessageStep::Kind;
    auto& steps = t_.actors[actor];
    const std::uint32_t begin = ix_.begin(actor), end = ix_.end(actor);
    std::size_t count = 0;
    for (std::uint32_t i = begin; i < end; ++i) count += 1 + 2 * in_[i].has_value() + 2 * out_[i].has_value();
    steps.reserve(count);
    for (std::uint32_t i = begin; i < end;) {
      std::uint32_t stop = i, time = 0;
      while (stop < end && ix_.item[stop] == ix_.item[i]) time += ix_.actions[stop++].phase == Phase::B ? 2 : 1;
      auto each = [&](Kind kind, const std::vector<MessageNumber>& of) {
        for (std::uint32_t k = i; k < stop; ++k)
          if (of[k]) steps.push_back({kind, *of[k], k - begin});
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
  using MessageNumber = std::optional<std::uint32_t>;
  std::vector<MessageNumber> in_, out_;  // per action the message it takes and the one it sends
  std::vector<std::array<std::optional<std::uint32_t>, 2>> number_;  // of a channel, by pipe and stage, and kind
  std::map<std::pair<ActorId, ActorId>, std::optional<std::uint32_t>> pair_number_;  // ... by source and target
};

}  // namespace

std::string Channel::str() const {
  if (merged) return fmt::format("actor {} -> {}", source.value, target.value);
  return fmt::format("stage {} -> {} {}{}, actor {} -> {}", from.value, to.value, letter(kind),
                     pipe == up_pipe ? " (up pipe)" : "", source.value, target.value);
}

Traffic traffic_of(const Schedule& s, ChannelKey key) {
  if (!ActionIndex::fits(s)) {
    throw Error("schedule", "the schedule is not valid: no messages can be told from it")
        .hint("validate() names its faults");
  }
  return Maker(s, key).make();
}

}  // namespace stretto
