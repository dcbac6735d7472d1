// Both directions walk over `which`, row by row, in its order: so sums have one order, too.
#include "stretto/ops/pick.h"

#include "stretto/kernels/cpu/padding.h"
#include "stretto/kernels/cpu/place.h"
#include "stretto/kernels/cpu/with_float.h"

namespace stretto {
namespace {

struct Plan {
  struct Along {
    i64 size = 1, first = 0, here = 0, stride = 0;  // logical size; the part that is here
  };
  Nest rows;                 // arrays: plain, which, holder
  Nest lanes;                // arrays: plain, holder
  std::vector<Along> along;  // of the holder, which has the dims that places go over
  View out;
  bool accumulate = false;

  Plan(const Call& call, const View& plain, const View& holder, const DimSet& over)
      : rows(valid_nest(call.in[1].dims, {&plain, &call.in[1], &holder})),
        lanes(valid_nest(without(without(joined(plain.dims, holder.dims), over), call.in[1].dims), {&plain, &holder})),
        out(call.out[0]),
        accumulate(call.accumulate) {
    for (DimId d : over) {
      const int at = position(holder.dims, d);
      along.push_back({holder.limits[at], holder.offsets[at], holder.valid(d), holder.strides[at]});
    }
  }

  // Where in the holder a place lies; none: it is not here.
  std::optional<i64> offset(i64 place) const {
    if (place < 0) return {};
    i64 at = 0;
    for (std::size_t i = along.size(); i-- > 0;) {
      const Along& d = along[i];
      const i64 index = (i > 0 ? place % d.size : place) - d.first;
      place /= d.size;
      if (index < 0 || index >= d.here) return {};
      at += index * d.stride;
    }
    return at;
  }

  // f(offset in the plain array, offset in the holder, along: plain, holder, elements) for every row and its lanes.
  template <class F>
  void each(const std::int32_t* which, const F& f) const {
    Nest outer = lanes;
    const Loop inner = take_innermost(outer);
    run_nest(rows, [&](Steps row) {
      const std::optional<i64> place = offset(which[row[1]]);
      if (!place) return;
      run_nest(outer, [&](Steps lane) { f(row[0] + lane[0], row[2] + *place + lane[1], inner); });
    });
  }
};

Runner prepare_pick(const Call& call) {
  return with_float(call.out[0].dtype, [&]<class T>() -> Runner {
    return [p = Plan(call, call.out[0], call.in[0], call.attrs<PickAttrs>().over)](const Args& args) {
      fill_zero(p.out, args.out[0]);
      p.each(args.input<std::int32_t>(1), [&](i64 to, i64 from, const Loop& lane) {
        for (i64 i = 0; i < lane.size; ++i)
          args.output<T>()[to + i * lane.step[0]] += args.input<T>(0)[from + i * lane.step[1]];
      });
    };
  });
}

Runner prepare_unpick(const Call& call) {
  return with_float(call.out[0].dtype, [&]<class T>() -> Runner {
    return [p = Plan(call, call.in[0], call.out[0], call.attrs<UnpickAttrs>().over)](const Args& args) {
      if (!p.accumulate || args.now.overwrite) fill_zero(p.out, args.out[0]);
      p.each(args.input<std::int32_t>(1), [&](i64 from, i64 to, const Loop& lane) {
        for (i64 i = 0; i < lane.size; ++i)
          args.output<T>()[to + i * lane.step[1]] += args.input<T>(0)[from + i * lane.step[0]];
      });
    };
  });
}

constexpr Kernel picking[] = {{.name = "plain", .prepare = &prepare_pick}};
constexpr Kernel unpicking[] = {{.name = "plain", .prepare = &prepare_unpick}};

}  // namespace

std::span<const Kernel> pick_kernels() { return picking; }
std::span<const Kernel> unpick_kernels() { return unpicking; }

}  // namespace stretto
