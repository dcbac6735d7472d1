#include "stretto/models/family.h"

#include <numeric>

#include "stretto/base/text.h"
#include "stretto/models/layers.h"

namespace stretto {

i64 ParamSpec::elements() const { return std::accumulate(sizes.begin(), sizes.end(), i64(1), std::multiplies<>()); }

ParamSpec ParamSpec::part(i64 i) const {
  ParamSpec one = *this;
  one.parts = 0;
  one.sizes.erase(one.sizes.begin());
  one.stored.replace(one.stored.find("{}"), 2, std::to_string(i));
  return one;
}

std::vector<i64> ParamSpec::stored_shape() const {
  if (rows == 0) return {elements()};
  const i64 first = std::accumulate(sizes.begin(), sizes.begin() + rows, i64(1), std::multiplies<>());
  const i64 second = elements() / first;
  return transposed ? std::vector{second, first} : std::vector{first, second};
}

std::span<const Family* const> families() {
  static constexpr const Family* all[] = {
#define FAMILY(name) &name##_family,
#include "stretto/models/families.def"
#undef FAMILY
  };
  return all;
}

const Family& family_named(std::string_view name) {
  std::vector<std::string> names;
  for (const Family* f : families()) {
    if (f->name == name) return *f;
    names.emplace_back(f->name);
  }
  const auto near = nearest(name, names);
  throw Error("model.family", "there is no family '{}'", name)
      .hint("{}the families are {}", near ? fmt::format("did you mean '{}'? ", *near) : "", join(names, ", "));
}

Model make_model(const ModelConfig& config, i64 rows, i64 seq) {
  const ModelConfig c = checked(config);
  const Family& family = family_named(c.family);
  if (rows < 1) throw Error("model", "{} sequences per step", rows).hint("use at least 1");
  if (seq < 0) throw Error("model", "sequences of {} ids", seq).hint("use at least 1, or 0 for the context");
  return [c, &family, rows, length = seq ? seq : c.context](Trace& t) {
    const Dim batch = t.batch("batch", rows), seq = t.size("seq", length);
    const Tensor ids = t.ids("ids", {batch, seq}), targets = t.ids("targets", {batch, seq});
    const Loss loss = cross_entropy(family.logits(t, c, ids), targets, vocab_dim(c));
    return t.training() ? loss + t.penalties : loss;
  };
}

Model make_decoder(const ModelConfig& config) {
  const ModelConfig c = checked(config);
  const Family& family = family_named(c.family);
  return [c, &family](Trace& t) {
    const Dim batch = t.batch("batch", 1), seq = t.size("seq", 1);
    const Tensor logits = family.logits(t, c, t.ids("ids", {batch, seq}));
    t.metric("logits", logits, Accumulate::concat);
    return mean_of(logits);
  };
}

}  // namespace stretto
