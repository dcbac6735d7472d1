// Conversations as rows of tokens: whole ones beside each other, with a loss on what the assistant says.
//
//   auto chats = open_chat({"chats.jsonl"}, tokenizer, *find_chat_template("model"), {.length = 1024});
//
// A line of a .jsonl or .jsonl.gz file is an object with `messages`, each with a role and a content; other keys are
// variables of the template.
#pragma once
#include "stretto/data/from_first.h"
#include "stretto/data/token_source.h"
#include "stretto/tokenize/chat_renderer.h"

namespace stretto {

// The field of .jsonl files that holds conversations.
inline constexpr std::string_view messages_field = "messages";

struct ChatTokens {
  std::vector<std::int32_t> ids;
  std::vector<char> answer;  // per token: does the assistant say it?
};
ChatTokens tokenized(const Conversation&, const Tokenizer&);

struct ChatOptions {
  i64 length = 0;                        // of a row; longer conversations are cut
  RenderOptions render = {};             // `ends` are the tokenizer's special tokens
  std::optional<FromFirst> others = {};  // the first process renders; none: this one is the only one
};
std::shared_ptr<const TokenSource> open_chat(const std::vector<std::filesystem::path>& files, const Tokenizer&,
                                             const ChatTemplate&, const ChatOptions&);

// Of data.template (a file), or of what lies beside the tokenizer; an Error when there is none.
ChatTemplate chat_template_for(const std::string& file, const std::string& tokenizer);

// Of all special tokens: what templates end a message with.
std::vector<std::string> special_texts(const Tokenizer&);

}  // namespace stretto
