#include "stretto/run/inner/drawn.h"

#include <algorithm>

#include "stretto/base/philox.h"

namespace stretto {
namespace {

// How many ids there are, as all say that read them as such; what nothing reads so is a mask of zeros and ones.
i64 ids_of(const Compiled& c, InputId input) {
  std::optional<i64> fewest;
  for (const InputOfIds& i : c.ids)
    if (i.input == input) {
      const Node& n = c.graph.node(i.reader);
      const i64 limit = n.op->ids({c.graph, n}).limit;
      fewest = std::min(fewest.value_or(limit), limit);
    }
  return std::max<i64>(1, fewest.value_or(2));
}

template <class T>
Array filled(const std::vector<i64>& sizes, auto&& value) {
  i64 n = 1;
  for (const i64 size : sizes) n *= size;
  std::vector<T> all(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = value(i);
  return Array::of<T>(all, sizes);
}

}  // namespace

Batch drawn_batch(const Compiled& c, u64 seed, i64 step) {
  Batch batch;
  for (const InputId id : c.inputs.ids()) {
    const TracedInput& in = c.inputs[id];
    std::vector<i64> sizes;
    for (const Dim& d : in.dims) sizes.push_back(d.name == c.batch ? c.rows_per_step : d.valid());
    const PhiloxKey key = philox_key(seed, fmt::format("{} of step {}", in.name, step));
    const auto number = [&](std::size_t i) { return 2 * uniform_at(key, i) - 1; };
    if (in.dtype == i32)
      batch.emplace(in.name, filled<std::int32_t>(sizes, [&, n = ids_of(c, id)](std::size_t i) {
                      return static_cast<std::int32_t>(uniform_at(key, i) * n);
                    }));
    else if (in.dtype == f64)
      batch.emplace(in.name, filled<double>(sizes, number));
    else
      batch.emplace(in.name, filled<float>(sizes, number));
  }
  return batch;
}

}  // namespace stretto
