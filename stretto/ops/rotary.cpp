#include "stretto/ops/rotary.h"

#include "stretto/ops/ops.h"
#include "stretto/ops/rules.h"

namespace stretto {

Tensor rotary(Tensor x, Dim seq, Dim head, const RotaryOptions& o) {
  const DimId s = rules::dim_of("rotary", x, seq), h = rules::dim_of("rotary", x, head);
  if (head.size % 2 || head.logical)
    throw Error("rotary", "dim '{}' of {} has {} elements; they are turned in pairs", head.name, x.str(), head.valid())
        .hint("use an even size without padding");
  if (!(o.base > 0) || o.factor < 0 || (o.factor > 0 && !(o.high_freq_factor > o.low_freq_factor)))
    throw Error("rotary", "base {}, factor {}, low_freq_factor {}, high_freq_factor {} do not fit together", o.base,
                o.factor, o.low_freq_factor, o.high_freq_factor)
        .hint("base is positive and high_freq_factor larger than low_freq_factor");
  return builder_of("rotary", {x})
      .emit(rotary_op, {x},
            RotaryAttrs{s, h, o.base, o.factor, o.low_freq_factor, o.high_freq_factor, o.original_max_position,
                        o.inverse});
}

constinit const Op rotary_op{
    .name = "rotary",
    .infer = rules::float_unary,
    .vjp =
        [](const Vjp& v) {
          RotaryAttrs back = v.attrs<RotaryAttrs>();
          back.inverse = !back.inverse;
          return std::vector{v.builder.emit(rotary_op, {v.grad[0]}, back)};
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
        },
    .in_place = {{{0, 0}, {-1, -1}}},
};

}  // namespace stretto
