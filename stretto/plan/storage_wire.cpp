#include "stretto/plan/inner/storage_wire.h"

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

double StorageWire::settle(double t) {
  for (const OnItsWay& x : on_their_way_) t = std::max(t, x.arrives) + x.add;
  on_their_way_.clear();
  return t;
}

}  // namespace stretto
