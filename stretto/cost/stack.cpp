#include "stretto/cost/stack.h"

#include "stretto/base/text.h"
#include "stretto/cost/inner/shipped.h"
#include "stretto/formats/fields.h"

namespace stretto {
namespace {

constexpr Range part_range{.least = 0, .most = 1}, second_range{.least = 0, .most = 1e6},
    byte_range{.least = 0, .most = 1e3};

void read_attention(FieldReader& reader, Stack& s) {
  reader.choose("attention", s.kept, {{"kept", true}, {"flash", false}});
  reader.read("kernel", s.kernel);
  FieldReader scores = reader.section("scores");
  scores.read("forward", s.scores_forward, above_up_to(0, 1e3));
  scores.read("backward", s.scores_backward, byte_range);
  scores.read("kept", s.scores_kept, byte_range);
}

void read_memory(FieldReader memory, Stack::Memory& m) {
  memory.read("copies", m.copies);
  memory.read("context", m.context);
  memory.read("logits", m.logits, byte_range);
  memory.read("reserved", m.reserved, between(1, 10));
}

Stack read_stack_fields(const Field& fields, std::string name) {
  Stack s{.name = std::move(name)};
  FieldReader reader(fields);
  read_attention(reader, s);
  FieldReader hidden = reader.section("hidden");
  hidden.read("tensor", s.hidden.tensor, part_range);
  hidden.read("exchanges", s.hidden.exchanges, part_range);
  hidden.read("sums", s.hidden.sums, part_range);
  hidden.read("messages", s.hidden.messages, part_range);
  hidden.read("gathers", s.hidden.gathers, part_range);
  hidden.read("beside", s.beside, part_range);
  reader.choose("gradients", s.gradient_bytes, {{"program", 0.0}, {"16bit", 2.0}, {"f32", 4.0}});
  reader.read("cut_messages", s.cut_messages);
  reader.read("cut_exchanges", s.cut_exchanges);
  reader.read("one_wire", s.one_wire);
  reader.read("joined_backward", s.joined_backward);
  reader.read("free_update", s.free_update);
  reader.read("keeps_gathered", s.keeps_gathered);
  reader.read("joined_products", s.joined_products);
  reader.read("narrow_gathers", s.narrow_gathers);
  reader.read("balanced_context", s.balanced_context);
  FieldReader recompute = reader.section("recompute");
  recompute.choose("full", s.whole_layers, {{"layers", true}, {"program", false}});
  using Selective = Stack::Selective;
  recompute.choose(
      "selective", s.selective,
      {{"attention", Selective::attention}, {"products", Selective::products}, {"program", Selective::program}});
  reader.read("masks", s.masks, byte_range);
  read_memory(reader.section("memory"), s.memory);
  reader.read("passes", s.passes, between(0, 100));
  reader.read("update", s.update, between(0, 100));
  reader.read("logits", s.logits, byte_range);
  reader.read("floor", s.floor, second_range);
  reader.read("step", s.step, second_range);
  reader.read("growth", s.growth, part_range);
  reader.read("reserve", s.reserve, at_least(0));
  reader.read("factor", s.factor, above_up_to(0, 100));
  FieldReader factors = reader.section("factors");
  if (const Field::Table* table = factors.field().table())
    for (const Member& m : *table) factors.read(m.key, s.factors[m.key], above_up_to(0, 100));
  reader.finish();
  return s;
}

}  // namespace

Stack read_stack(const std::string& name) {
  return with_hint("docs/costs.md says what a stack file holds",
                   [&] { return read_stack_fields(read_shipped("stack", shipped_stacks(), name), name); });
}

}  // namespace stretto
