#include "stretto/ops/rotary.h"

#include "stretto/ops/ops.h"
#include "stretto/ops/rules.h"

namespace stretto {
namespace {

RotaryAttrs attrs_of(Tensor x, const Dim& seq, const Dim& head, const RotaryOptions& o) {
  const DimId s = rules::dim_of("rotary", x, seq), h = rules::dim_of("rotary", x, head);
  if (head.size % 2 || head.logical)
    throw Error("rotary", "dim '{}' of {} has {} elements; they are turned in pairs", head.name, x.str(), head.valid())
        .hint("use an even size without padding");
  if (!(o.base > 0) || o.factor < 0 || (o.factor > 0 && !(o.high_freq_factor > o.low_freq_factor)))
    throw Error("rotary", "base {}, factor {}, low_freq_factor {}, high_freq_factor {} do not fit together", o.base,
                o.factor, o.low_freq_factor, o.high_freq_factor)
        .hint("base is positive and high_freq_factor larger than low_freq_factor");
  return {s,         h,          o.base, o.factor, o.low_freq_factor, o.high_freq_factor, o.original_max_position,
          o.inverse, o.positions};
}

}  // namespace

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
          e.add(rotary(e.real({s, d}), s, d, {.base = 100, .factor = 8, .original_max_position = 40}));
          e.add(rotary(e.real({b, s, h, d}), e.ids({s}, 9), s, d, {.base = 100, .positions = 9}));
        },
    .in_place = rules::first_in_place,
};

}  // namespace stretto
