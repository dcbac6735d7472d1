#include "stretto/tokenize/chat_renderer.h"

#include <signal.h>

#include <algorithm>
#include <cstring>

#include "stretto/base/day.h"
#include "stretto/base/error.h"
#include "stretto/base/text.h"
#include "stretto/formats/utf8.h"
#include "stretto/tokenize/inner/line_process.h"
#include "stretto/tokenize/inner/render_chats.h"

namespace stretto {
namespace {

constexpr const char* package_hint = "apt-get install python3-jinja2 (or pip install jinja2)";

// The first line: what every conversation is rendered with.
std::string first_line(const ChatTemplate& t, const RenderOptions& o) {
  Field first{Field::Table{}};
  first.set("template", t.source);
  first.set("tokens", t.tokens);
  first.set("date", o.date.empty() ? today() : o.date);
  first.set("seconds", o.seconds);
  first.set("bytes", i64(o.bytes));
  return write_json(first);
}

[[noreturn]] void end_with(Error e, const std::string& where) {
  if (!where.empty()) e.within(where);
  throw e;
}

const std::string* text_in(const Field& answer, std::string_view key) {
  const Field* f = answer.find(key);
  return f ? std::get_if<std::string>(&f->value) : nullptr;
}

}  // namespace

ChatRenderer::ChatRenderer(ChatTemplate t, RenderOptions o) : template_(std::move(t)), options_(std::move(o)) {
  if (const auto bad = first_bad_utf8(template_.source))
    throw Error(template_.where, "is not UTF-8 from byte {} on", *bad)
        .hint("a chat template is a text: is it the right file?");
  std::optional<std::string> without;  // a python3 that has no jinja2
  for (const std::string& python : options_.pythons) {
    std::optional<LineProcess> started = LineProcess::start({python, "-c", std::string(render_chats_script())});
    if (!started) continue;
    process_ = std::make_unique<LineProcess>(std::move(*started));
    process_->put(first_line(template_, options_));
    const Field first = answer("");
    if (const std::string* missing = text_in(first, "missing")) {
      if (!without) without = *missing;
      continue;
    }
    if (!first.find("ready")) refuse_answer(first, "");
    marks_ = first.find("marks") != nullptr;
    return;
  }
  throw Error(template_.where, "chat templates are rendered by jinja2, and {}",
              without ? fmt::format("{} does not have it", *without) : "there is no python3")
      .hint("{}", package_hint);
}

ChatRenderer::~ChatRenderer() = default;

// An empty `where`: of the template itself.
Field ChatRenderer::answer(const std::string& where) {
  const std::optional<std::string> line = process_->take();
  if (!line) has_ended(where);
  return read_json(*line, template_.where);
}

std::vector<std::string> ChatRenderer::parts(const std::string& where) {
  const Field a = answer(where);
  const Field* found = a.find("parts");
  if (!found || !found->array()) refuse_answer(a, where);
  std::vector<std::string> all;
  for (const Field& part : *found->array()) all.push_back(std::get<std::string>(part.value));
  return all;
}

void ChatRenderer::has_ended(const std::string& where) {
  const LineProcess::Ending end = process_->ending();
  if (end.signal == SIGPROF)
    end_with(Error(template_.where, "the template takes more than {} of the processor's time{}",
                   human_seconds(options_.seconds), where.empty() ? "" : " for a conversation")
                 .hint("a model's own template takes milliseconds: is it the right one?"),
             where);
  end_with(Error(template_.where, "the process that renders it has ended{}{}",
                 end.signal ? fmt::format(" by signal {} ({})", *end.signal, strsignal(*end.signal)) : "",
                 end.last_line.empty() ? "" : ": " + end.last_line)
               .hint("a model's own template needs little memory: is it the right one?"),
           where);
}

void ChatRenderer::refuse_answer(const Field& answer, const std::string& where) const {
  const Field* line = answer.find("line");
  const std::string place =
      line && !line->is_null() ? fmt::format("{}, line {}", template_.where, line->str()) : template_.where;
  if (const std::string* by_template = text_in(answer, "refused"))
    end_with(Error(place, "the template refuses the conversation: {}", *by_template)
                 .hint("look at the roles and the order of the messages"),
             where);
  if (const std::string* wrong = text_in(answer, "wrong"))
    end_with(
        Error(place, "jinja2 cannot render the template: {}", *wrong)
            .hint("{}", where.empty() ? "is the template whole?" : "has the conversation what the template asks for?"),
        where);
  end_with(Error(place, "the template needs more than {} of memory", human_bytes(options_.bytes))
               .hint("a model's own template needs a few megabytes: is it the right one?"),
           where);
}

void ChatRenderer::put(std::string_view chat, std::string where) {
  process_->put(fmt::format("{{\"chat\": {}}}", chat));
  waiting_.push_back(std::move(where));
}

Conversation ChatRenderer::take() {
  STRETTO_ASSERT(!waiting_.empty(), "nothing was put");
  const std::string where = std::move(waiting_.front());
  waiting_.pop_front();
  Conversation c;
  for (bool said = false; const std::string& part : parts(where)) {
    const std::size_t begin = c.text.size();
    c.text += part;
    if (said) c.answers.push_back({begin, c.text.size()});
    said = !said;
  }
  if (marks_) return c;
  for (Conversation::Stretch& s : c.answers) {
    std::size_t longest = 0;
    for (const std::string& end : options_.ends)
      if (!end.empty() && c.text.compare(s.end, end.size(), end) == 0) longest = std::max(longest, end.size());
    s.end += longest;
  }
  return c;
}

std::string ChatRenderer::prompt(std::string_view chat, std::string where) {
  STRETTO_ASSERT(waiting_.empty(), "a prompt is taken at once");
  process_->put(fmt::format("{{\"chat\": {}, \"prompt\": true}}", chat));
  return join(parts(where), "");
}

}  // namespace stretto
