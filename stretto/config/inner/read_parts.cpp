#include "stretto/config/inner/read_parts.h"

#include "stretto/graphs/graph_file.h"

namespace stretto {
namespace {

bool is_zero(const Field& field) {
  const double* real = std::get_if<double>(&field.value);
  const i64* whole = std::get_if<i64>(&field.value);
  return (real && *real == 0) || (whole && *whole == 0);
}

}  // namespace

void blame(FieldReader& section, std::string_view key, const Error& e) {
  for (const Fault& f : e.faults()) section.blame(key, f.what, f.hint);
}

void blame_file(FieldReader& section, std::string_view key, const Error& e) {
  for (const Fault& f : e.faults()) section.blame(key, fmt::format("{}: {}", f.where, f.what), f.hint);
}

void read_graph_model(FieldReader& section, ModelSection& to) {
  section.read("graph", to.graph);
  for (const Member& m : *section.field().table())
    if (m.key != "graph") refuse_beside_graph(section, {m.key}, "leave one of the two out");
  try {
    to.config = complete({.context = positions_of(read_graph(to.graph))});
  } catch (const Error& e) {
    blame_file(section, "graph", e);
  }
}

void refuse_beside_graph(FieldReader& section, std::initializer_list<std::string_view> keys, std::string_view hint) {
  const auto given = [](const Field* f) {
    const std::string* text = f ? std::get_if<std::string>(&f->value) : nullptr;
    const bool* flag = f ? std::get_if<bool>(&f->value) : nullptr;
    return f && !(text && text->empty()) && !(flag && !*flag);  // "" and false are as without the key
  };
  for (const std::string_view key : keys)
    if (section.has(key) && given(section.raw(key)))
      section.fail_hint(key, "is of families, and model.graph is given", std::string(hint));
}

void without_poll(FieldReader& section) {
  if (const Field* poll = section.field().find("poll"); poll && is_zero(*poll)) section.raw("poll");
}

}  // namespace stretto
