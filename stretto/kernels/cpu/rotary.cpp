#include "stretto/ops/rotary.h"

#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "stretto/kernels/cpu/padding.h"
#include "stretto/kernels/cpu/with_float.h"

namespace stretto {
namespace {

// Per position half cosines, then half sines.
template <class T>
using Table = std::vector<T>;

// All layers of a model use one table: it is made once and lives as long as a kernel that uses it.
template <class T>
std::shared_ptr<const Table<T>> table_of(const RotaryAttrs& a, i64 first, i64 count) {
  using Key = std::tuple<std::vector<double>, double, bool, i64, i64>;
  static std::mutex mutex;
  static std::map<Key, std::weak_ptr<const Table<T>>> known;
  const std::lock_guard lock(mutex);
  std::weak_ptr<const Table<T>>& slot = known[{a.frequencies, a.scale, a.inverse, first, count}];
  if (std::shared_ptr<const Table<T>> have = slot.lock()) return have;
  const i64 half = a.frequencies.size();
  auto made = std::make_shared<Table<T>>(count * 2 * half);
  for (i64 i = 0; i < half; ++i)
    for (i64 p = 0; p < count; ++p) {
      const double angle = double(first + p) * a.frequencies[i];
      (*made)[p * 2 * half + i] = T(std::cos(angle) * a.scale);
      (*made)[p * 2 * half + half + i] = T((a.inverse ? -std::sin(angle) : std::sin(angle)) * a.scale);
    }
  slot = made;
  return made;
}

struct Plan {
  Nest rows;                // arrays: x, y, table or positions
  i64 half = 0, rest = 0;   // pairs; elements after them that are not turned
  i64 apart = 0, next = 1;  // from a pair's first to its second element, and to the next pair
  i64 x = 1, y = 1;
  Padding padding;
};

Plan plan_of(const Call& call) {
  const RotaryAttrs& a = call.attrs<RotaryAttrs>();
  const View &x = call.in[0], &y = call.out[0];
  const i64 head = x.size(a.head), half = a.frequencies.size();
  View table{
      .dims = {a.seq}, .sizes = {x.size(a.seq)}, .strides = {2 * half}, .offsets = {0}, .limits = {x.valid(a.seq)}};
  if (a.positions > 0) table = call.in[1];
  return {.rows = valid_nest(without(x.dims, {a.head}), {&x, &y, &table}),
          .half = half,
          .rest = head - 2 * half,
          .apart = a.interleaved ? 1 : half,
          .next = a.interleaved ? 2 : 1,
          .x = x.stride(a.head),
          .y = y.stride(a.head),
          .padding = Padding(y)};
}

bool accepts_rows(const Call& call) {
  const Plan p = plan_of(call);
  return p.x == 1 && p.y == 1 && p.next == 1;
}

template <bool contiguous>
Runner prepare(const Call& call) {
  return with_stored(call.out[0].dtype, [&]<class T>() -> Runner {
    const RotaryAttrs& a = call.attrs<RotaryAttrs>();
    const View& x = call.in[0];
    const bool told = a.positions > 0;
    const i64 first = told ? 0 : x.offsets[std::size_t(position(x.dims, a.seq))];
    const i64 count = told ? a.positions : x.size(a.seq);
    return [p = plan_of(call), told, count, table = table_of<Wide<T>>(a, first, count)](const Args& args) {
      const i64 half = p.half, dx = contiguous ? 1 : p.x, dy = contiguous ? 1 : p.y, next = contiguous ? 1 : p.next;
      run_nest(p.rows, [&](Steps at) {
        const i64 place = told ? args.input<std::int32_t>(1)[at[2]] : 0;
        const i64 row = !told ? at[2] : args.within(place, count) ? place * 2 * half : 0;
        const T* from = args.input<T>(0) + at[0];
        const Wide<T>*c = table->data() + row, *s = c + half;
        T* to = args.output<T>() + at[1];
#pragma GCC ivdep
        for (i64 i = 0; i < half; ++i) {
          const i64 one = i * next, two = one + p.apart;
          const Wide<T> left = from[one * dx], right = from[two * dx];
          to[one * dy] = T(left * c[i] - right * s[i]);
          to[two * dy] = T(right * c[i] + left * s[i]);
        }
        for (i64 i = 2 * half; i < 2 * half + p.rest; ++i) to[i * dy] = from[i * dx];
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
