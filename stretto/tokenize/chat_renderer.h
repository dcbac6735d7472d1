// Conversations as text, the way a chat template says. A template is a program that anybody may have written: jinja2
// runs it in its sandbox, in a process of its own with limits (scripts/render_chats), which ends with the renderer.
//
//   ChatRenderer renderer(*find_chat_template("model"));
//   renderer.put(R"({"messages": [{"role": "user", "content": "Hi"}, ...]})", "chats.jsonl:1");
//   Conversation c = renderer.take();                        // with the stretches that the assistant said
//
// Several may be put before the first is taken: they are rendered meanwhile, and come in their order.
#pragma once
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/base/id.h"
#include "stretto/tokenize/chat_template.h"

namespace stretto {

class LineProcess;

struct Conversation {
  struct Stretch {
    std::size_t begin = 0, end = 0;  // bytes of `text`
  };
  std::string text;
  std::vector<Stretch> answers;  // in order
};

struct RenderOptions {
  // What an assistant's message says is an answer, and the one of these texts that follows it: special tokens.
  // Templates with {% generation %} say themselves what an answer is.
  std::vector<std::string> ends = {};
  std::string date = {};     // for templates that ask for it, 2026-11-18; "": today
  double seconds = 20;       // of the processor's time, for a conversation
  u64 bytes = u64(1) << 30;  // of memory
  std::vector<std::string> pythons = {"python3", "/usr/bin/python3"};  // the first one that has jinja2
};

class ChatRenderer {
 public:
  explicit ChatRenderer(ChatTemplate, RenderOptions = {});  // an Error for what is no template, and without jinja2
  ~ChatRenderer();

  // An object with `messages`, as JSON in one line; what else is in it (`tools`) are variables of the template.
  void put(std::string_view chat, std::string where);
  Conversation take();
  std::size_t waiting() const { return waiting_.size(); }
  // Up to where the assistant goes on. Only while nothing waits.
  std::string prompt(std::string_view chat, std::string where);

 private:
  Field answer(const std::string& where);
  std::vector<std::string> parts(const std::string& where);
  [[noreturn]] void refuse_answer(const Field& answer, const std::string& where) const;
  [[noreturn]] void has_ended(const std::string& where);

  ChatTemplate template_;
  RenderOptions options_;
  std::unique_ptr<LineProcess> process_;
  std::deque<std::string> waiting_;  // where they stand
  bool marks_ = false;               // it has {% generation %}
};

}  // namespace stretto
