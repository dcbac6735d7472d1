// One key of a run, and the forms that its value may have. A section names each of its keys once, with `keys_of`; the
// visitors read it, write it and describe it:
//
//   visit(Key{"steps", "optimizer steps of the run"}, s.steps, at_least(1));
//   visit(Key{"betas", "..."}.only(s.name != "sgd", "optimizer", s.name), s.betas, from_below(0, 1));
#pragma once
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stretto/base/text.h"
#include "stretto/config/run.h"
#include "stretto/formats/fields.h"

namespace stretto {

struct Key {
  std::string_view name, meaning;
  std::string otherwise = {};  // the default in words, where it is no plain value: "width / heads"
  std::string foreign = {};    // not empty: who does not have this key, e.g. "optimizer 'adamw'"

  Key&& only(bool known, std::string_view kind, std::string_view chosen) && {
    if (!known) foreign = fmt::format("{} '{}'", kind, chosen);
    return std::move(*this);
  }
};

// What a value is one of. With a vector: one of them, or a list.
template <class T>
struct Choices : std::vector<std::pair<std::string_view, T>> {
  using std::vector<std::pair<std::string_view, T>>::vector;
  std::vector<std::string> words() const {
    std::vector<std::string> all;
    for (const auto& c : *this) all.emplace_back(c.first);
    return all;
  }
  // Words that are asked for and refused with a reason, not as unknown ones.
  struct Never {
    std::vector<std::string_view> words = {};
    std::string_view why = {}, hint = {};
  };
  Never refused = {};
  Choices never(std::vector<std::string_view> all, std::string_view why, std::string_view hint) && {
    refused = {std::move(all), why, hint};
    return std::move(*this);
  }
};
inline Choices<std::string> names(std::initializer_list<std::string_view> all) {
  Choices<std::string> c;
  for (const std::string_view name : all) c.emplace_back(name, name);
  return c;
}

// Text that the library understands, and refuses itself: what it may be, in words.
struct Words {
  std::string text;
};

// "auto" or a list of whole numbers.
struct AutoOrList {
  Range range;
  std::string_view example = "[3, 2, 2, 3]";
  bool one = false;  // a single number stands for a list of one
  std::string str() const { return range.str(one ? "one or several whole numbers" : "a list of whole numbers"); }
};

// A share of the data, or files.
struct ShareOrFiles {
  double& share;
  std::vector<std::string>& files;
};

// Each form: read it (a wrong value becomes a fault of the reader; whether it is there and right), write it (null: it
// is left out), say what it may be.
bool read_value(FieldReader&, std::string_view key, std::vector<int>& to, const AutoOrList&);
bool read_value(FieldReader&, std::string_view key, SegmentSizes& to, const Range&);
bool read_value(FieldReader&, std::string_view key, std::vector<MixturePart>& to);
bool read_value(FieldReader&, std::string_view key, ShareOrFiles& to);
bool read_value(FieldReader&, std::string_view key, TimelineStep& to);
bool read_value(FieldReader&, std::string_view key, Mesh& to);
bool read_value(FieldReader&, std::string_view key, Layout& to);
bool read_value(FieldReader&, std::string_view key, Precision& to);

inline bool read_value(FieldReader& r, std::string_view key, std::string& to, const Words&) { return r.read(key, to); }
template <class T>
bool read_value(FieldReader& r, std::string_view key, T& to) {
  return r.read(key, to);
}
template <class T>
bool read_value(FieldReader& r, std::string_view key, T& to, const Range& range) {
  return r.read(key, to, range);
}
template <class T>
bool read_value(FieldReader& r, std::string_view key, T& to, const Choices<T>& choices) {
  if (const Field* field = choices.refused.words.empty() ? nullptr : r.raw(key)) {
    const std::string* word = std::get_if<std::string>(&field->value);
    for (const std::string_view never : choices.refused.words)
      if (word && *word == never)
        return r.fail_hint(key, std::string(choices.refused.why), std::string(choices.refused.hint)), false;
  }
  const auto chosen = r.choose_index(key, choices.words());
  if (chosen) to = choices[*chosen].second;
  return chosen.has_value();
}
std::optional<std::vector<std::size_t>> choose_several(FieldReader&, std::string_view key,
                                                       const std::vector<std::string>& names);
// The first choice by itself is what an empty list means.
template <class T>
bool read_value(FieldReader& r, std::string_view key, std::vector<T>& to, const Choices<T>& choices) {
  const auto chosen = choose_several(r, key, choices.words());
  if (!chosen) return false;
  to.clear();
  if (*chosen != std::vector<std::size_t>{0})
    for (const std::size_t i : *chosen) to.push_back(choices[i].second);
  return true;
}

Field field_of(const SegmentSizes&, const Range&);
Field field_of(const std::vector<MixturePart>&);
Field field_of(const ShareOrFiles&);
Field field_of(const TimelineStep&);
Field field_of(const Mesh&);
Field field_of(const Layout&);
Field field_of(const Precision&);
inline Field field_of(const std::vector<int>& v, const AutoOrList&) {
  return v.empty() ? Field("auto") : Field(Field::Array(v.begin(), v.end()));
}

inline Field field_of(const std::optional<bool>& v) { return v ? Field(*v) : Field(); }
inline Field field_of(const std::vector<std::string>& v) {
  return v.empty() ? Field() : Field(Field::Array(v.begin(), v.end()));
}
inline Field field_of(const std::vector<double>& v, const Range&) { return Field(Field::Array(v.begin(), v.end())); }
template <class T>
requires std::constructible_from<Field, T> Field field_of(const T& v) { return Field(v); }
template <class T>
requires std::constructible_from<Field, T> Field field_of(const T& v, const Range&) { return Field(v); }
inline Field field_of(const std::string& v, const Words&) { return Field(v); }
template <class T>
Field field_of(const T& v, const Choices<T>& choices) {
  for (const auto& [name, choice] : choices)
    if (choice == v) return Field(std::string(name));
  return Field();
}
// An empty list is the first choice.
template <class T>
Field field_of(const std::vector<T>& v, const Choices<T>& choices) {
  Field::Array all;
  for (const T& one : v) all.push_back(field_of(one, choices));
  return v.empty() ? Field(std::string(choices[0].first)) : Field(std::move(all));
}

// What may stand there, for help.
inline std::string words_of(bool) { return "true or false"; }
inline std::string words_of(const std::optional<bool>&) { return "true or false"; }
inline std::string words_of(const std::string&) { return "text"; }
inline std::string words_of(const std::vector<std::string>&) { return "text, or a list of texts"; }
inline std::string words_of(double, const Range& range) { return range.str("number"); }
inline std::string words_of(i64, const Range& range) { return range.str("whole number"); }
inline std::string words_of(int, const Range& range) { return range.str("whole number"); }
inline std::string words_of(const std::vector<double>&, const Range& range) { return range.str("list of numbers"); }
inline std::string words_of(const std::string&, const Words& words) { return words.text; }
template <class T>
std::string words_of(const T&, const Choices<T>& choices) {
  return join(choices.words(), ", ");
}
template <class T>
std::string words_of(const std::vector<T>&, const Choices<T>& choices) {
  return join(choices.words(), ", ") + ", or a list of them";
}
std::string words_of(const std::vector<int>&, const AutoOrList&);
std::string words_of(const SegmentSizes&, const Range&);
std::string words_of(const std::vector<MixturePart>&);
std::string words_of(const ShareOrFiles&);
std::string words_of(const TimelineStep&);
std::string words_of(const Mesh&);
std::string words_of(const Layout&);
std::string words_of(const Precision&);

}  // namespace stretto
