// Models small enough to train in a test, and batches for them.
#pragma once
#include "stretto/base/philox.h"
#include "stretto/models/family.h"
#include "stretto/stretto.h"

namespace stretto {

// Random numbers that fit the program's inputs: ids below `vocab`, or reals in [-1, 1).
inline Batch random_batch(const Compiled& c, i64 vocab, u64 seed = 1) {
  Batch batch;
  for (const TracedInput& in : c.inputs) {
    std::vector<i64> sizes;
    i64 n = 1;
    for (const Dim& d : in.dims)
      sizes.push_back(d.name == c.batch ? d.size * c.program->microbatches : d.size), n *= sizes.back();
    const PhiloxKey key = philox_key(seed, in.name);
    std::vector<double> u(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < u.size(); ++i) u[i] = uniform_at(key, i);
    if (in.dtype == i32) {
      std::vector<std::int32_t> v;
      for (double x : u) v.push_back(std::int32_t(x * double(vocab)));
      batch[in.name] = Array::of<std::int32_t>(v, sizes);
    } else if (in.dtype == f32) {
      std::vector<float> v;
      for (double x : u) v.push_back(float(2 * x - 1));
      batch[in.name] = Array::of<float>(v, sizes);
    } else {
      std::vector<double> v;
      for (double x : u) v.push_back(2 * x - 1);
      batch[in.name] = Array::of<double>(v, sizes);
    }
  }
  return batch;
}

inline ModelConfig tiny(std::string family, int layers = 2) {
  return {.family = std::move(family), .layers = layers, .width = 32, .heads = 4, .context = 16, .vocab = 50};
}

}  // namespace stretto
