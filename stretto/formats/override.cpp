// `--section.key=value`
#include <algorithm>

#include "stretto/formats/fields.h"
#include "stretto/formats/utf8.h"

namespace stretto {
namespace {

constexpr std::string_view place = "command line";

void put_at(Field& field, const Source& source) {
  field.source = source;
  if (auto* items = std::get_if<Field::Array>(&field.value))
    for (Field& item : *items) put_at(item, source);
  if (auto* members = std::get_if<Field::Table>(&field.value))
    for (Member& m : *members) put_at(m.value, source);
}

// What the text is as a value of TOML and nothing else; other text stands for itself.
Field value_of(std::string_view text) {
  if (first_bad_utf8(text)) throw Error(std::string(place), "'{}' is not UTF-8", shown(text));
  try {
    const Field alone = read_toml(fmt::format("v = {}", text), place);
    const Field listed = read_toml(fmt::format("v = [{}]", text), place);  // refused when a comment follows
    if (alone.table()->size() == 1 && listed.table()->size() == 1 && listed.find("v")->array()->size() == 1)
      return *alone.find("v");
  } catch (const Error&) {  // a plain word
  }
  return Field(std::string(text));
}

// The parts of a dotted key, as TOML reads them in a header.
std::vector<std::string> parts_of(std::string_view key) {
  if (key.find('\n') != key.npos) throw Error(std::string(place), "a key has one line");
  const Field header = read_toml(fmt::format("[{}]", key), place);
  std::vector<std::string> parts;
  const Field* at = &header;
  for (; at->table() && at->table()->size() == 1; at = &at->table()->front().value)
    parts.push_back(at->table()->front().key);
  if (!at->table()) throw Error(std::string(place), "brackets are not allowed in a key");
  return parts;
}

}  // namespace

void override_field(Field& root, std::string_view argument) {
  const std::string_view given = argument;
  if (argument.starts_with("--")) argument.remove_prefix(2);
  const std::size_t equals = argument.find('=');
  if (equals == std::string_view::npos)
    throw Error("command line", "'{}' has no value", shown(given))
        .hint("write --section.key=value")
        .as(Error::Kind::usage);
  Field value = value_of(argument.substr(equals + 1));
  put_at(value, {std::make_shared<const std::string>(place), 0});
  std::vector<std::string> path;
  try {
    path = parts_of(argument.substr(0, equals));
  } catch (const Error&) {
    throw Error("command line", "'{}' is no key", shown(given))
        .hint("write --section.key=value")
        .as(Error::Kind::usage);
  }
  Field* at = &root;
  std::string so_far;
  for (const std::string& part : path) {
    if (at->is_null()) at->value = Field::Table{}, at->source = value.source;
    auto* table = std::get_if<Field::Table>(&at->value);
    if (!table)
      throw Error("command line", "'{}': key '{}' is {} ({}), not a table", shown(given), so_far, at->str(),
                  at->source.str())
          .as(Error::Kind::usage);
    auto found = std::find_if(table->begin(), table->end(), [&](const Member& m) { return m.key == part; });
    if (found == table->end()) found = table->insert(found, {part, Field()});
    at = &found->value;
    so_far += (so_far.empty() ? "" : ".") + part;
  }
  if (at->table() && !value.table())
    throw Error("command line", "'{}': '{}' is a section, not a key", shown(given), so_far)
        .hint("write --{}.key=value", so_far)
        .as(Error::Kind::usage);
  *at = std::move(value);
}

}  // namespace stretto
