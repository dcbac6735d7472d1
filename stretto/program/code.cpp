#include "stretto/program/code.h"

#include <algorithm>
#include <unordered_map>

namespace stretto {
namespace {

// Changes the numbers of an instruction: those of microbatches, actions, transfers, collectives by the cases given.
template <class Microbatch, class Action, class Transfer, class Collective>
void renumber(Instruction& i, Microbatch microbatch, Action action, Transfer transfer, Collective collective) {
  const auto run = [&](Run& r) {
    r.microbatch = microbatch(r.microbatch);
    if (r.action) r.action = action(*r.action);
  };
  match(
      i, run, [&](Send& s) { s.transfer = transfer(s.transfer); },
      [&](Receive& r) { r.transfer = transfer(r.transfer); },
      [&](Start& s) { run(s.run), s.collective = collective(s.collective); },
      [&](Await& w) { w.collective = collective(w.collective); });
}

// Things as they appear, from 0 on.
template <class I>
class Numbering {
 public:
  I operator()(I x) {
    const auto [it, fresh] = known_.try_emplace(x, I(all.size()));
    if (fresh) all.push_back(x);
    return it->second;
  }
  std::vector<I> all;

 private:
  std::unordered_map<I, I> known_;
};

}  // namespace

std::pair<TurnCode, TurnNumbers> numbered(std::span<const Instruction> all) {
  TurnCode code{.instructions = {all.begin(), all.end()}};
  Numbering<MicrobatchId> microbatches;
  Numbering<ActionId> actions;
  Numbering<TransferId> transfers;
  Numbering<CollectiveId> collectives;
  for (Instruction& i : code.instructions)
    renumber(i, std::ref(microbatches), std::ref(actions), std::ref(transfers), std::ref(collectives));
  return {std::move(code),
          {std::move(microbatches.all), std::move(actions.all), std::move(transfers.all), std::move(collectives.all)}};
}

NumbersWithin places_of(const TurnNumbers& these, const TurnNumbers& in) {
  const auto places = [](const auto& some, const auto& all) {
    std::vector<std::uint32_t> at;
    for (const auto& x : some) {
      at.push_back(std::uint32_t(std::find(all.begin(), all.end(), x) - all.begin()));
      STRETTO_ASSERT(at.back() < all.size(), "a turn has a number that comes from nowhere");
    }
    return at;
  };
  return {places(these.microbatches, in.microbatches), places(these.actions, in.actions),
          places(these.transfers, in.transfers), places(these.collectives, in.collectives)};
}

TurnNumbers picked(const NumbersWithin& n, const TurnNumbers& from) {
  const auto pick = [](const std::vector<std::uint32_t>& at, const auto& all) {
    std::remove_cvref_t<decltype(all)> some;
    some.reserve(at.size());
    for (std::uint32_t k : at) some.push_back(all[k]);
    return some;
  };
  return {pick(n.microbatches, from.microbatches), pick(n.actions, from.actions), pick(n.transfers, from.transfers),
          pick(n.collectives, from.collectives)};
}

Code::Code(const std::vector<Instruction>& all) {
  for (const Instruction& i : all) push_back(i);
}

void Code::begin_turn(TurnCodeId code) {
  turns_.push_back({.code = code,
                    .first = next_id(),
                    .microbatches = std::uint32_t(numbers_.microbatches.size()),
                    .actions = std::uint32_t(numbers_.actions.size()),
                    .transfers = std::uint32_t(numbers_.transfers.size()),
                    .collectives = std::uint32_t(numbers_.collectives.size())});
  open_ = false;
}

void Code::add(TurnCodeId code, const TurnNumbers& n) {
  if (codes_[code].instructions.empty()) return;
  begin_turn(code);
  numbers_.add(n);
  size_ += codes_[code].instructions.size();
}

void Code::push_back(Instruction x) {
  if (!open_) {
    begin_turn(codes_.push_back({}));
    open_ = true;
  }
  const Turn& t = turns_.back();
  const auto append = [](auto& all, std::uint32_t from) {
    return [&all, from](auto id) {
      const auto own = all.begin() + from;
      const auto known = std::find(own, all.end(), id);
      const auto number = known - own;
      if (known == all.end()) all.push_back(id);
      return decltype(id)(number);
    };
  };
  renumber(x, append(numbers_.microbatches, t.microbatches), append(numbers_.actions, t.actions),
           append(numbers_.transfers, t.transfers), append(numbers_.collectives, t.collectives));
  codes_[t.code].instructions.push_back(std::move(x));
  ++size_;
}

Instruction Code::at(const Turn& t, std::size_t k) const {
  Instruction x = kind(t).instructions[k];
  renumber(
      x, [&](MicrobatchId m) { return microbatch(t, m); }, [&](ActionId a) { return action(t, a); },
      [&](TransferId m) { return transfer(t, m); }, [&](CollectiveId c) { return collective(t, c); });
  if (Run* r = task_of(x)) r->args = SlotId(t.slots.value + r->args.value);
  return x;
}

std::vector<Instruction> Code::written_out(const Turn& t) const {
  std::vector<Instruction> all;
  all.reserve(size(t));
  for (std::size_t k = 0; k < size(t); ++k) all.push_back(at(t, k));
  return all;
}

TurnNumbers Code::numbers(const Turn& t) const {
  const bool last = &t == &turns_.back();
  const Turn* next = last ? nullptr : &t + 1;
  const auto part = [&](const auto& all, std::uint32_t Turn::*from) {
    return std::vector(all.begin() + t.*from, next ? all.begin() + next->*from : all.end());
  };
  return {part(numbers_.microbatches, &Turn::microbatches), part(numbers_.actions, &Turn::actions),
          part(numbers_.transfers, &Turn::transfers), part(numbers_.collectives, &Turn::collectives)};
}

std::size_t Code::turn_of(InstructionId i) const {
  const auto later =
      std::upper_bound(turns_.begin(), turns_.end(), i, [](InstructionId x, const Turn& t) { return x < t.first; });
  return std::size_t(later - turns_.begin()) - 1;
}

Instruction Code::operator[](InstructionId i) const {
  const Turn& t = turns_[turn_of(i)];
  return at(t, i.value - t.first.value);
}

}  // namespace stretto
