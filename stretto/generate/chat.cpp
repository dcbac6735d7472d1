#include "stretto/generate/chat.h"

#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/tokenize/chat_renderer.h"

namespace stretto {
namespace {

ChatTemplate template_of(const StoredModel& m, const std::string& file) {
  const FilesBeside beside = [&](const std::string& name) -> std::optional<std::string> {
    for (const Snapshot::Extra& e : m.extras)
      if (e.name == name) return e.text;
    return std::nullopt;
  };
  if (!file.empty() && !is_there(file))
    throw Error("generate", "there is no template '{}'", file).hint("--template names a Jinja file");
  if (!file.empty()) return read_chat_template(file, beside);
  if (auto found = find_chat_template(beside, m.path)) return std::move(*found);
  throw Error("generate", "there is no chat template beside the weights in '{}'", m.path.string())
      .hint("name one: --template FILE; or leave --chat out");
}

Field message(std::string role, std::string content) {
  return Field::Table{{"role", std::move(role)}, {"content", std::move(content)}};
}

// The special token that the template puts after an answer; none: it refuses an answer here, or puts no such token.
std::optional<std::int32_t> end_of_answer(ChatRenderer& renderer, const Codec& codec, Field chat) {
  Field::Array messages = *chat.find("messages")->array();
  messages.push_back(message("assistant", "answer"));
  chat.set("messages", std::move(messages));
  Conversation c;
  try {
    renderer.put(write_json(chat), "chat");
    c = renderer.take();
  } catch (const Error&) {
    return std::nullopt;
  }
  if (c.answers.empty()) return std::nullopt;
  const std::string_view last = std::string_view(c.text).substr(0, c.answers.back().end);
  std::optional<std::int32_t> best;
  std::size_t longest = 0;
  for (const auto& [text, id] : codec.special)
    if (text.size() > longest && last.ends_with(text)) best = id, longest = text.size();
  return best;
}

}  // namespace

Field user_says(const std::string& text) {
  Field chat{Field::Table{}};
  chat.set("messages", Field::Array{message("user", text)});
  return chat;
}

ChatPrompt chat_prompt(const StoredModel& m, const Codec& codec, const Field& chat, std::string_view where,
                       const ChatPromptOptions& o) {
  check_messages(chat, where);
  RenderOptions render{.date = o.date};
  for (const auto& [text, id] : codec.special) render.ends.push_back(text);
  ChatRenderer renderer(template_of(m, o.chat_template), std::move(render));
  ChatPrompt p{.text = renderer.prompt(write_json(chat), std::string(where)), .ends = codec.ends};
  if (const auto end = end_of_answer(renderer, codec, chat)) p.ends.push_back(*end);
  return p;
}

}  // namespace stretto
