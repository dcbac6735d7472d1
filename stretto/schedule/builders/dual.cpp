#include "stretto/schedule/builders/dual.h"

#include <vector>

namespace stretto::builders {

namespace {

class Filler {
 public:
  Filler(Row& row, const Flow& near, const Flow& far) : row_(row), flows_{near, far} {}

  void F(int flow) { add(Phase::F, flow, f_[flow]++); }
  void B(int flow) { add(Phase::B, flow, b_[flow]++); }
  void I(int flow) {
    waiting_.push_back({flow, b_[flow]});
    add(Phase::I, flow, b_[flow]++);
  }
  void W() {  // the oldest weight gradient that is owed
    const auto [flow, k] = waiting_[paid_++];
    add(Phase::W, flow, k);
  }
  void overlapped(int forward, int backward) {
    const std::size_t at = row_.size();
    F(forward), B(backward);
    row_[at].overlap = row_[at + 1].overlap = ++groups_;
  }

 private:
  struct Owed {
    int flow, k;
  };
  void add(Phase phase, int flow, int k) {
    row_.add(phase, flows_[flow].stage, flows_[flow].first + k, flows_[flow].pipe);
  }

  Row& row_;
  Flow flows_[2];
  int f_[2] = {}, b_[2] = {};
  std::vector<Owed> waiting_;
  std::size_t paid_ = 0;
  std::uint32_t groups_ = 0;
};

}  // namespace

void fill_dual(Row& row, int actor, int half, int microbatches, const Flow& near_flow, const Flow& far_flow) {
  constexpr int near = 0, far = 1;
  const int outer = half - actor - 1,
            inner = actor + 1;  // actors towards the middle; towards the end, this one included
  row.reserve(5 * microbatches);
  Filler fill(row, near_flow, far_flow);

  // Warm-up: near forwards until the first far one arrives, then both, then far backwards as they come.
  for (int k = 0; k < 2 * outer; ++k) fill.F(near);
  for (int k = 0; k < inner; ++k) fill.F(near), fill.F(far);
  for (int k = 0; k < outer; ++k) fill.I(far), fill.W(), fill.F(far);

  // Steady state: every forward is overlapped with a backward of the other flow.
  for (int k = 0; k < microbatches - 2 * half + inner; ++k) {
    if (k == 0 && outer == 0) {
      fill.F(near), fill.B(far);  // in the middle the first backward depends on what has just been computed
    } else {
      fill.overlapped(near, far);
    }
    fill.overlapped(far, near);
  }

  // Cool-down: near forwards have run out; in the second half weight gradients are held back to fill the end.
  for (int k = 0; k < outer; ++k) fill.B(far), fill.overlapped(far, near);
  for (int k = 0; k < 2 * inner; ++k) {
    const int flow = k % 2 == 0 ? far : near;
    k < inner ? fill.B(flow) : fill.I(flow);
  }
  for (int k = 0; k < outer; ++k) fill.W(), fill.I(near);
  for (int k = 0; k < inner; ++k) fill.W();
}

}  // namespace stretto::builders
