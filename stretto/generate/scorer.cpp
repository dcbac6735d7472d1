#include "stretto/generate/scorer.h"

#include "stretto/compile/compile.h"
#include "stretto/models/family.h"

namespace stretto {
namespace {

Model scoring(const ModelConfig& c) {
  return [c](Trace& t) {
    const Dim batch = t.batch("batch", 1), seq = t.size("seq", c.context);
    const Tensor logits = logits_of(t, c, t.ids("ids", {batch, seq}));
    t.metric("logits", logits, Accumulate::concat);
    return mean_of(logits);
  };
}

ModelConfig unpadded(ModelConfig c) {
  c.pad_vocab = 1;
  c.documents = false;
  return checked(c);
}

template <class T>
void append(Array& to, const std::vector<double>& values) {
  for (const double v : values) {
    const T x = static_cast<T>(v);
    const auto* bytes = reinterpret_cast<const std::byte*>(&x);
    to.bytes.insert(to.bytes.end(), bytes, bytes + sizeof x);
  }
}

}  // namespace

Scorer::Scorer(const ModelConfig& c, const Weights& weights)
    : config_(unpadded(c)),
      forward_(
          compile_forward(scoring(config_), {.dtype = weights.empty() ? f32 : weights.begin()->second.dtype}, {})) {
  for (const auto& [name, array] : weights) forward_.set_parameter(name, array);
}

// Row by row: logits are large.
Array Scorer::logits(const Array& ids) {
  if (ids.dtype != i32 || ids.sizes.size() != 2)
    throw Error("logits", "ids are {}", ids.str()).hint("give i32[rows, length]");
  const i64 rows = ids.sizes[0], length = ids.sizes[1];
  if (length < 1 || length > config_.context)
    throw Error("logits", "rows have {} ids, and the model's context is {}", length, config_.context)
        .hint("give rows of 1 to {}", config_.context);
  const DType dtype = forward_.compiled().params.list().front().logical_dtype();
  Array all{dtype, {rows, length, config_.vocab}, {}};
  all.bytes.reserve(std::size_t(all.elements()) * size_of(dtype));
  const std::span<const std::int32_t> each = ids.as<std::int32_t>();
  for (i64 r = 0; r < rows; ++r) {
    const Batch row{{"ids", Array::of<std::int32_t>(each.subspan(r * length, length), {1, length})}};
    const StepResult said = forward_.evaluate(row, {{"batch", 1}, {"seq", length}});
    const std::vector<double>& values = said.lists.at("logits");
    dtype == f64 ? append<double>(all, values) : append<float>(all, values);
  }
  return all;
}

}  // namespace stretto
