#include "stretto/ops/rotary.h"

#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <numbers>
#include <tuple>

#include "stretto/kernels/cpu/padding.h"
#include "stretto/kernels/cpu/with_float.h"

namespace stretto {
namespace {

// Per position half cosines, then half sines.
template <class T>
using Table = std::vector<T>;

double frequency(const RotaryAttrs& a, i64 i, i64 head) {
  const double f = std::pow(a.base, -2.0 * double(i) / double(head));
  if (a.factor == 0) return f;
  const double turns = a.original_max_position * f / (2 * std::numbers::pi);  // within the original context
  if (turns < a.low_freq_factor) return f / a.factor;
  if (turns > a.high_freq_factor) return f;
  const double smooth = (turns - a.low_freq_factor) / (a.high_freq_factor - a.low_freq_factor);
  return (1 - smooth) * f / a.factor + smooth * f;
}

// All layers of a model use one table: it is made once and lives as long as a kernel that uses it.
template <class T>
std::shared_ptr<const Table<T>> table_of(const RotaryAttrs& a, i64 first, i64 count, i64 head) {
  using Key = std::tuple<double, double, double, double, double, bool, i64, i64, i64>;
  static std::mutex mutex;
  static std::map<Key, std::weak_ptr<const Table<T>>> known;
  const std::lock_guard lock(mutex);
  std::weak_ptr<const Table<T>>& slot = known[{a.base, a.factor, a.low_freq_factor, a.high_freq_factor,
                                               a.original_max_position, a.inverse, first, count, head}];
  if (std::shared_ptr<const Table<T>> have = slot.lock()) return have;
  const i64 half = head / 2;
  auto made = std::make_shared<Table<T>>(std::size_t(count * head));
  for (i64 i = 0; i < half; ++i) {
    const double f = frequency(a, i, head);
    for (i64 p = 0; p < count; ++p) {
      const double angle = double(first + p) * f;
      (*made)[std::size_t(p * head + i)] = T(std::cos(angle));
      (*made)[std::size_t(p * head + half + i)] = T(a.inverse ? -std::sin(angle) : std::sin(angle));
    }
  }
  slot = made;
  return made;
}

struct Plan {
  Nest rows;  // arrays: x, y, table or positions
  i64 half = 0, x = 1, y = 1;
  Padding padding;
};

Plan plan_of(const Call& call) {
  const RotaryAttrs& a = call.attrs<RotaryAttrs>();
  const View &x = call.in[0], &y = call.out[0];
  const i64 head = x.size(a.head);
  View table{.dims = {a.seq}, .sizes = {x.size(a.seq)}, .strides = {head}, .offsets = {0}, .limits = {x.valid(a.seq)}};
  if (a.positions > 0) table = call.in[1];
  return {.rows = valid_nest(without(x.dims, {a.head}), {&x, &y, &table}),
          .half = head / 2,
          .x = x.stride(a.head),
          .y = y.stride(a.head),
          .padding = Padding(y)};
}

bool accepts_rows(const Call& call) {
  const Plan p = plan_of(call);
  return p.x == 1 && p.y == 1;
}

template <bool contiguous>
Runner prepare(const Call& call) {
  return with_stored(call.out[0].dtype, [&]<class T>() -> Runner {
    const RotaryAttrs& a = call.attrs<RotaryAttrs>();
    const View& x = call.in[0];
    const bool told = a.positions > 0;
    const i64 first = told ? 0 : x.offsets[std::size_t(position(x.dims, a.seq))];
    const i64 count = told ? a.positions : x.size(a.seq);
    return
        [p = plan_of(call), told, count, table = table_of<Wide<T>>(a, first, count, x.size(a.head))](const Args& args) {
          const i64 half = p.half, dx = contiguous ? 1 : p.x, dy = contiguous ? 1 : p.y;
          run_nest(p.rows, [&](Steps at) {
            const i64 place = told ? args.input<std::int32_t>(1)[at[2]] : 0;
            if (place < 0 || place >= count) throw Error("rotary", "position {} is outside of {}", place, count);
            const i64 row = told ? place * 2 * half : at[2];
            const T* from = args.input<T>(0) + at[0];
            const Wide<T>*c = table->data() + row, *s = c + half;
            T* to = args.output<T>() + at[1];
#pragma GCC ivdep
            for (i64 i = 0; i < half; ++i) {
              const Wide<T> left = from[i * dx], right = from[(i + half) * dx];
              to[i * dy] = T(left * c[i] - right * s[i]);
              to[(i + half) * dy] = T(right * c[i] + left * s[i]);
            }
          });
          p.padding.clear(args.output<T>());
        };
  });
}

constexpr Kernel kernels[] = {{.name = "rows", .accepts = &accepts_rows, .prepare = &prepare<true>},
                              {.name = "reference", .prepare = &prepare<false>}};

}  // namespace

std::span<const Kernel> rotary_kernels() { return kernels; }

}  // namespace stretto
