#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "stretto/base/text.h"
#include "stretto/formats/fields.h"

namespace stretto {

struct FieldReader::Shared {
  struct Located {
    Source source;
    std::string what, hint;
  };
  std::vector<Located> faults;
  // Per table that was read, by path: what is there, and the keys that were asked for.
  struct Visit {
    std::vector<const Field*> fields;
    std::set<std::string, std::less<>> known;
  };
  std::map<std::string, Visit, std::less<>> visits;
  std::span<const Renamed> renamed;

  std::string hint_for(const std::string& path, const std::string& key) const;
};

namespace {

const Field& empty_table() {
  static const Field table{Field::Table{}};
  return table;
}

std::string full_name(std::string_view path, std::string_view key) {
  return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
}

bool inside(double v, const Range& range) {
  return !std::isnan(v) && (range.open_least ? v > range.least : v >= range.least) &&
         (range.open_most ? v < range.most : v <= range.most);
}

}  // namespace

bool Renamed::is(std::string_view word) const {
  return std::equal(theirs.begin(), theirs.end(), word.begin(), word.end(),
                    [](char a, char b) { return a == (b == '-' ? '_' : b); });
}

std::string Renamed::str() const { return fmt::format("it is '{}' here{}{}", ours, note.empty() ? "" : ", ", note); }

std::string Range::str(std::string_view numbers) const {
  const auto bound = [](double v) {
    return v == std::floor(v) && std::abs(v) < 1e15 ? fmt::format("{:.0f}", v) : fmt::format("{}", v);
  };
  const bool low = std::isfinite(least), high = std::isfinite(most);
  if (low && high && !open_least)
    return fmt::format("{} from {} {} {}", numbers, bound(least), open_most ? "up to, not including," : "to",
                       bound(most));
  std::string text(numbers);
  if (low) text += fmt::format(" {} {}", open_least ? "above" : "of at least", bound(least));
  if (high) text += fmt::format(" {}{} {}", low ? "and " : "of ", open_most ? "below" : "at most", bound(most));
  return text;
}

FieldReader::FieldReader(const Field& root) : FieldReader(std::make_shared<Shared>(), root, "") {}

FieldReader::FieldReader(std::shared_ptr<Shared> shared, const Field& field, std::string path)
    : shared_(std::move(shared)), field_(&field), path_(std::move(path)) {
  if (!field.table()) {
    shared_->faults.push_back({field.source,
                               fmt::format("{} is {} but must be a table",
                                           path_.empty() ? "the document" : "key '" + path_ + "'", field.str()),
                               ""});
    field_ = &empty_table();
  }
  auto& fields = shared_->visits[path_].fields;
  if (std::find(fields.begin(), fields.end(), field_) == fields.end()) fields.push_back(field_);
}

std::string FieldReader::full(std::string_view key) const { return full_name(path_, key); }

bool FieldReader::has(std::string_view key) const {
  const Field* field = field_->find(key);
  return field && !field->is_null();
}

const Field* FieldReader::take(std::string_view key) {
  shared_->visits[path_].known.emplace(key);
  const Field* field = field_->find(key);
  return field && !field->is_null() ? field : nullptr;
}

const Field* FieldReader::raw(std::string_view key) { return take(key); }

void FieldReader::ignore(std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) take(key);
}

const Source& FieldReader::source_of(std::string_view key) const {
  const Field* field = field_->find(key);
  return (field ? field : field_)->source;
}

std::string FieldReader::where(std::string_view key) const { return source_of(key).str(); }

void FieldReader::add_fault(std::string_view key, std::string what, std::string hint) {
  const Field* field = field_->find(key);
  if (field)
    what = fmt::format("key '{}' is {} but {}", full(key), field->str(), what);
  else
    what = fmt::format("key '{}' {}", full(key), what);
  shared_->faults.push_back({source_of(key), std::move(what), std::move(hint)});
}

void FieldReader::blame(std::string_view key, std::string what, std::string hint) {
  const Field* at = field_;
  for (std::string_view rest = key; !rest.empty();) {
    const std::size_t dot = std::min(rest.find('.'), rest.size());
    const Field* next = at->find(rest.substr(0, dot));
    if (!next) break;
    at = next;
    rest.remove_prefix(std::min(dot + 1, rest.size()));
  }
  shared_->faults.push_back({at->source, fmt::format("key '{}': {}", full(key), what), std::move(hint)});
}

std::size_t FieldReader::faults_so_far() const { return shared_->faults.size(); }

void FieldReader::hint_since(std::size_t so_far, const std::string& hint) {
  for (std::size_t i = so_far; i < shared_->faults.size(); ++i)
    if (shared_->faults[i].hint.empty()) shared_->faults[i].hint = hint;
}

void FieldReader::answer(std::span<const Renamed> renamed) { shared_->renamed = renamed; }

void FieldReader::wrong(std::string_view key, const Field& field, std::string must_be) {
  std::string hint;
  if (const auto* text = std::get_if<std::string>(&field.value);
      text && must_be == "true or false" && (*text == "True" || *text == "False"))
    hint = "write it in small letters";
  shared_->faults.push_back(
      {field.source, fmt::format("key '{}' is {} but must be {}", full(key), field.str(), must_be), hint});
}

void FieldReader::need(std::string_view key) {
  if (take(key)) return;
  shared_->faults.push_back({source_of(key), fmt::format("key '{}' is missing", full(key)), ""});
}

bool FieldReader::number(std::string_view key, const Field& field, double& to, const Range& range) {
  const auto* real = std::get_if<double>(&field.value);
  const auto* integer = std::get_if<i64>(&field.value);
  const double value = real ? *real : integer ? double(*integer) : 0;
  const bool right = (real || integer) && inside(value, range);
  if (right)
    to = value;
  else
    wrong(key, field, range.str("a number"));
  return right;
}

bool FieldReader::whole(std::string_view key, const Field& field, i64& to, const Range& range) {
  const auto* real = std::get_if<double>(&field.value);
  const auto* integer = std::get_if<i64>(&field.value);
  // 1e6 is a whole number too, as long as a double can tell it from its neighbours.
  const bool is_whole = integer || (real && *real == std::floor(*real) && std::abs(*real) <= 0x1p53);
  const i64 value = integer ? *integer : is_whole ? i64(*real) : 0;
  const bool right = is_whole && inside(double(value), range);
  if (right)
    to = value;
  else
    wrong(key, field,
          range.str("a whole number") +
              (real && inside(*real, range) && !is_whole && *real > 0x1p53 ? " that fits 64 bits" : ""));
  return right;
}

bool FieldReader::read(std::string_view key, bool& to) {
  const Field* field = take(key);
  if (!field) return false;
  const auto* value = std::get_if<bool>(&field->value);
  if (value)
    to = *value;
  else
    wrong(key, *field, "true or false");
  return value != nullptr;
}

bool FieldReader::read(std::string_view key, int& to, Range range) {
  range.least = std::max(range.least, double(std::numeric_limits<int>::min()));
  range.most = std::min(range.most, double(std::numeric_limits<int>::max()));
  i64 value = 0;
  const bool right = read(key, value, range);
  if (right) to = int(value);
  return right;
}

bool FieldReader::read(std::string_view key, i64& to, Range range) {
  const Field* field = take(key);
  return field && whole(key, *field, to, range);
}

bool FieldReader::read(std::string_view key, double& to, Range range) {
  const Field* field = take(key);
  return field && number(key, *field, to, range);
}

bool FieldReader::read(std::string_view key, std::string& to) {
  const Field* field = take(key);
  if (!field) return false;
  const auto* value = std::get_if<std::string>(&field->value);
  if (value)
    to = *value;
  else
    wrong(key, *field, "a string");
  return value != nullptr;
}

bool FieldReader::read(std::string_view key, std::vector<std::string>& to) {
  const Field* field = take(key);
  if (!field) return false;
  if (const auto* one = std::get_if<std::string>(&field->value)) return to = {*one}, true;
  std::vector<std::string> values;
  bool right = field->array();
  if (right)
    for (const Field& f : *field->array()) {
      const auto* text = std::get_if<std::string>(&f.value);
      right = right && text;
      if (text) values.push_back(*text);
    }
  if (right)
    to = std::move(values);
  else
    wrong(key, *field, "a string or a list of strings");
  return right;
}

template <class T>
bool FieldReader::list(std::string_view key, std::vector<T>& to, const Range& range, const char* what,
                       bool (FieldReader::*one)(std::string_view, const Field&, T&, const Range&)) {
  const Field* field = take(key);
  if (!field) return false;
  if (!field->array()) return wrong(key, *field, what), false;
  std::vector<T> values(field->array()->size());
  bool right = true;
  for (std::size_t i = 0; i < values.size(); ++i)
    right = (this->*one)(fmt::format("{}[{}]", key, i), (*field->array())[i], values[i], range) && right;
  if (right) to = std::move(values);
  return right;
}

bool FieldReader::read(std::string_view key, std::vector<i64>& to, Range range) {
  return list(key, to, range, "a list of whole numbers", &FieldReader::whole);
}

bool FieldReader::read(std::string_view key, std::vector<double>& to, Range range) {
  return list(key, to, range, "a list of numbers", &FieldReader::number);
}

std::optional<std::size_t> FieldReader::choose_index(std::string_view key, std::span<const std::string> names) {
  const Field* field = take(key);
  if (!field) return std::nullopt;
  const auto* text = std::get_if<std::string>(&field->value);
  const auto found = text ? std::find(names.begin(), names.end(), *text) : names.end();
  if (found != names.end()) return std::size_t(found - names.begin());
  const auto near = text ? nearest(*text, names) : std::nullopt;
  shared_->faults.push_back(
      {field->source, fmt::format("key '{}' is {} but must be one of {}", full(key), field->str(), join(names, ", ")),
       near ? fmt::format("did you mean \"{}\"?", *near) : ""});
  return std::nullopt;
}

FieldReader FieldReader::section(std::string_view key) {
  const Field* field = take(key);
  return FieldReader(shared_, field ? *field : empty_table(), full(key));
}

std::vector<FieldReader> FieldReader::sections(std::string_view key) {
  std::vector<FieldReader> all;
  const Field* field = take(key);
  if (field && !field->array()) wrong(key, *field, "a list of tables");
  if (field && field->array())
    for (std::size_t i = 0; i < field->array()->size(); ++i)
      all.push_back(FieldReader(shared_, (*field->array())[i], fmt::format("{}[{}]", full(key), i)));
  return all;
}

// Of an unknown key: what it is called here, the nearest one beside it, the same one in another section, or all.
std::string FieldReader::Shared::hint_for(const std::string& path, const std::string& key) const {
  for (const Renamed& r : renamed)
    if (r.is(key) || r.is(full_name(path, key))) return r.str();
  const std::set<std::string, std::less<>>& here = visits.find(path)->second.known;
  const std::vector<std::string> known(here.begin(), here.end());
  if (const auto near = nearest(key, known)) return fmt::format("did you mean '{}'?", full_name(path, *near));
  for (const auto& [other, elsewhere] : visits)
    if (elsewhere.known.contains(key)) return fmt::format("did you mean '{}'?", full_name(other, key));
  if (known.empty()) return "";
  return fmt::format("known {}: {}", path.empty() ? "keys" : "keys of '" + path + "'", join(known, ", "));
}

std::vector<Fault> FieldReader::faults() {
  std::vector<Shared::Located> all = shared_->faults;
  for (const auto& [path, visit] : shared_->visits)
    for (const Field* field : visit.fields)
      for (const Member& m : *field->table())
        if (!visit.known.contains(m.key))
          all.push_back({m.value.source, fmt::format("key '{}' is unknown", full_name(path, m.key)),
                         shared_->hint_for(path, m.key)});
  // What has no line (the command line) comes last.
  const auto before = [](const Shared::Located& a, const Shared::Located& b) {
    return a.source.line > 0 && (b.source.line == 0 || a.source.line < b.source.line);
  };
  std::stable_sort(all.begin(), all.end(), before);
  std::vector<Fault> faults;
  for (Shared::Located& f : all) faults.push_back({f.source.str(), std::move(f.what), std::move(f.hint)});
  return faults;
}

void FieldReader::finish() { refuse(faults()); }

}  // namespace stretto
