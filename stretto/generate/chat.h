// A conversation for a model to go on with, as its chat template says.
//
//   ChatPrompt p = chat_prompt(m, codec, user_says("What is a bubble?"));
//   generate(m, codec.encode(p.text, false), {.stop = p.ends}, next);
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/generate/generate.h"

namespace stretto {

struct ChatPrompt {
  std::string text;                // up to where the model answers
  std::vector<std::int32_t> ends;  // tokens that end an answer
};
struct ChatPromptOptions {
  std::string chat_template = {};  // a file; "": the one beside the weights
  std::string date = {};           // for templates that ask for it, 2026-11-18; "": today
};
// `chat`: an object with `messages`, and what else the template asks for. `where` it comes from, for messages.
ChatPrompt chat_prompt(const StoredModel&, const Codec&, const Field& chat, std::string_view where,
                       const ChatPromptOptions& = {});

Field user_says(const std::string& text);  // a conversation of one message

}  // namespace stretto
