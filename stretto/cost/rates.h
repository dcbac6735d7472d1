// What kernels of an accelerator reach, as shares of its peaks: what a device file (device.h) and the software on top
// of it (stack.h) say together.
//
//   Machine h100{.flops = 67e12, .memory_bandwidth = 3.35e12, .flops_bf16 = 989e12, .rates = Rates{.product = 0.74}};
#pragma once

namespace stretto {

struct Rates {
  double product = 1;               // a large matrix product, of the peak
  double grouped = 1;               // products of experts side by side, of `product`
  double small = 0;                 // a product's side of x reaches x / (x + small) of that
  double attention = 1;             // attention that never holds all scores, of the peak
  double attention_backward = .85;  // its backward, of `attention`
  double elements = 1;              // passes over elements, of the memory's bandwidth
  double kernel = 0;                // seconds that every kernel takes beside
  // Attention that holds all scores: bytes moved per score, beside the products. 0: scores are never held.
  double scores_forward = 0, scores_backward = 0;
  // Products in fewer bits than the numbers are kept in: their speed in parts of bf16's; casts move so many bytes per
  // element of an operand. 1: there are none.
  double narrow = 1, cast = 0;
  bool operator==(const Rates&) const = default;
};

}  // namespace stretto
