// One walk over the choices of all members' tokens, in their order, counts who goes where.
#include "stretto/ops/group_rows.h"

#include <algorithm>

#include "stretto/kernels/cpu/padding.h"

namespace stretto {
namespace {

struct Plan {
  Nest tokens;            // of one member; arrays: which, place, lost
  i64 member = 0;         // this one
  i64 members = 1;        // of the group
  i64 step = 0;           // from one member's tokens to the next one's in `which`
  i64 experts = 1;        // of a member
  i64 room = 0;           // rows that a member can take
  i64 places_size = 0;    // elements
  Padding places, losts;  // of the results
};

Plan plan_of(const Call& call) {
  const GroupRowsAttrs& a = call.attrs<GroupRowsAttrs>();
  const View &which = call.in[0], &place = call.out[0], &lost = call.out[4];
  const int at = position(which.dims, a.whole), here = position(place.dims, a.batch);
  Plan p{.members = call.graph.size(a.from), .room = call.out[1].size(a.rows)};
  p.experts = a.experts / p.members;
  p.member = p.members > 1 ? (place.offsets[here] - which.offsets[at]) / place.sizes[here] : 0;
  p.step = place.sizes[here] * which.strides[at];
  for (DimId d : place.dims)
    add_loop(p.tokens, place.valid(d), {which.stride(d == a.batch ? a.whole : d), place.stride(d), lost.stride(d)});
  p.places_size = place.elements();
  p.places = Padding(place), p.losts = Padding(lost);
  return p;
}

struct Results {
  std::int32_t *place, *expert, *there, *back;
  float* lost;
};

// Of this member the places are counted from 0 for every target: what comes before them is known at the end.
void count(const Plan& p, const std::int32_t* which, std::vector<i64>& used, const Results& r) {
  std::fill(used.begin(), used.end(), 0);
  std::fill_n(r.there, p.members * p.members, 0);
  i64 came = 0;
  for (i64 from = 0; from < p.members; ++from)
    run_nest(p.tokens, [&](Steps at) {
      const std::int32_t expert = which[from * p.step + at[0]];
      const i64 to = expert / p.experts;
      const bool fits = expert >= 0 && to < p.members && used[to] < p.room;
      if (fits && to == p.member) r.expert[came++] = expert;
      if (from == p.member) {
        r.place[at[1]] = fits ? r.there[from * p.members + to] : -1;
        if (r.lost && !fits) r.lost[at[2]] += 1;
      }
      if (fits) ++used[to], ++r.there[from * p.members + to];
    });
  std::fill(r.expert + came, r.expert + p.room, -1);
}

void run(const Plan& p, std::vector<i64>& used, std::vector<std::int32_t>& spare, const Args& args) {
  // Results that nobody reads are made aside.
  const auto result = [&](int k, i64 at) { return args.out[k] ? args.output<std::int32_t>(k) : spare.data() + at; };
  const i64 n = p.members, matrix = n * n;
  const Results r{.place = result(0, 2 * matrix + p.room),
                  .expert = result(1, 2 * matrix),
                  .there = result(2, 0),
                  .back = result(3, matrix),
                  .lost = args.output<float>(4)};
  if (r.lost) run_nest(p.tokens, [&](Steps at) { r.lost[at[2]] = 0; });
  count(p, args.input<std::int32_t>(0), used, r);
  for (i64 to = 0, before = 0; to < n; before += r.there[p.member * n + to++]) used[to] = before;
  const std::int32_t* own = args.input<std::int32_t>(0) + p.member * p.step;
  run_nest(p.tokens, [&](Steps at) {
    if (r.place[at[1]] >= 0) r.place[at[1]] += static_cast<std::int32_t>(used[own[at[0]] / p.experts]);
  });
  for (i64 from = 0; from < n; ++from)
    for (i64 to = 0; to < n; ++to) r.back[to * n + from] = r.there[from * n + to];
  p.places.clear(r.place), p.losts.clear(r.lost);
}

Runner prepare(const Call& call) {
  const Plan p = plan_of(call);
  return [p, used = std::vector<i64>(p.members),
          spare = std::vector<std::int32_t>(2 * p.members * p.members + p.room + p.places_size)](
             const Args& args) mutable { run(p, used, spare, args); };
}

constexpr Kernel kernels[] = {{.name = "plain", .prepare = &prepare}};

}  // namespace

std::span<const Kernel> group_rows_kernels() { return kernels; }

}  // namespace stretto
