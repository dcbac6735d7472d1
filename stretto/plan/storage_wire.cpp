#include "stretto/plan/storage_wire.h"

#include <algorithm>
#include <utility>

namespace stretto {

// Of what is hidden by decree nothing is on the wire, and the rest is waited for in place.
void StorageWire::issue_gather(double t, double seconds) {
  if (hidden_.gathers) {
    waits_ = seconds * (1 - *hidden_.gathers * (1 - hidden_.beside));
    return;
  }
  free_ = std::max(free_, t) + seconds;
  due_ = seconds > 0 ? free_ : 0;
}

double StorageWire::visit(double t, double next) {
  t = std::max(t, due_) + std::exchange(waits_, 0);
  due_ = 0;
  issue_gather(t, next);
  return t;
}

double StorageWire::forward(double t, const Pieces& pieces, double seconds, double next) {
  for (std::size_t i = 0; i < pieces.size(); ++i)
    t = visit(t, i + 1 < pieces.size() ? pieces[i + 1].gather : next) + seconds * pieces[i].F;
  return t;
}

double StorageWire::again(double t, const Pieces& pieces, double seconds, double next) {
  for (std::size_t i = 0; i < pieces.size(); ++i)
    t = visit(t, i + 1 < pieces.size() ? pieces[i + 1].gather_back : next) + seconds * pieces[i].F;
  return t;
}

double StorageWire::backward(double t, const Pieces& pieces, double seconds, double next) {
  for (std::size_t i = pieces.size(); i-- > 0;)
    t = visit(t, i > 0 ? pieces[i - 1].gather_back : next) + seconds * pieces[i].I;
  return t;
}

double StorageWire::scatter(double t, const WirePiece& piece) {
  on_their_way_.push_back({0, piece.add});
  if (hidden_.scatters) return t + piece.scatter * (1 - *hidden_.scatters * (1 - hidden_.beside));
  free_ = std::max(free_, t) + piece.scatter;
  on_their_way_.back().arrives = free_;
  return t;
}

double StorageWire::weights(double t, const Pieces& pieces, double seconds) {
  for (std::size_t i = pieces.size(); i-- > 0;) {
    t = settle(t + seconds * pieces[i].W);
    t = scatter(t, pieces[i]);
  }
  return t;
}

double StorageWire::settle_one(double t) {
  const OnItsWay x = on_their_way_.front();
  on_their_way_.erase(on_their_way_.begin());
  return std::max(t, x.arrives) + x.add;
}

double StorageWire::settle(double t) {
  while (!on_their_way_.empty()) t = settle_one(t);
  return t;
}

// Weight gradients from `t` on, of pieces whose place in the row is less than `until`, while there is room: how much
// of it they take. The whole gradients of two pieces exist at a time, one of them on its way.
double StorageWire::fill(double t, double room, double stretch, const WireTurn& x, Making& m, std::size_t until,
                         bool adds) {
  double used = 0;
  while (m.piece < until && used < room) {
    if (on_their_way_.size() > 1) {
      const OnItsWay& first = on_their_way_.front();
      if (!adds || first.arrives > t + used * stretch) break;
      used += first.add;
      on_their_way_.erase(on_their_way_.begin());
    }
    const double now = std::min(m.left, room - used);
    used += now, m.left -= now;
    if (m.left > 1e-12) break;
    scatter(t + used * stretch, x.weights[x.weights.size() - 1 - m.piece]);
    if (++m.piece < x.weights.size()) m.left = x.seconds * x.weights[x.weights.size() - 1 - m.piece].W;
  }
  return std::min(used, room);
}

TurnEnds StorageWire::turn(double t, const WireTurn& x) {
  const std::size_t n = x.chain.size(), all = x.weights.size();
  Making m{0, x.seconds * x.weights.back().W};
  if (x.early > 0 && !x.own) fill(t - x.early, x.early, 1, x, m, all, !x.late);
  for (std::size_t i = 0; i < n; ++i) {
    const auto at = [&](std::size_t k) -> const WirePiece& { return x.chain[x.forward ? k : n - 1 - k]; };
    const double begin = std::max(t, due_), part = x.forward ? at(i).F : at(i).I;
    const double after = i + 1 < n ? (x.forward ? at(i + 1).gather : at(i + 1).gather_back) : x.next;
    const std::size_t until = x.own ? i + 1 : all;
    const bool adds = !x.late || i + 1 == n;
    due_ = 0;
    issue_gather(t, after);
    if (begin > t) fill(t, begin - t, 1, x, m, x.own ? i : all, adds);
    const double room = x.inside * part, alone = x.alone * part, more = std::max(0.0, x.filled - x.alone) * part;
    const double used = room > 0 ? fill(begin, room, (alone + more) / room, x, m, until, adds) : 0;
    t = begin + alone + (room > 0 ? more * used / room : 0);
  }
  const double given = t;
  while (m.piece < all) {
    while (on_their_way_.size() > 1) t = settle_one(t);
    t += m.left;
    scatter(t, x.weights[all - 1 - m.piece]);
    if (++m.piece < all) m.left = x.seconds * x.weights[all - 1 - m.piece].W;
  }
  while (on_their_way_.size() > 1) t = settle_one(t);
  return {given, t};
}

}  // namespace stretto
