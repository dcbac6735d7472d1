#include "stretto/kernels/team.h"

#include <algorithm>

namespace stretto {
namespace {

constexpr std::uint32_t rounds = 1u << 30;  // of an Arrival

}  // namespace

Team::Team(TeamOptions o)
    : options_(o), helpers_(std::make_unique<Helper[]>(o.threads - 1)), threads_([this] {
        for (int i = 0; i < options_.threads - 1; ++i) helpers_[i].begin.stop();
      }) {
  STRETTO_ASSERT(o.threads >= 1, "a team of nobody");
  for (int part = 1; part < o.threads; ++part) threads_.start([this, part] { help(part); }, o.threads - 1);
}

int Team::worth(double seconds) const {
  if (options_.threads == 1 || seconds >= options_.least * options_.threads) return options_.threads;
  return std::max(1, static_cast<int>(seconds / options_.least));
}

void Team::help(int part) {
  Helper& me = helpers_[part - 1];
  for (std::uint32_t round = 1; me.begin.wait(round, options_.spins); round = (round + 1) % rounds) {
    try {
      me.call(me.work, part);
    } catch (...) {
      me.failure = std::current_exception();
    }
    me.done.announce(round);
  }
}

void Team::run(int parts, Work call, const void* work) {
  for (int i = 0; i < parts - 1; ++i) {
    Helper& h = helpers_[i];
    h.call = call, h.work = work;
    h.round = (h.round + 1) % rounds;
    h.begin.announce(h.round);
  }
  std::exception_ptr failure;
  try {
    call(work, 0);
  } catch (...) {
    failure = std::current_exception();
  }
  for (int i = 0; i < parts - 1; ++i) {
    Helper& h = helpers_[i];
    h.done.wait(h.round, options_.spins);
    if (std::exception_ptr theirs = std::exchange(h.failure, nullptr); !failure) failure = std::move(theirs);
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace stretto
