// TOML and JSON as one neutral tree, and typed reading of it into plain structs. Mistakes are collected and thrown
// together, each with file, line, key and value:
//
//   Field config = read_toml_file("run.toml");
//   override_field(config, "train.batch=64");
//   FieldReader reader(config);
//   FieldReader train = reader.section("train");
//   train.read("batch", batch, at_least(1));         // absent: `batch` keeps its default
//   train.choose("dtype", dtype, {{"f32", f32}, {"f64", f64}});
//   reader.finish();   // [run.toml:7] key 'train.btach' is unknown; hint: did you mean 'train.batch'?
#pragma once
#include <filesystem>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "stretto/base/error.h"
#include "stretto/base/id.h"

namespace stretto {

struct Source {
  std::shared_ptr<const std::string> file;  // none: made by a program
  int line = 0;                             // 0: no lines (the command line)
  std::string str() const;                  // "run.toml:12", "command line", "config"
};

struct Member;
struct Field {
  using Array = std::vector<Field>;
  using Table = std::vector<Member>;  // in the order of the file; no key twice
  std::variant<std::monostate, bool, i64, double, std::string, Array, Table> value;
  Source source;

  // Defined below, where Member is complete.
  Field();  // JSON's null
  Field(bool v);
  Field(int v);
  Field(i64 v);
  Field(double v);
  Field(const char* v);
  Field(std::string v);
  Field(Array v);
  Field(Table v);
  Field(const Field&);
  Field(Field&&) noexcept;
  Field& operator=(const Field&);
  Field& operator=(Field&&) noexcept;
  ~Field();

  bool is_null() const { return std::holds_alternative<std::monostate>(value); }
  const Table* table() const { return std::get_if<Table>(&value); }
  const Array* array() const { return std::get_if<Array>(&value); }
  const Field* find(std::string_view key) const;  // null when this is no table or has no such key
  // Sets a value below this table, making tables on the way: set("train.batch", 64). Error when something that is no
  // table stands in the way.
  Field& set(std::string_view dotted, Field v);
  std::string str() const;        // as in a message: 64, "adamw", [1, 2], a table
  std::string_view kind() const;  // "an integer"
};
struct Member {
  std::string key;
  Field value;
};
inline Field::Field() = default;
inline Field::Field(bool v) : value(v) {}
inline Field::Field(int v) : value(i64(v)) {}
inline Field::Field(i64 v) : value(v) {}
inline Field::Field(double v) : value(v) {}
inline Field::Field(const char* v) : value(std::string(v)) {}
inline Field::Field(std::string v) : value(std::move(v)) {}
inline Field::Field(Array v) : value(std::move(v)) {}
inline Field::Field(Table v) : value(std::move(v)) {}
inline Field::Field(Field&&) noexcept = default;
inline Field& Field::operator=(const Field&) = default;
inline Field& Field::operator=(Field&&) noexcept = default;
inline Field::~Field() = default;

// `file` is for messages. Refused: what is not UTF-8, keys twice, nesting beyond 64, numbers that do not fit.
Field read_toml(std::string_view text, std::string_view file);
Field read_json(std::string_view text, std::string_view file);
Field read_toml_file(const std::filesystem::path& path);
Field read_json_file(const std::filesystem::path& path);

// "train.batch=64" or "--train.batch=64": the value is read as a TOML value, else taken as a plain string.
void override_field(Field& root, std::string_view argument);

std::string write_toml(const Field& table);  // doubles in the shortest form that reads back equal; nulls are left out
std::string write_json(const Field& field, int indent = 0);  // doubles with 17 significant digits, inf and NaN as null
std::string json_text(std::string_view text);                // a JSON string with its quotes

// Limits for FieldReader::read.
struct Range {
  double least = -std::numeric_limits<double>::infinity(), most = std::numeric_limits<double>::infinity();
  bool open_least = false, open_most = false;       // least, or most, itself is not allowed
  std::string str(std::string_view numbers) const;  // "a whole number of at least 1", of "a whole number"
};
inline Range at_least(double least) { return {.least = least}; }
inline Range above(double least) { return {.least = least, .open_least = true}; }
inline Range above_up_to(double least, double most) { return {.least = least, .most = most, .open_least = true}; }
inline Range between(double least, double most) { return {.least = least, .most = most}; }
inline Range from_below(double least, double most) { return {.least = least, .most = most, .open_most = true}; }

// A key that other tools have, or that an earlier version had, and what it is called here: {"n_layer", "model.layers"}.
struct Renamed {
  std::string_view theirs, ours;
  std::string_view note = {};            // what else is different: "as a part of lr"
  bool is(std::string_view word) const;  // dashes count as underscores
  std::string str() const;               // "it is 'model.layers' here"
};

class FieldReader {
 public:
  explicit FieldReader(const Field& root);  // which must outlive it
  explicit FieldReader(Field&&) = delete;

  bool has(std::string_view key) const;  // present and not null; does not mark it as known

  // Each returns whether the key is present (and right). An absent or null key leaves `to` alone. A wrong one is
  // remembered for finish(). An integer may be written as 1e6, a double as 1.
  bool read(std::string_view key, bool& to);
  bool read(std::string_view key, int& to, Range range = {});
  bool read(std::string_view key, i64& to, Range range = {});
  bool read(std::string_view key, double& to, Range range = {});
  bool read(std::string_view key, std::string& to);
  bool read(std::string_view key, std::vector<std::string>& to);  // one string counts as a list of one
  bool read(std::string_view key, std::vector<i64>& to, Range range = {});
  bool read(std::string_view key, std::vector<double>& to, Range range = {});
  template <class T, class... R>
  bool read(std::string_view key, std::optional<T>& to, R... range) {
    T value{};
    const bool there = read(key, value, range...);
    if (there) to = std::move(value);
    return there;
  }
  template <class E>
  bool choose(std::string_view key, E& to, std::initializer_list<std::pair<std::string_view, E>> choices) {
    std::vector<std::string> names;
    for (const auto& c : choices) names.emplace_back(c.first);
    const auto index = choose_index(key, names);
    if (index) to = (choices.begin() + std::ptrdiff_t(*index))->second;
    return index.has_value();
  }
  // The same with names made at run time: which of them the value is.
  std::optional<std::size_t> choose_index(std::string_view key, std::span<const std::string> names);
  // A table below this one. Absent: an empty one, so that its keys become known all the same.
  FieldReader section(std::string_view key);
  std::vector<FieldReader> sections(std::string_view key);  // an array of tables
  const Field* raw(std::string_view key);                   // marks the key as known and leaves the rest to the caller
  void ignore(std::initializer_list<std::string_view> keys);  // known, and of no consequence

  void need(std::string_view key);  // absent: a fault
  // A fault of the caller's own about this key: `fail("heads", "does not divide width {}", width)` gives
  // `[run.toml:4] key 'model.heads' is 7 but does not divide ...`; without the key in the file the section is named.
  template <class... A>
  void fail(std::string_view key, fmt::format_string<A...> what, A&&... a) {
    add_fault(key, fmt::format(what, std::forward<A>(a)...), "");
  }
  void fail_hint(std::string_view key, std::string what, std::string hint) {
    add_fault(key, std::move(what), std::move(hint));
  }
  // A fault that others found, at the place of the key that led to it: `[run.toml:4] key 'model.from': ...`. The key
  // may lie deeper: root.blame("model.from", ...).
  void blame(std::string_view key, std::string what, std::string hint);

  // Faults so far, of all sections; those that come after and have no hint of their own get one.
  std::size_t faults_so_far() const;
  void hint_since(std::size_t so_far, const std::string& hint);

  // Unknown keys that stand in this list, by themselves or with their section, are answered with ours. It must outlive
  // the reader.
  void answer(std::span<const Renamed> renamed);

  const Field& field() const { return *field_; }
  const std::string& path() const { return path_; }
  std::string where(std::string_view key) const;  // "run.toml:4" of the key, else of this table

  // Unknown keys of every table that was read become faults; throws all faults together, in the order of the file.
  void finish();
  std::vector<Fault> faults();  // the same without throwing

 private:
  struct Shared;
  FieldReader(std::shared_ptr<Shared> shared, const Field& field, std::string path);
  const Field* take(std::string_view key);
  const Source& source_of(std::string_view key) const;  // of the key, else of this table
  std::string full(std::string_view key) const;
  void wrong(std::string_view key, const Field& field, std::string must_be);
  void add_fault(std::string_view key, std::string what, std::string hint);
  bool number(std::string_view key, const Field& field, double& to, const Range& range);
  bool whole(std::string_view key, const Field& field, i64& to, const Range& range);
  // `one` reads an element, e.g. whole.
  template <class T>
  bool list(std::string_view key, std::vector<T>& to, const Range& range, const char* what,
            bool (FieldReader::*one)(std::string_view, const Field&, T&, const Range&));

  std::shared_ptr<Shared> shared_;
  const Field* field_;
  std::string path_;
};

}  // namespace stretto
