// What a tokenizer makes of a conversation, as the `chat_template` of a tokenizer_config.json says it.
//
//   ChatTemplate t = *find_chat_template("model");
//   std::string text = t.render(messages, true);        // up to where the assistant goes on
//   Conversation c = t.render(messages);                // with the stretches that the assistant said
//
// Templates are programs in a part of Jinja: if, for, set, macro, generation, filters, tests and methods of strings.
// What is not known is refused by name and line when the template is read.
#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/formats/fields.h"
#include "stretto/tokenize/jinja_ast.h"

namespace stretto {

struct Conversation {
  struct Stretch {
    std::size_t begin = 0, end = 0;  // bytes of `text`
  };
  std::string text;
  std::vector<Stretch> answers;  // in order
};

class ChatTemplate {
 public:
  // `tokens`: variables such as bos_token and eos_token.
  ChatTemplate(std::string_view source, std::string_view where, Field::Table tokens = {});

  // `chat`: a table with `messages` and whatever else the template asks for (tools, ...).
  std::string render(const Field& chat, bool add_generation_prompt) const;
  // What an assistant's message says, and the token that ends it, is an answer: `ends` are special tokens. Templates
  // with {% generation %} say themselves what an answer is.
  Conversation render(const Field& chat, const std::vector<std::string>& ends) const;
  bool has_generation() const { return has_generation_; }

 private:
  std::string rendered(const jinja::Value& variables, std::vector<Conversation::Stretch>* marked) const;
  jinja::Value variables_of(const Field& chat, bool add_generation_prompt) const;

  std::shared_ptr<const jinja::Block> root_;
  std::string where_;
  Field::Table tokens_;
  bool has_generation_ = false;
};

// Of a tokenizer_config.json, or of chat_template.jinja beside it. None: there is no template.
std::optional<ChatTemplate> find_chat_template(const std::filesystem::path& directory);

// bos_token and its like, as tokenizer_config.json in that directory says; none: there is no such file.
Field::Table template_tokens(const std::filesystem::path& directory);

// Messages are a list of tables, each with a role and a content; else an Error at `where`.
void check_messages(const Field& chat, std::string_view where);

}  // namespace stretto
