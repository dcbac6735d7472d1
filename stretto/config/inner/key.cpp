// The forms of values that are more than a number, a word or a choice.
#include "stretto/config/inner/key.h"

#include <algorithm>

namespace stretto {
namespace {

constexpr std::size_t most_parts = 1000;  // of a mixture

const std::string* text_in(const Field* field) { return field ? std::get_if<std::string>(&field->value) : nullptr; }

}  // namespace

std::optional<std::vector<std::size_t>> choose_several(FieldReader& section, std::string_view key,
                                                       const std::vector<std::string>& names) {
  std::vector<std::string> words;
  if (!section.read(key, words)) return std::nullopt;
  std::vector<std::size_t> chosen;
  for (const std::string& word : words) {
    const auto known = std::find(names.begin(), names.end(), word);
    if (known == names.end()) {
      const auto near = nearest(word, names);
      section.fail_hint(key, fmt::format("must be one of {}, or a list of them", join(names, ", ")),
                        near ? fmt::format("did you mean \"{}\"?", *near) : "");
      return std::nullopt;
    }
    chosen.push_back(known - names.begin());
  }
  return chosen;
}

bool read_value(FieldReader& section, std::string_view key, std::vector<int>& to, const AutoOrList& form) {
  const Field* field = section.raw(key);
  if (!field) return false;
  if (const std::string* text = text_in(field); text && *text == "auto") return to.clear(), true;
  int single = 0;
  if (form.one && !field->array() && !text_in(field))
    return section.read(key, single, form.range) && (to.assign({single}), true);
  if (!field->array() || field->array()->empty()) {
    section.fail_hint(key, fmt::format("must be \"auto\" or {}", form.str()), fmt::format("e.g. {}", form.example));
    return false;
  }
  std::vector<i64> counts;
  if (!section.read(key, counts, form.range)) return false;
  to.assign(counts.begin(), counts.end());
  return true;
}
std::string words_of(const std::vector<int>&, const AutoOrList& form) { return "auto, or " + form.str(); }

bool read_value(FieldReader& section, std::string_view key, SegmentSizes& to, const Range& range) {
  const Field* field = section.raw(key);
  if (!field || !field->array()) return section.read(key, to.count, range);
  if (field->array()->empty()) {
    section.fail_hint(key, "names no segments", "say how many tokens each has, e.g. [2048, 1024, 1024]");
    return false;
  }
  return section.read(key, to.sizes, range);
}
Field field_of(const SegmentSizes& s, const Range&) {
  return s.sizes.empty() ? Field(s.count) : Field(Field::Array(s.sizes.begin(), s.sizes.end()));
}
std::string words_of(const SegmentSizes&, const Range& range) {
  return range.str("whole number") + ", or a list of them, in tokens";
}

bool read_value(FieldReader& section, std::string_view key, std::vector<MixturePart>& to) {
  bool right = true;
  for (FieldReader& part : section.sections(key)) {
    MixturePart& p = to.emplace_back();
    part.need("path");
    right = part.read("path", p.path) && right;
    if (p.path.empty() && part.has("path")) part.fail("path", "names no files");
    right = (part.read("weight", p.weight, above_up_to(0, 1e12)) || !part.has("weight")) && right;
  }
  const Field* given = section.raw(key);
  if (!given || !given->array()) return false;
  if (to.empty() || to.size() > most_parts)
    section.fail_hint(key, fmt::format("must have from 1 to {} parts", most_parts),
                      "e.g. [{path = \"books.bin\", weight = 0.7}, {path = \"code.bin\", weight = 0.3}]");
  return right && !to.empty();
}
Field field_of(const std::vector<MixturePart>& mixture) {
  Field::Array parts;
  for (const MixturePart& p : mixture)
    parts.push_back(Field(Field::Table{{"path", field_of(p.path)}, {"weight", Field(p.weight)}}));
  return mixture.empty() ? Field() : Field(std::move(parts));
}
std::string words_of(const std::vector<MixturePart>&) { return "list of {path, weight}"; }

bool read_value(FieldReader& section, std::string_view key, ShareOrFiles& to) {
  const Field* given = section.raw(key);
  if (given && (given->array() || text_in(given))) return section.read(key, to.files);
  const bool right = section.read(key, to.share, at_least(0));
  if (right && to.share >= 1)
    section.fail_hint(key, "must be below 1", "give the part of the data, e.g. 0.05, or a file");
  return right && to.share < 1;
}
Field field_of(const ShareOrFiles& v) { return v.files.empty() ? Field(v.share) : field_of(v.files); }
std::string words_of(const ShareOrFiles&) { return "number from 0 up to, not including, 1, or files"; }

bool read_value(FieldReader& section, std::string_view key, TimelineStep& to) {
  const Field* field = section.raw(key);
  if (!field) return false;
  const std::string* text = text_in(field);
  const bool* flag = std::get_if<bool>(&field->value);
  if ((text && *text != "last") || (flag && *flag)) {
    section.fail_hint(key, "must be the number of a step, \"last\", or 0 for none", "");
    return false;
  }
  to = {.last = text != nullptr};
  return text || flag || section.read(key, to.number, at_least(0));
}
Field field_of(const TimelineStep& v) { return v.last ? Field("last") : Field(v.number); }
std::string words_of(const TimelineStep&) { return "whole number of at least 0, or last"; }

// {x = 2, y = 2}: in the order of the file, major to minor.
bool read_value(FieldReader& section, std::string_view key, Mesh& to) {
  if (!section.raw(key)) return false;
  FieldReader axes = section.section(key);
  bool right = axes.field().table()->size() > 0 || section.field().find(key)->table();
  for (const Member& m : *axes.field().table()) {
    Axis axis{m.key, 1};
    right = axes.read(m.key, axis.size, between(1, ParallelSection::most_ranks)) && right;
    to.push_back(std::move(axis));
  }
  return right;
}
Field field_of(const Mesh& mesh) {
  Field::Table axes;
  for (const Axis& a : mesh) axes.push_back({a.name, Field(a.size)});
  return axes.empty() ? Field() : Field(std::move(axes));
}
std::string words_of(const Mesh&) { return "table {axis = size}"; }

// {batch = "data", seq_r = ["context", "tensor"]}
bool read_value(FieldReader& section, std::string_view key, Layout& to) {
  if (!section.raw(key)) return false;
  FieldReader dims = section.section(key);
  bool right = section.field().find(key)->table() != nullptr;
  for (const Member& m : *dims.field().table()) {
    std::vector<std::string> axes;
    right = dims.read(m.key, axes) && right;
    LayoutEntry entry{m.key, {}};
    entry.axes.assign(axes.begin(), axes.end());
    to.push_back(std::move(entry));
  }
  return right;
}
Field field_of(const Layout& layout) {
  Field::Table dims;
  for (const LayoutEntry& e : layout) dims.push_back({e.dim, Field(Field::Array(e.axes.begin(), e.axes.end()))});
  return dims.empty() ? Field() : Field(std::move(dims));
}
std::string words_of(const Layout&) { return "table {dim = axis, or a list of axes}"; }

// {router = "f32"}
bool read_value(FieldReader& section, std::string_view key, Precision& to) {
  if (!section.raw(key)) return false;
  FieldReader names = section.section(key);
  bool right = section.field().find(key)->table() != nullptr;
  const std::vector<std::string> types{"f32"};
  for (const Member& m : *names.field().table()) {
    right = names.choose_index(m.key, types).has_value() && right;
    to.in_f32.push_back(m.key);
  }
  return right;
}
Field field_of(const Precision& p) {
  Field::Table names;
  for (const std::string& name : p.in_f32) names.push_back({name, Field("f32")});
  return names.empty() ? Field() : Field(std::move(names));
}
std::string words_of(const Precision&) { return "table {name = \"f32\"}"; }

}  // namespace stretto
