// rotary(x, seq, head): turns the pairs (x[i], x[i + head/2]) by position * base^(-2i/head). The position is the index
// along seq, or what `positions` {seq} says, which is below options.positions.
#pragma once
#include <vector>

#include "stretto/ir/op.h"

namespace stretto {

struct RotaryOptions {
  double base = 10000;
  // Instead of the base: by what a pair turns from one position to the next. Fewer pairs than head/2: only the first
  // 2 * frequencies.size() elements are turned, among themselves.
  std::vector<double> frequencies = {};
  double scale = 1;          // what is turned becomes so much longer
  bool interleaved = false;  // pairs are (x[2i], x[2i + 1])
  bool inverse = false;      // turn back
  i64 positions = 0;
};
struct RotaryAttrs {
  DimId seq, head;
  std::vector<double> frequencies;
  double scale = 1;
  bool interleaved = false, inverse = false;
  i64 positions = 0;  // 0: the index along seq
  static constexpr void fields(auto& s, auto f) {
    f("seq", s.seq);
    f("head", s.head);
    f("frequencies", s.frequencies);
    f("scale", s.scale);
    f("interleaved", s.interleaved);
    f("inverse", s.inverse);
    f("positions", s.positions);
  }
};
Tensor rotary(Tensor x, Dim seq, Dim head, const RotaryOptions& options = {});
Tensor rotary(Tensor x, Tensor positions, Dim seq, Dim head, const RotaryOptions& options);

// base^(-2i/turned) for every pair of so many elements.
std::vector<double> rotary_frequencies(double base, i64 turned);

}  // namespace stretto
