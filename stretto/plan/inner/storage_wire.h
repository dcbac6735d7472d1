// How long an actor's actions take where parameters or gradients are cut over ranks: gathers and scatters go on beside
// tasks, one after the other, and tasks wait for them piece by piece as program/emit/gathers.h and rows.h place them.
//
//   StorageWire wire;
//   double end = wire.forward(start, pieces, seconds, next);
//
// The parameters of a piece are gathered while the one that was visited before it works; the gradients of a piece are
// scattered while the next ones are made, and then added to the rank's own.
#pragma once
#include <optional>
#include <vector>

namespace stretto {

struct WirePiece {
  double F = 0, I = 0, W = 0;                                // parts of what the stage takes
  double gather = 0, gather_back = 0, scatter = 0, add = 0;  // seconds, as in PieceFacts
};

struct StorageHidden {
  std::optional<double> gathers, scatters;  // what the software hides whatever stands beside it (cost/stack.h)
  double beside = 0;
};

class StorageWire {
 public:
  explicit StorageWire(const StorageHidden& hidden = {}) : hidden_(hidden) {}

  using Pieces = std::vector<WirePiece>;
  // The end of an action that starts at `t` and whose tasks take `seconds`. `next`: the gather for the piece that is
  // visited after these.
  double forward(double t, const Pieces&, double seconds, double next);
  double again(double t, const Pieces&, double seconds, double next);  // recompute, for backward
  double backward(double t, const Pieces&, double seconds, double next);
  double weights(double t, const Pieces&, double seconds);
  double settle(double t);                                // the last gradients that are on their way
  void first(double gather) { issue_gather(0, gather); }  // at the beginning of a step

 private:
  double visit(double t, double next);
  double scatter(double t, const WirePiece&);
  void issue_gather(double t, double seconds);

  StorageHidden hidden_;
  double free_ = 0;   // the wire
  double due_ = 0;    // of what the next visit needs
  double waits_ = 0;  // of that, what its issue takes from the tasks
  struct OnItsWay {   // gradients that are scattered, and then added
    double arrives = 0, add = 0;
  };
  std::vector<OnItsWay> on_their_way_;
};

}  // namespace stretto
