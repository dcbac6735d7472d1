#include "stretto/models/family.h"

#include <numeric>

#include "stretto/base/text.h"
#include "stretto/models/head.h"

namespace stretto {

i64 ParamSpec::elements() const { return std::accumulate(sizes.begin(), sizes.end(), i64(1), std::multiplies<>()); }

ParamSpec ParamSpec::part(i64 i) const {
  ParamSpec one = *this;
  one.parts = 0;
  one.sizes.erase(one.sizes.begin());
  one.stored.replace(one.stored.find("{}"), 2, std::to_string(i));
  return one;
}

namespace {

// A parameter as matrices: how many, and their sizes in ours.
struct Matrices {
  i64 count = 1, first = 1, second = 1;
};
Matrices matrices_of(const ParamSpec& p) {
  Matrices m;
  if (p.batched) m.count = p.sizes[0];
  const auto begin = p.sizes.begin() + p.batched;
  m.first = std::accumulate(begin, begin + p.rows, i64(1), std::multiplies<>());
  m.second = p.elements() / (m.count * m.first);
  return m;
}

}  // namespace

std::vector<i64> ParamSpec::stored_shape() const {
  const Matrices m = matrices_of(*this);
  const i64 second = cut ? cut->total : m.second;
  std::vector<i64> shape;
  if (batched) shape.push_back(m.count);
  if (rows == 0) return shape.push_back(second), shape;
  for (i64 n : transposed ? std::vector{second, m.first} : std::vector{m.first, second}) shape.push_back(n);
  return shape;
}

std::vector<i64> ParamSpec::stored_places() const {
  const Matrices m = matrices_of(*this);
  const i64 total = cut ? cut->total : m.second;
  std::vector<i64> places;
  for (i64 b = 0; b < m.count; ++b)
    for (i64 r = 0; r < m.first; ++r)
      for (i64 c = 0; c < m.second; ++c) {
        const i64 there = cut ? c / cut->block * cut->stride + cut->offset + c % cut->block : c;
        places.push_back(b * m.first * total + (transposed ? there * m.first + r : r * total + there));
      }
  return places;
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

Tensor logits_of(Trace& t, const ModelConfig& c, Tensor ids) {
  return head_logits(t, c, family_named(c.family).hidden(t, c, ids), ids.dim("seq"));
}

Model make_model(const ModelConfig& config, i64 rows, i64 seq) {
  const ModelConfig c = checked(config);
  const Family& family = family_named(c.family);
  if (rows < 1) throw Error("model", "{} sequences per step", rows).hint("use at least 1");
  if (seq < 0) throw Error("model", "sequences of {} ids", seq).hint("use at least 1, or 0 for the context");
  return [c, &family, rows, length = seq ? seq : c.context](Trace& t) {
    const Dim batch = t.batch("batch", rows), seq = t.size("seq", length);
    const Tensor ids = t.ids("ids", {batch, seq}), targets = t.ids("targets", {batch, seq});
    const Loss loss = head_loss(t, c, family.hidden(t, c, ids), targets);
    return t.training() ? loss + t.penalties : loss;
  };
}

Model make_decoder(const ModelConfig& config) {
  const ModelConfig c = checked(config);
  return [c](Trace& t) {
    const Dim batch = t.batch("batch", 1), seq = t.size("seq", 1);
    const Tensor logits = logits_of(t, c, t.ids("ids", {batch, seq}));
    t.metric("logits", logits, Accumulate::concat);
    return mean_of(logits);
  };
}

}  // namespace stretto
