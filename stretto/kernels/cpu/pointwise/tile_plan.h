// What the pointwise kernel does for one call, settled when the call is prepared.
//
//   TilePlan plan = ...;                       // pointwise.cpp
//   run_tiles(plan, args);                     // every time; run_tiles.cpp
#pragma once
#include <vector>

#include "stretto/kernels/cpu/pointwise/pointwise.h"

namespace stretto {

// Registers hold bf16 values as f32. Tiles compute in f32; a result of type bf16 is rounded before another one reads
// it.
struct TileCall {
  Tile tile = nullptr;
  bool rounds = false;
  std::vector<int> args;                   // registers
  int out = 0;                             // register
  std::optional<std::size_t> result = {};  // of the group
};
struct TileOperand {  // an operand or a result of the group
  int reg = 0;
  DType dtype = f32;
  std::vector<i64> strides = {};  // per collapsed dim, outermost first
};
struct TileFill {  // a constant
  int reg = 0;
  DType dtype = f32;
  double value = 0;
};
struct TilePlan {
  std::vector<i64> sizes;  // collapsed iteration space
  std::vector<TileCall> calls;
  std::vector<TileOperand> sources, results;
  std::vector<TileFill> fills;
  bool accumulate = false;
};

constexpr std::size_t most_tile_dims = 16;

void run_tiles(const TilePlan&, const Args&);

}  // namespace stretto
