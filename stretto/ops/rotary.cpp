#include "stretto/ops/rotary.h"

#include <cmath>

#include "stretto/ops/inner/rules.h"
#include "stretto/ops/ops.h"

namespace stretto {
namespace {

RotaryAttrs attrs_of(Tensor x, const Dim& seq, const Dim& head, const RotaryOptions& o) {
  const DimId s = rules::dim_of("rotary", x, seq), h = rules::dim_of("rotary", x, head);
  if (head.size % 2 || head.logical)
    throw Error("rotary", "dim '{}' of {} has {} elements; they are turned in pairs", head.name, x.str(), head.valid())
        .hint("use an even size without padding");
  if (!(o.base > 0)) throw Error("rotary", "base {} is not positive", o.base).hint("use e.g. 10000");
  RotaryAttrs a{s, h, o.frequencies, o.scale, o.interleaved, o.inverse, o.positions};
  if (a.frequencies.empty()) a.frequencies = rotary_frequencies(o.base, head.size);
  if (2 * i64(a.frequencies.size()) > head.size)
    throw Error("rotary", "{} frequencies for the {} elements of dim '{}'", a.frequencies.size(), head.size, head.name)
        .hint("use one per pair, or fewer");
  return a;
}

}  // namespace

std::vector<double> rotary_frequencies(double base, i64 turned) {
  std::vector<double> all;
  for (i64 i = 0; i < turned / 2; ++i) all.push_back(std::pow(base, -2.0 * double(i) / double(turned)));
  return all;
}

Tensor rotary(Tensor x, Dim seq, Dim head, const RotaryOptions& o) {
  RotaryAttrs a = attrs_of(x, seq, head, o);
  a.positions = 0;
  return builder_of("rotary", {x}).emit(rotary_op, {x}, a);
}

Tensor rotary(Tensor x, Tensor positions, Dim seq, Dim head, const RotaryOptions& o) {
  const RotaryAttrs a = attrs_of(x, seq, head, o);
  if (positions.dtype() != i32 || positions.type().dims != DimSet{a.seq})
    throw Error("rotary", "positions {} must be i32 along '{}' alone", positions.str(), seq.name)
        .hint("use t.positions({})", seq.name);
  if (o.positions < 1)
    throw Error("rotary", "there are {} positions", o.positions).hint("say how many there are: .positions = 1024");
  return builder_of("rotary", {x, positions}).emit(rotary_op, {x, positions}, a);
}

constinit const Op rotary_op{
    .name = "rotary",
    .infer = rules::float_unary,
    .vjp =
        [](const Vjp& v) {
          RotaryAttrs back = v.attrs<RotaryAttrs>();
          back.inverse = !back.inverse;
          if (v.in.size() == 1) return std::vector{v.builder.emit(rotary_op, {v.grad[0]}, back)};
          return std::vector{v.builder.emit(rotary_op, {v.grad[0], v.in[1]}, back), Tensor{}};
        },
    .spread = [](const OpCall& c) { return Spread{.serial = {c.attrs<RotaryAttrs>().head}, .linear = {0}}; },
    .cost = rules::streaming<3>,
    .examples =
        [](Examples& e) {
          const Dim b{"b", 2}, s{"s", 5}, h{"h", 3}, d{"d", 8}, one{"one", 1};
          e.add(rotary(e.real({b, s, h, d}), s, d));
          e.add(rotary(e.real({d, s}), s, d, {.base = 100}));
          e.add(rotary(e.real({b, s, d}), s, d, {.inverse = true}));
          e.add(rotary(e.real({one, d}), one, d));
          e.add(rotary(e.real({s, d}), s, d, {.frequencies = {0.5, 0.3, 0.2, 0.05}, .scale = 1.25}));
          e.add(rotary(e.real({b, s, d}), s, d, {.frequencies = {0.5, 0.1}}));
          e.add(rotary(e.real({s, h, d}), s, d, {.frequencies = {0.5, 0.1}, .interleaved = true}));
          e.add(rotary(e.real({d, s}), s, d, {.base = 100, .scale = 0.5, .interleaved = true, .inverse = true}));
          e.add(rotary(e.real({b, s, h, d}), e.ids({s}, 9), s, d, {.base = 100, .positions = 9}));
        },
    .in_place = rules::first_in_place,
    .out_of_range = [](const OpCall&, i64 at,
                       i64 positions) { return Error("rotary", "position {} is outside of {}", at, positions); },
};

}  // namespace stretto
