// TOML 1.0 to a tree, and `--section.key=value`. Written here because bad input must never exhaust the stack: a key of
// ten thousand dots makes a tree that deep, which the usual parsers build and destroy recursively.
#include <algorithm>
#include <unordered_map>

#include "stretto/formats/fields.h"
#include "stretto/formats/inner/toml_scanner.h"
#include "stretto/formats/utf8.h"

namespace stretto {
namespace {

// A field while the document is being read; TOML's rules about reopening tables need to know how each came to be.
struct Node {
  enum class Kind {
    value,     // closed: a scalar, an array, an inline table
    implied,   // a table named on the way to another: [a] of [a.b]
    header,    // a table with a header of its own
    dotted,    // a table made by a dotted key
    elements,  // an array of tables, [[a]]
  };
  Kind kind = Kind::value;
  Field field;  // kind value; otherwise only its source
  std::vector<std::pair<std::string, std::unique_ptr<Node>>> members;
  std::unordered_map<std::string, Node*> index;
  std::vector<std::unique_ptr<Node>> elements;

  Node* find(const std::string& key) const {
    const auto found = index.find(key);
    return found == index.end() ? nullptr : found->second;
  }
};

Field finished(Node& node) {
  Field field = std::move(node.field);
  if (node.kind == Node::Kind::value) return field;
  if (node.kind == Node::Kind::elements) {
    Field::Array array;
    for (auto& element : node.elements) array.push_back(finished(*element));
    field.value = std::move(array);
  } else {
    Field::Table table;
    for (auto& [key, member] : node.members) table.push_back({key, finished(*member)});
    field.value = std::move(table);
  }
  return field;
}

class Parser : private TomlScanner {
 public:
  using TomlScanner::TomlScanner;

  Field document() {
    Node root;
    root.kind = Node::Kind::header;
    root.field.source = source();
    Node* current = &root;
    int depth = 0;
    for (;;) {
      blank_lines();
      if (end()) return finished(root);
      if (peek() == '[') {
        current = header(root, depth);
      } else {
        key_value(*current, depth);
      }
      rest_of_line();
    }
  }

  // The whole text as one value; nothing when it is none.
  Field only_value() {
    spaces();
    Field field = value(0);
    spaces();
    if (!end()) fail("{} follows the value", next_shown());
    return field;
  }
  std::vector<std::string> only_key() {
    auto parts = key();
    spaces();
    if (!end()) fail("{} is not allowed in a key", next_shown());
    return parts;
  }

 private:
  // ── keys and tables ──
  std::vector<std::string> key() {
    std::vector<std::string> parts;
    do {
      spaces();
      parts.push_back(simple_key());
      check_depth(int(parts.size()));
      spaces();
    } while (take("."));
    return parts;
  }
  static std::string dotted(std::span<const std::string> parts) {
    std::string s;
    for (const auto& p : parts) s.append(s.empty() ? "" : ".").append(shown(p));
    return s;
  }
  Node& add(Node& table, std::string key, Node::Kind kind) {
    auto node = std::make_unique<Node>();
    node->kind = kind;
    node->field.source = source();
    Node* added = node.get();
    table.index.emplace(key, added);
    table.members.emplace_back(std::move(key), std::move(node));
    return *added;
  }
  [[noreturn]] void twice(std::span<const std::string> parts, const Node& first) const {
    fail_line("key '{}' stands twice; it was first given in line {}", dotted(parts), first.field.source.line);
  }

  Node* header(Node& root, int& depth) {
    const bool element = take("[[");
    if (!element) take("[");
    const std::vector<std::string> parts = key();
    if (!take(element ? "]]" : "]")) fail("'{}' is expected, not {}", element ? "]]" : "]", next_shown());
    Node* table = &root;
    depth = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      Node* next = table->find(parts[i]);
      if (!next) next = &add(*table, parts[i], Node::Kind::implied);
      if (next->kind == Node::Kind::value)
        fail_line("'{}' is {} since line {} and cannot be opened as a table", dotted(std::span(parts).first(i + 1)),
                  next->field.kind(), next->field.source.line);
      if (next->kind == Node::Kind::elements) next = next->elements.back().get(), ++depth;
      table = next;
      ++depth;
    }
    ++depth;
    Node* last = table->find(parts.back());
    if (element) {
      if (last && last->kind != Node::Kind::elements) twice(parts, *last);
      if (!last) last = &add(*table, parts.back(), Node::Kind::elements);
      last->elements.push_back(std::make_unique<Node>());
      last = last->elements.back().get();
      last->field.source = source();
      ++depth;
    } else {
      if (last && last->kind != Node::Kind::implied) twice(parts, *last);
      if (!last) last = &add(*table, parts.back(), Node::Kind::header);
      last->field.source = source();
    }
    last->kind = Node::Kind::header;
    check_depth(depth);
    return last;
  }

  void key_value(Node& table, int depth) {
    const std::vector<std::string> parts = key();
    const std::span<const std::string> all(parts);
    if (!take("=")) fail("'=' is expected after '{}', not {}", dotted(all), next_shown());
    depth += int(parts.size());
    check_depth(depth);
    Node* at = &table;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      Node* next = at->find(parts[i]);
      if (!next) next = &add(*at, parts[i], Node::Kind::dotted);
      if (next->kind != Node::Kind::dotted) twice(all.first(i + 1), *next);
      at = next;
    }
    if (const Node* before = at->find(parts.back())) twice(all, *before);
    Node& node = add(*at, parts.back(), Node::Kind::value);
    spaces();
    node.field = value(depth);
  }

  // ── values ──
  Field value(int depth) {
    check_depth(depth);
    Field field;
    const Source here = source();
    if (take("["))
      field = Field(array(depth));
    else if (take("{"))
      field = inline_table(depth);
    else
      field = scalar();
    field.source = here;
    return field;
  }

  Field::Array array(int depth) {
    Field::Array items;
    for (;;) {
      blank_lines();
      if (take("]")) return items;
      items.push_back(value(depth + 1));
      blank_lines();
      if (take("]")) return items;
      if (!take(",")) fail("',' or ']' is expected, not {}", next_shown());
    }
  }

  Field inline_table(int depth) {
    Node table;
    table.kind = Node::Kind::header;
    spaces();
    if (take("}")) return finished(table);
    for (;;) {
      key_value(table, depth);
      spaces();
      if (take("}")) return finished(table);
      if (!take(",")) fail("',' or '}}' is expected, not {}", next_shown());
    }
  }
};

}  // namespace

Field read_toml(std::string_view text, std::string_view file) { return Parser(text, file).document(); }

void override_field(Field& root, std::string_view argument) {
  const std::string_view given = argument;
  if (argument.starts_with("--")) argument.remove_prefix(2);
  const std::size_t equals = argument.find('=');
  if (equals == std::string_view::npos)
    throw Error("command line", "'{}' has no value", shown(given))
        .hint("write --section.key=value")
        .as(Error::Kind::usage);
  const std::string_view text = argument.substr(equals + 1);
  Field value;
  try {
    value = Parser(text, "command line", 0).only_value();
  } catch (const Error&) {
    if (first_bad_utf8(text)) throw;
    value = Field(std::string(text));
  }
  const auto file = std::make_shared<const std::string>("command line");
  value.source = {file, 0};
  std::vector<std::string> path;
  try {
    path = Parser(argument.substr(0, equals), "command line", 0).only_key();
  } catch (const Error& error) {
    throw Error("command line", "'{}' is no key: {}", shown(given), error.faults().front().what)
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
