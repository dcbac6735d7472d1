#include "stretto/formats/fields.h"

#include <cmath>

#include "stretto/formats/atomic_file.h"
#include "stretto/formats/mapped_file.h"
#include "stretto/formats/utf8.h"

namespace stretto {
namespace {

// The shortest text that reads back as the same double and cannot be taken for an integer.
std::string short_double(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  std::string s = fmt::format("{}", v);
  if (s.find_first_of(".e") == std::string::npos) s += ".0";
  return s;
}

bool is_bare(std::string_view key) {
  const auto bare = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  return !key.empty() && std::all_of(key.begin(), key.end(), bare);
}
std::string toml_key(std::string_view key) { return is_bare(key) ? std::string(key) : json_text(key); }

bool is_table_list(const Field& field) {
  const auto* array = field.array();
  return array && !array->empty() &&
         std::all_of(array->begin(), array->end(), [](const Field& f) { return f.table(); });
}

void write_inline(std::string& out, const Field& field) {
  if (const auto* v = std::get_if<bool>(&field.value)) out += *v ? "true" : "false";
  if (const auto* v = std::get_if<i64>(&field.value)) out += std::to_string(*v);
  if (const auto* v = std::get_if<double>(&field.value)) out += short_double(*v);
  if (const auto* v = std::get_if<std::string>(&field.value)) out += json_text(*v);
  if (const auto* array = field.array()) {
    std::string_view separator;
    out += '[';
    for (const Field& f : *array) {
      if (f.is_null()) continue;
      out += separator;
      separator = ", ";
      write_inline(out, f);
    }
    out += ']';
  }
  if (const auto* table = field.table()) {
    std::string_view separator;
    out += '{';
    for (const Member& m : *table) {
      if (m.value.is_null()) continue;
      out += separator;
      separator = ", ";
      out += toml_key(m.key) + " = ";
      write_inline(out, m.value);
    }
    out += '}';
  }
}

void write_section(std::string& out, const Field& section, const std::string& path) {
  for (const Member& m : *section.table()) {
    if (m.value.is_null() || m.value.table() || is_table_list(m.value)) continue;
    out += toml_key(m.key) + " = ";
    write_inline(out, m.value);
    out += '\n';
  }
  for (const Member& m : *section.table()) {
    const std::string below = path.empty() ? toml_key(m.key) : path + "." + toml_key(m.key);
    const auto header = [&](const char* open, const char* close) {
      if (!out.empty()) out += '\n';
      out += open + below + close + '\n';
    };
    if (m.value.table()) {
      header("[", "]");
      write_section(out, m.value, below);
    } else if (is_table_list(m.value)) {
      for (const Field& element : *m.value.array()) {
        header("[[", "]]");
        write_section(out, element, below);
      }
    }
  }
}

// With its point, in files that are meant to be read: other programs tell 2.0 from 2.
std::string json_number(double v, bool point) {
  std::string text = std::isfinite(v) ? fmt::format("{}", v) : "null";  // the shortest
  return point && text.find_first_not_of("-0123456789") == text.npos ? text + ".0" : text;
}

void write_json(std::string& out, const Field& field, int indent, int level) {
  const auto line = [&](int at) {
    if (indent > 0) out += '\n', out.append(std::size_t(indent * at), ' ');
  };
  if (field.is_null()) out += "null";
  if (const auto* v = std::get_if<bool>(&field.value)) out += *v ? "true" : "false";
  if (const auto* v = std::get_if<i64>(&field.value)) out += std::to_string(*v);
  if (const auto* v = std::get_if<double>(&field.value)) out += json_number(*v, indent > 0);
  if (const auto* v = std::get_if<std::string>(&field.value)) out += json_text(*v);
  if (const auto* array = field.array()) {
    out += '[';
    for (std::size_t i = 0; i < array->size(); ++i) {
      if (i) out += indent > 0 ? ", " : ",";
      write_json(out, (*array)[i], indent, level + 1);
    }
    out += ']';
  }
  if (const auto* table = field.table()) {
    out += '{';
    for (std::size_t i = 0; i < table->size(); ++i) {
      if (i) out += ',';
      line(level + 1);
      out += json_text((*table)[i].key) + (indent > 0 ? ": " : ":");
      write_json(out, (*table)[i].value, indent, level + 1);
    }
    if (!table->empty()) line(level);
    out += '}';
  }
}

}  // namespace

std::string Source::str() const {
  if (!file) return "config";
  return line > 0 ? fmt::format("{}:{}", *file, line) : *file;
}

const Field* Field::find(std::string_view key) const {
  if (const Table* members = table())
    for (const Member& m : *members)
      if (m.key == key) return &m.value;
  return nullptr;
}

// libstdc++ 12 takes a variant of numbers, strings and vectors for one that always has a value. Where one of them finds
// no memory while the variant is copied, it destroys what has not been made. So the copy is made first, and then moved.
Field::Field(const Field& other) : source(other.source) {
  std::visit([&](const auto& v) { value = std::decay_t<decltype(v)>(v); }, other.value);
}

Field& Field::set(std::string_view dotted, Field v) {
  if (is_null()) value = Table{};
  if (!table()) throw Error(source.str(), "'{}' cannot be set below {}", dotted, str());
  const std::size_t dot = dotted.find('.');
  const std::string_view key = dotted.substr(0, dot);
  Table& members = std::get<Table>(value);
  auto found = std::find_if(members.begin(), members.end(), [&](const Member& m) { return m.key == key; });
  if (found == members.end()) found = members.insert(found, {std::string(key), Field()});
  if (dot != std::string_view::npos) return found->value.set(dotted.substr(dot + 1), std::move(v));
  return found->value = std::move(v);
}

std::string_view Field::kind() const {
  constexpr std::string_view kinds[] = {"null", "a boolean", "an integer", "a number", "a string", "a list", "a table"};
  return kinds[value.index()];
}

std::string Field::str() const {
  if (is_null()) return "null";
  if (table()) return "a table";
  std::string text;
  write_inline(text, *this);
  return shown(text);
}

std::string json_text(std::string_view text) {
  if (first_bad_utf8(text)) throw Error("json", "'{}' is not UTF-8", shown(text)).hint("write it as UTF-8");
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += '\\', out += c;
    else if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (c == '\r')
      out += "\\r";
    else if (byte < 0x20 || byte == 0x7F)
      out += fmt::format("\\u{:04x}", unsigned(byte));
    else
      out += c;
  }
  return out + '"';
}

std::string write_json(const Field& field, int indent) {
  std::string out;
  write_json(out, field, indent, 0);
  return out;
}

std::string write_toml(const Field& table) {
  STRETTO_ASSERT(table.table(), "only a table can be a TOML document");
  std::string out;
  write_section(out, table, "");
  return out;
}

Field read_toml_file(const std::filesystem::path& path) {
  const MappedFile file(path);
  return with_hint(
      "a line of TOML is [section], key = value or # a comment; text stands in quotes, numbers fit 64 bits, no key is "
      "there twice, and the file is UTF-8",
      [&] { return read_toml(file.text(), path.string()); });
}

Field read_json_file(const std::filesystem::path& path) {
  const MappedFile file(path);
  return with_hint(fmt::format("is the file whole? python3 -m json.tool {} looks at it, too", path.string()),
                   [&] { return read_json(file.text(), path.string()); });
}

}  // namespace stretto
