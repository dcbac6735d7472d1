// rotary(x, seq, head): turns the pairs (x[i], x[i + head/2]) by position * base^(-2i/head). The position is the index
// along seq, or what `positions` {seq} says, which is below options.positions.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {

struct RotaryOptions {
  double base = 10000;
  // Llama 3's stretching of slow turns; none when factor is 0.
  double factor = 0, low_freq_factor = 1, high_freq_factor = 4, original_max_position = 8192;
  bool inverse = false;  // turn back
  i64 positions = 0;
};
struct RotaryAttrs {
  DimId seq, head;
  double base = 10000, factor = 0, low_freq_factor = 1, high_freq_factor = 4, original_max_position = 8192;
  bool inverse = false;
  i64 positions = 0;  // 0: the index along seq
  static constexpr void fields(auto& s, auto f) {
    f("seq", s.seq);
    f("head", s.head);
    f("base", s.base);
    f("factor", s.factor);
    f("low_freq_factor", s.low_freq_factor);
    f("high_freq_factor", s.high_freq_factor);
    f("original_max_position", s.original_max_position);
    f("inverse", s.inverse);
    f("positions", s.positions);
  }
};
Tensor rotary(Tensor x, Dim seq, Dim head, const RotaryOptions& options = {});
Tensor rotary(Tensor x, Tensor positions, Dim seq, Dim head, const RotaryOptions& options);

}  // namespace stretto
