#include "stretto/tokenize/chat_template.h"

#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/formats/mapped_file.h"
#include "stretto/tokenize/inner/jinja_render.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;
using jinja::Value;

bool uses_generation(const jinja::Block& block) {
  return std::any_of(block.begin(), block.end(), [](const jinja::Statement& s) {
    return s.kind == jinja::Statement::Kind::generation || (s.macro && uses_generation(s.macro->body)) ||
           std::any_of(s.blocks.begin(), s.blocks.end(), uses_generation);
  });
}

// "</s>", or {"content": "</s>", ...}.
std::string token_text(const Field& f) {
  const Field* content = f.table() ? f.find("content") : &f;
  const std::string* text = content ? std::get_if<std::string>(&content->value) : nullptr;
  return text ? *text : std::string();
}

// The part in which two renderings differ, which are equal before and after it.
Conversation::Stretch difference(const std::string& text, const std::string& other) {
  const auto first = std::mismatch(text.begin(), text.end(), other.begin(), other.end()).first - text.begin();
  const std::size_t most = std::min(text.size(), other.size()) - first;
  std::size_t same = 0;
  while (same < most && text[text.size() - 1 - same] == other[other.size() - 1 - same]) ++same;
  return {std::size_t(first), text.size() - same};
}

// Begins and ends with what no text has, so that nothing of it is equal by chance.
constexpr std::string_view other_answer = "\xF3\xB0\x80\x81other answer\xF4\x8F\xBF\xBD";

// As Jinja reads files: whichever way their lines end.
std::string with_plain_breaks(std::string_view source) {
  std::string text;
  for (std::size_t i = 0; i < source.size(); ++i) {
    const bool pair = source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n';
    if (!pair) text += source[i] == '\r' ? '\n' : source[i];
  }
  return text;
}

}  // namespace

ChatTemplate::ChatTemplate(std::string_view source, std::string_view where, Field::Table tokens)
    : root_(std::make_shared<const jinja::Block>(jinja::parse_template(with_plain_breaks(source), where))),
      where_(where),
      tokens_(std::move(tokens)),
      has_generation_(uses_generation(*root_)) {}

Value ChatTemplate::variables_of(const Field& chat, bool add_generation_prompt) const {
  Value all{jinja::Dict()};
  for (const Member& m : tokens_) all.set(m.key, jinja::value_of(m.value));
  for (const Member& m : *chat.table()) all.set(m.key, jinja::value_of(m.value));
  all.set("add_generation_prompt", Value(add_generation_prompt));
  return all;
}

std::string ChatTemplate::rendered(const Value& variables, std::vector<Conversation::Stretch>* marked) const {
  try {
    jinja::Rendered r = jinja::render(*root_, variables);
    if (marked)
      for (const auto& [begin, end] : r.marked) marked->push_back({begin, end});
    return std::move(r.text);
  } catch (const jinja::Failure& f) {
    throw Error(fmt::format("{}, line {}", where_, f.line), "{}{}",
                f.by_template ? "the template refuses the conversation: " : "", f.what)
        .hint("{}", f.by_template ? "look at the roles and the order of the messages"
                                  : "templates are read in the part of Jinja that docs/finetune.md describes");
  }
}

std::string ChatTemplate::render(const Field& chat, bool add_generation_prompt) const {
  return rendered(variables_of(chat, add_generation_prompt), nullptr);
}

Conversation ChatTemplate::render(const Field& chat, const std::vector<std::string>& ends) const {
  Conversation c;
  const Value variables = variables_of(chat, false);
  c.text = rendered(variables, &c.answers);
  if (has_generation_) return c;
  const jinja::List& messages = *variables.find("messages")->list();
  for (const Value& message : messages) {
    const Value* role = message.find("role");
    if (!role || !jinja::is_equal(*role, Value(std::string("assistant")))) continue;
    // What becomes of another answer in its place is where the answer stands.
    Value changed = message;
    const Value before = *message.find("content");
    changed.set("content", Value(other_answer));
    const std::string other = rendered(variables, nullptr);
    changed.set("content", before);
    Conversation::Stretch s = difference(c.text, other);
    std::size_t longest = 0;
    for (const std::string& end : ends)
      if (!end.empty() && c.text.compare(s.end, end.size(), end) == 0) longest = std::max(longest, end.size());
    s.end += longest;
    if (s.begin < s.end) c.answers.push_back(s);
  }
  return c;
}

Field::Table template_tokens(const fs::path& directory) {
  Field::Table tokens;
  if (!is_there(directory / "tokenizer_config.json")) return tokens;
  const Field json = read_json_file(directory / "tokenizer_config.json");
  for (const char* name : {"bos_token", "eos_token", "pad_token", "unk_token"})
    if (const Field* f = json.find(name); f && !f->is_null()) tokens.push_back({name, Field(token_text(*f))});
  return tokens;
}

std::optional<ChatTemplate> find_chat_template(const fs::path& directory) {
  const fs::path config = directory / "tokenizer_config.json", file = directory / "chat_template.jinja";
  std::string source, where = config.string() + ", chat_template";
  if (is_there(config)) {
    const Field json = read_json_file(config);
    const Field* found = json.find("chat_template");
    if (found && found->array())  // several, by name
      for (const Field& one : *found->array())
        if (const Field* name = one.find("name"); name && name->str() == "\"default\"")
          if (const Field* text = one.find("template")) source = token_text(*text);
    if (found && !found->array()) source = token_text(*found);
  }
  if (is_there(file)) source = MappedFile(file).text(), where = file.string();
  if (source.empty()) return std::nullopt;
  return ChatTemplate(source, where, template_tokens(directory));
}

void check_messages(const Field& chat, std::string_view where) {
  const auto wrong = [&](std::string what) {
    throw Error(std::string(where), "{}", what)
        .hint("a line is {{\"messages\": [{{\"role\": \"user\", \"content\": \"...\"}}, ...]}}");
  };
  const Field* messages = chat.find("messages");
  if (!messages || !messages->array()) wrong("has no list 'messages'");
  if (messages->array()->empty()) wrong("'messages' is empty");
  for (std::size_t i = 0; const Field& m : *messages->array()) {
    ++i;
    const auto text = [&](const char* key) {
      const Field* f = m.find(key);
      return f && std::holds_alternative<std::string>(f->value);
    };
    if (!text("role")) wrong(fmt::format("message {} has no 'role'", i));
    if (!text("content")) wrong(fmt::format("message {} has no text as its 'content'", i));
  }
}

}  // namespace stretto
