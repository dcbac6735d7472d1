#include "stretto/tokenize/chat_template.h"

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/formats/mapped_file.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;

constexpr const char *config_name = "tokenizer_config.json", *template_name = "chat_template.jinja";

// "</s>", or {"content": "</s>", ...}; none: it is something else.
std::optional<std::string> token_text(const Field& f) {
  const Field* content = f.table() ? f.find("content") : &f;
  const std::string* text = content ? std::get_if<std::string>(&content->value) : nullptr;
  return text ? std::optional(*text) : std::nullopt;
}

// bos_token, eos_token and their like.
Field::Table tokens_of(const Field& config) {
  Field::Table tokens;
  for (const Member& m : config.table() ? *config.table() : Field::Table())
    if (m.key.ends_with("_token"))
      if (const auto text = token_text(m.value)) tokens.push_back({m.key, Field(*text)});
  return tokens;
}

// A text, or a list of several with names.
std::optional<std::string> source_in(const Field& config) {
  const Field* found = config.find("chat_template");
  if (!found) return std::nullopt;
  if (!found->array()) return token_text(*found);
  for (const Field& one : *found->array())
    if (const Field* name = one.find("name"); name && token_text(*name) == "default")
      if (const Field* text = one.find("template")) return token_text(*text);
  return std::nullopt;
}

Field config_of(const FilesBeside& files, const fs::path& place) {
  const std::optional<std::string> text = files(config_name);
  return text ? read_json(*text, (place / config_name).string()) : Field();
}

}  // namespace

FilesBeside files_in(const fs::path& directory) {
  return [directory](const std::string& name) -> std::optional<std::string> {
    const fs::path file = directory / name;
    if (!is_there(file)) return std::nullopt;
    return std::string(MappedFile(file).text());
  };
}

std::optional<ChatTemplate> find_chat_template(const FilesBeside& files, const fs::path& place) {
  const Field config = config_of(files, place);
  if (auto own = files(template_name); own && !own->empty())
    return ChatTemplate{std::move(*own), (place / template_name).string(), tokens_of(config)};
  const std::optional<std::string> source = source_in(config);
  if (!source || source->empty()) return std::nullopt;
  return ChatTemplate{*source, (place / config_name).string() + ", chat_template", tokens_of(config)};
}

std::optional<ChatTemplate> find_chat_template(const fs::path& directory) {
  return find_chat_template(files_in(directory), directory);
}

ChatTemplate read_chat_template(const fs::path& file, const FilesBeside& beside) {
  return {std::string(MappedFile(file).text()), file.string(), tokens_of(config_of(beside, "tokenizer"))};
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
