// Both directions walk over `which`, row by row, in its order: so sums have one order, too.
#include "stretto/ops/pick.h"

#include "stretto/kernels/cpu/place.h"
#include "stretto/kernels/cpu/row_sums.h"
#include "stretto/kernels/cpu/with_float.h"

namespace stretto {
namespace {

// Where places lie in the array that has the dims they go over, the holder.
struct Places {
  struct Along {
    i64 size = 1, first = 0, here = 0, stride = 0;  // logical size; the part that is here
  };
  std::vector<Along> along;

  Places(const View& holder, const DimSet& over) {
    for (DimId d : over) {
      const int at = position(holder.dims, d);
      along.push_back({holder.limits[at], holder.offsets[at], holder.valid(d), holder.strides[at]});
    }
  }
  // None: it is not here.
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
};

Runner prepare_pick(const Call& call) {
  const DimSet& over = call.attrs<PickAttrs>().over;
  return with_stored(call.out[0].dtype, [&]<class T>() -> Runner {
    return [sums = RowSums(call.out[0], call.in[1], call.in[0], over),
            places = Places(call.in[0], over)](const Args& args) {
      const std::int32_t* which = args.input<std::int32_t>(1);
      sum_rows(sums, args.input<T>(0), args.output<T>(), 0, [&](i64 at) { return places.offset(which[at]); });
    };
  });
}

// Values are added where they lie; in bf16 in f32 beside it, for all places that the same rows reach, and rounded once.
struct Unpick {
  View out, holder;    // holder: what is added to
  Nest kept, added;    // rows, apart and to the same places; arrays: operand, which, result
  Nest lanes, stored;  // arrays: operand, holder; holder, result
  Places places;
  bool accumulate = false;

  Unpick(const Call& call, const DimSet& over)
      : out(call.out[0]), holder(holder_of(call)), places(holder, over), accumulate(call.accumulate) {
    const View &in = call.in[0], &which = call.in[1];
    const DimSet apart = without(out.dims, which.dims);
    kept = valid_nest(without(which.dims, without(which.dims, out.dims)), {&in, &which, &out});
    added = valid_nest(without(which.dims, out.dims), {&in, &which, &out});
    lanes = valid_nest(without(without(joined(in.dims, apart), over), which.dims), {&in, &holder});
    stored = valid_nest(apart, {&holder, &out});
  }
  static View holder_of(const Call& call) {
    View v = call.out[0];
    if (v.dtype != bf16) return v;
    i64 stride = 1;
    for (std::size_t i = v.dims.size(); i-- > 0;) {
      const bool row = contains(call.in[1].dims, v.dims[i]);
      v.strides[i] = row ? 0 : stride;
      stride *= row ? 1 : v.sizes[i];
    }
    return v;
  }
  i64 held() const {
    i64 n = 1;
    for (std::size_t i = 0; i < holder.dims.size(); ++i) n *= holder.strides[i] ? holder.sizes[i] : 1;
    return n;
  }
};

template <class T>
void add_rows(const Unpick& p, const Args& args, i64 from, i64 names, Wide<T>* to) {
  Nest outer = p.lanes;
  const Loop inner = take_innermost(outer);
  run_nest(p.added, [&](Steps row) {
    const std::optional<i64> place = p.places.offset(args.input<std::int32_t>(1)[names + row[1]]);
    if (!place) return;
    run_nest(outer, [&](Steps lane) {
      const T* const x = args.input<T>(0) + from + row[0] + lane[0];
      Wide<T>* const y = to + *place + lane[1];
      for (i64 i = 0; i < inner.size; ++i) y[i * inner.step[1]] += x[i * inner.step[0]];
    });
  });
}

template <class T>
void run_unpick(const Unpick& p, const Args& args) {
  const bool adds = p.accumulate && !args.now.overwrite;
  if (!adds) fill_zero(p.out, args.out[0]);
  run_nest(p.kept, [&](Steps row) {
    T* const out = args.output<T>() + row[2];
    if constexpr (std::is_same_v<T, BF16>) {
      float* const sums = reinterpret_cast<float*>(args.scratch);
      std::fill_n(sums, p.held(), 0.f);
      add_rows<T>(p, args, row[0], row[1], sums);
      run_nest(p.stored, [&](Steps at) { out[at[1]] = T(adds ? out[at[1]] + sums[at[0]] : sums[at[0]]); });
    } else {
      add_rows<T>(p, args, row[0], row[1], out);
    }
  });
}

Runner prepare_unpick(const Call& call) {
  return with_stored(call.out[0].dtype, [&]<class T>() -> Runner {
    return [p = Unpick(call, call.attrs<UnpickAttrs>().over)](const Args& args) { run_unpick<T>(p, args); };
  });
}

constexpr Kernel picking[] = {{.name = "plain", .prepare = &prepare_pick}};
constexpr Kernel unpicking[] = {{.name = "plain", .prepare = &prepare_unpick}};

}  // namespace

std::span<const Kernel> pick_kernels() { return picking; }
std::span<const Kernel> unpick_kernels() { return unpicking; }

}  // namespace stretto
