// One walk over the choices of all members' tokens, in their order, counts who goes where.
#include "stretto/ops/group_rows.h"

#include <algorithm>

#include "stretto/kernels/cpu/padding.h"

namespace stretto {
namespace {

struct Plan {
  Nest tokens;             // of one member; arrays: which, place without gaps, lost
  i64 member = 0;          // this one
  i64 members = 1;         // of the group
  i64 step = 0;            // from one member's tokens to the next one's in `which`
  i64 experts = 1;         // of a member
  i64 room = 0;            // rows that a member can take
  i64 places_size = 0;     // elements
  Nest results[4];         // arrays: without gaps, as it lies
  Padding padding, losts;  // of places and of what is lost
};

// A result's elements, as they are counted (`strides`, or one after the other) and where they lie.
Nest placed(const View& v, std::vector<i64> strides = {}) {
  if (strides.empty()) {
    strides.assign(v.dims.size(), 1);
    for (std::size_t d = v.dims.size(); d-- > 1;) strides[d - 1] = strides[d] * v.sizes[d];
  }
  Nest nest;
  for (std::size_t d = 0; d < v.dims.size(); ++d) add_loop(nest, v.sizes[d], {strides[d], v.strides[d]});
  return nest;
}

Plan plan_of(const Call& call) {
  const GroupRowsAttrs& a = call.attrs<GroupRowsAttrs>();
  const View &which = call.in[0], &place = call.out[0], &lost = call.out[4];
  const int at = position(which.dims, a.whole), here = position(place.dims, a.batch);
  Plan p{.members = call.graph.size(a.from), .room = call.out[1].size(a.rows)};
  p.experts = a.experts / p.members;
  p.member = p.members > 1 ? (place.offsets[here] - which.offsets[at]) / place.sizes[here] : 0;
  p.step = place.sizes[here] * which.strides[at];
  i64 stride = p.places_size = place.elements();
  for (DimId d : place.dims) {
    stride /= place.size(d);
    add_loop(p.tokens, place.valid(d), {which.stride(d == a.batch ? a.whole : d), stride, lost.stride(d)});
  }
  for (const int k : {0, 1, 2}) p.results[k] = placed(call.out[k]);
  p.results[3] = placed(call.out[3], {1, p.members});  // turned
  p.padding = Padding(place), p.losts = Padding(lost);
  return p;
}

// Without gaps; what is lost goes straight to its result.
struct Counted {
  std::int32_t *place, *expert, *there;
  float* lost;
};

// Of this member the places are counted from 0 for every target: what comes before them is known at the end.
void count(const Plan& p, const std::int32_t* which, std::vector<i64>& used, const Counted& r) {
  std::fill(used.begin(), used.end(), 0);
  std::fill_n(r.there, p.members * p.members, 0);
  i64 came = 0;
  for (i64 from = 0; from < p.members; ++from)
    run_nest(p.tokens, [&](Steps at) {
      const std::int32_t expert = which[from * p.step + at[0]];
      const i64 to = expert / p.experts;
      const bool exists = expert >= 0 && to < p.members, fits = exists && used[to] < p.room;
      if (fits && to == p.member) r.expert[came++] = expert;
      if (from == p.member) {
        r.place[at[1]] = fits ? r.there[from * p.members + to] : -1;
        if (r.lost && exists && !fits) r.lost[at[2]] += 1;
      }
      if (fits) ++used[to], ++r.there[from * p.members + to];
    });
  std::fill(r.expert + came, r.expert + p.room, -1);
}

void run(const Plan& p, std::vector<i64>& used, std::vector<std::int32_t>& counted, const Args& args) {
  const i64 n = p.members;
  const Counted r{.place = counted.data() + n * n + p.room,
                  .expert = counted.data() + n * n,
                  .there = counted.data(),
                  .lost = args.output<float>(4)};
  if (r.lost) run_nest(p.tokens, [&](Steps at) { r.lost[at[2]] = 0; });
  count(p, args.input<std::int32_t>(0), used, r);
  for (i64 to = 0, before = 0; to < n; before += r.there[p.member * n + to++]) used[to] = before;
  const std::int32_t* own = args.input<std::int32_t>(0) + p.member * p.step;
  run_nest(p.tokens, [&](Steps at) {
    if (r.place[at[1]] >= 0) r.place[at[1]] += static_cast<std::int32_t>(used[own[at[0]] / p.experts]);
  });
  const std::int32_t* const from[] = {r.place, r.expert, r.there, r.there};
  for (const int k : {0, 1, 2, 3})
    if (std::int32_t* const to = args.output<std::int32_t>(k))
      run_nest(p.results[k], [&](Steps at) { to[at[1]] = from[k][at[0]]; });
  p.padding.clear(args.output<std::int32_t>(0)), p.losts.clear(r.lost);
}

Runner prepare(const Call& call) {
  const Plan p = plan_of(call);
  return [p, used = std::vector<i64>(p.members),
          counted = std::vector<std::int32_t>(p.members * p.members + p.room + p.places_size)](
             const Args& args) mutable { run(p, used, counted, args); };
}

constexpr Kernel kernels[] = {{.name = "plain", .prepare = &prepare}};

}  // namespace

std::span<const Kernel> group_rows_kernels() { return kernels; }

}  // namespace stretto
