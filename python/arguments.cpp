#include <algorithm>
#include <cstring>

#include "calls.h"

namespace stretto::python {
namespace {

template <class T>
const T& value_of(const Field& f, std::string_view key, const char* wanted) {
  if (const T* value = std::get_if<T>(&f.value)) return *value;
  throw Error("arguments", "'{}' is {} ({}) and should be {}", key, f.str(), f.kind(), wanted).hint("give {}", wanted);
}

DType array_type(const std::string& name) {
  for (const DType d : {f32, f64, i32})
    if (name_of(d) == name) return d;
  throw Error("array", "there are no arrays of {}", name).hint("use float32, float64 or int32");
}

}  // namespace

const Field* Arguments::find(std::string_view key) const {
  const Field* f = all_.find(key);
  return f && !f->is_null() ? f : nullptr;
}

std::string Arguments::text(std::string_view key, std::string otherwise) const {
  const Field* f = find(key);
  return f ? value_of<std::string>(*f, key, "text") : otherwise;
}

i64 Arguments::whole(std::string_view key, i64 otherwise, i64 least, i64 most) const {
  const Field* f = find(key);
  if (!f) return otherwise;
  const i64 n = value_of<i64>(*f, key, "a whole number");
  if (n < least || n > most)
    throw Error("arguments", "'{}' is {}", key, n).hint("give a whole number from {} to {}", least, most);
  return n;
}

int Arguments::count(std::string_view key, int otherwise) const {
  return int(whole(key, otherwise, 0, std::numeric_limits<int>::max()));
}

double Arguments::number(std::string_view key, double otherwise) const {
  const Field* f = find(key);
  if (!f) return otherwise;
  const i64* whole = std::get_if<i64>(&f->value);
  return whole ? double(*whole) : value_of<double>(*f, key, "a number");
}

bool Arguments::flag(std::string_view key) const {
  const Field* f = find(key);
  return f && value_of<bool>(*f, key, "True or False");
}

std::vector<std::string> Arguments::texts(std::string_view key) const {
  std::vector<std::string> all;
  if (const Field* f = find(key))
    for (const Field& text : value_of<Field::Array>(*f, key, "a list of texts"))
      all.push_back(value_of<std::string>(text, key, "a list of texts"));
  return all;
}

std::vector<i64> Arguments::wholes(std::string_view key) const {
  std::vector<i64> all;
  if (const Field* f = find(key))
    for (const Field& n : value_of<Field::Array>(*f, key, "a list of whole numbers"))
      all.push_back(value_of<i64>(n, key, "a list of whole numbers"));
  return all;
}

std::map<std::string, i64> Arguments::sizes(std::string_view key) const {
  constexpr const char* wanted = "a dict of whole numbers, e.g. {\"batch\": 2}";
  std::map<std::string, i64> all;
  if (const Field* f = find(key))
    for (const Member& m : value_of<Field::Table>(*f, key, wanted)) all[m.key] = value_of<i64>(m.value, key, wanted);
  return all;
}

std::map<std::string, double> Arguments::numbers(std::string_view key) const {
  constexpr const char* wanted = "a dict of numbers, e.g. {\"lr\": 0.1}";
  std::map<std::string, double> all;
  if (const Field* f = find(key))
    for (const Member& m : value_of<Field::Table>(*f, key, wanted)) {
      const i64* whole = std::get_if<i64>(&m.value.value);
      all[m.key] = whole ? double(*whole) : value_of<double>(m.value, key, wanted);
    }
  return all;
}

Arguments Arguments::table(std::string_view key) const {
  const Field* f = find(key);
  if (!f) throw Error("arguments", "'{}' is missing", key).hint("give it");
  value_of<Field::Table>(*f, key, "a dict");
  return {*f, memory_};
}

std::vector<std::pair<std::string, Arguments>> Arguments::tables(std::string_view key) const {
  std::vector<std::pair<std::string, Arguments>> all;
  if (const Field* f = find(key))
    for (const Member& m : value_of<Field::Table>(*f, key, "a dict of dicts")) {
      value_of<Field::Table>(m.value, key, "a dict of dicts");
      all.emplace_back(m.key, Arguments(m.value, memory_));
    }
  return all;
}

Memory Arguments::memory(std::string_view key) const {
  if (!has(key)) throw Error("arguments", "'{}' is missing", key).hint("give the number of a buffer");
  if (memory_.empty()) throw Error("arguments", "'{}' stands for a buffer, and none is given", key).hint("give one");
  return memory_[std::size_t(whole(key, 0, 0, std::ssize(memory_) - 1))];
}

Array array_of(const Arguments& a) {
  Array array{.dtype = array_type(a.text("dtype")), .sizes = a.wholes("sizes"), .bytes = {}};
  const Memory from = a.memory("buffer");
  i64 bytes = size_of(array.dtype);
  const bool possible = std::ranges::all_of(
      array.sizes, [&](i64 size) { return size >= 0 && !__builtin_mul_overflow(bytes, size, &bytes); });
  if (!possible || bytes != std::ssize(from))
    throw Error("array", "{} is given with {} bytes", array.str(), from.size())
        .hint("give the sizes that the array has");
  array.bytes.resize(from.size());
  if (!from.empty()) std::memcpy(array.bytes.data(), from.data(), from.size());
  return array;
}

}  // namespace stretto::python
