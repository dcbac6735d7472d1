// Random trees for RapidCheck: `*random_table(3)` is a table at most three levels deep.
#pragma once
#include <rapidcheck.h>

#include <algorithm>
#include <set>

#include "stretto/formats/fields.h"

namespace stretto::test {

inline rc::Gen<std::string> random_text() {
  static const std::vector<std::string> pieces{"a",  "Z",  "_",  "-",    "0",    " ", ".", "\"", "'",
                                               "\\", "\n", "\t", "\x01", "\x7f", "é", "😀", "#",  "="};
  return rc::gen::map(rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(pieces)),
                      [](const std::vector<std::string>& v) {
                        std::string s;
                        for (const auto& p : v) s += p;
                        return s;
                      });
}

inline rc::Gen<Field> random_table(int depth);

inline rc::Gen<Field> random_field(int depth) {
  return rc::gen::exec([depth]() -> Field {
    switch (*rc::gen::inRange(0, depth > 0 ? 7 : 4)) {
      case 0:
        return Field(*rc::gen::arbitrary<bool>());
      case 1:
        return Field(*rc::gen::arbitrary<i64>());
      case 2:
        return Field(*rc::gen::arbitrary<double>());
      case 3:
        return Field(*random_text());
      case 4: {
        Field::Array array;
        for (int n = *rc::gen::inRange(0, 4); n > 0; --n) array.push_back(*random_field(depth - 1));
        return Field(std::move(array));
      }
      default:
        return *random_table(depth - 1);
    }
  });
}

inline rc::Gen<Field> random_table(int depth) {
  return rc::gen::exec([depth]() -> Field {
    Field::Table table;
    for (const auto& key : *rc::gen::unique<std::vector<std::string>>(random_text()))
      if (table.size() < 6) table.push_back({key, *random_field(depth)});
    return Field(std::move(table));
  });
}

// TOML has a table's plain values before its sub-tables, so that is the order in which they come back.
inline Field in_toml_order(Field field) {
  const auto below = [](const Field& f) {
    const auto* array = f.array();
    return f.table() || (array && !array->empty() &&
                         std::all_of(array->begin(), array->end(), [](const Field& e) { return e.table(); }));
  };
  if (auto* array = std::get_if<Field::Array>(&field.value))
    for (Field& f : *array) f = below(field) ? in_toml_order(f) : f;
  if (auto* table = std::get_if<Field::Table>(&field.value)) {
    std::stable_sort(table->begin(), table->end(),
                     [&](const Member& a, const Member& b) { return below(a.value) < below(b.value); });
    for (Member& m : *table) m.value = below(m.value) ? in_toml_order(m.value) : m.value;
  }
  return field;
}

}  // namespace stretto::test
