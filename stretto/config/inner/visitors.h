// The visitors of keys.h: one reads keys into the structs, one writes them into a table.
//
//   Reading reading(section);
//   keys_of(run.train, reading);
//   if (reading.right()) ...
#pragma once
#include "stretto/config/inner/keys.h"

namespace stretto {

// What a key means, and what holds without it: the hint where its value is wrong.
inline std::string what_it_is(const Key& key, const Field& usual) {
  std::string text(key.meaning);
  const bool plain = !usual.is_null() && !usual.array() && !usual.table();
  if (const std::string value = plain && key.otherwise.empty() ? usual.str() : key.otherwise; !value.empty())
    text += fmt::format("; {} if it is left out", value);
  return text;
}

struct Naming {
  std::vector<std::string>& all;
  void operator()(const Key& key, auto&&...) const { all.emplace_back(key.name); }
  void table(const Key& key, auto&) const { all.emplace_back(key.name); }
};
template <class T>
std::vector<std::string> names_in(T& table) {
  std::vector<std::string> all;
  keys_of(table, Naming{all});
  return all;
}

// Remembers whether all keys that are there were right.
class Reading {
 public:
  explicit Reading(FieldReader& reader) : reader_(reader) {}

  template <class T, class... L>
  void operator()(const Key& key, T&& value, const L&... limits) {
    const bool there = reader_.has(key.name);
    if (key.foreign.empty()) {
      const std::size_t before = reader_.faults_so_far();
      const bool right = read_value(reader_, key.name, value, limits...) || !there;
      if (!right) reader_.hint_since(before, what_it_is(key, field_of(value, limits...)));
      right_ = right && right_;
    } else if (reader_.raw(key.name)) {
      reader_.fail_hint(key.name, fmt::format("{} has no {}", key.foreign, key.name), "leave it out");
      right_ = false;
    }
  }
  template <class T>
  void table(const Key& key, T& value) {
    const bool is_table = !reader_.has(key.name) || reader_.field().find(key.name)->table();
    const std::size_t before = reader_.faults_so_far();
    FieldReader inner = reader_.section(key.name);
    if (!is_table) reader_.hint_since(before, fmt::format("its keys: {}", join(names_in(value), ", ")));
    Reading reading(inner);
    keys_of(value, reading);
    right_ = reading.right() && is_table && right_;
  }
  template <class T>
  void table(const Key& key, std::optional<T>& value) {
    T inner;
    table(key, inner);
    if (reader_.has(key.name)) value = inner;
  }
  bool right() const { return right_; }

 private:
  FieldReader& reader_;
  bool right_ = true;
};

struct Writing {
  Field& to;

  template <class T, class... L>
  void operator()(const Key& key, T&& value, const L&... limits) const {
    if (key.foreign.empty()) to.set(key.name, field_of(value, limits...));
  }
  template <class T>
  void table(const Key& key, T& value) const {
    keys_of(value, Writing{to.set(key.name, Field(Field::Table{}))});
  }
  template <class T>
  void table(const Key& key, std::optional<T>& value) const {
    if (value) table(key, *value);
  }
};

}  // namespace stretto
