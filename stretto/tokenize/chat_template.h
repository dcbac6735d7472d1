// The template that makes a conversation one text: the `chat_template` of a tokenizer_config.json, with what lies
// beside it.
//
//   std::optional<ChatTemplate> t = find_chat_template("model");
//   ChatRenderer(*t) ...                                          // tokenize/chat_renderer.h
#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "stretto/formats/fields.h"

namespace stretto {

struct ChatTemplate {
  std::string source, where;  // where it stands, for messages
  Field::Table tokens = {};   // variables such as bos_token and eos_token
};

// The content of a file beside the tokenizer; none: there is no such file.
using FilesBeside = std::function<std::optional<std::string>(const std::string& name)>;
FilesBeside files_in(const std::filesystem::path& directory);
inline const FilesBeside no_files = [](const std::string&) { return std::nullopt; };

// Of chat_template.jinja or tokenizer_config.json in a directory, or of files that lie elsewhere; `place` is where, for
// messages. None: there is no template.
std::optional<ChatTemplate> find_chat_template(const std::filesystem::path& directory);
std::optional<ChatTemplate> find_chat_template(const FilesBeside&, const std::filesystem::path& place);
// A file of its own, with the tokens that the files beside the tokenizer name.
ChatTemplate read_chat_template(const std::filesystem::path& file, const FilesBeside&);

// Messages are a list of tables, each with a role and a content; else an Error at `where`.
void check_messages(const Field& chat, std::string_view where);

}  // namespace stretto
