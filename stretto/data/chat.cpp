#include "stretto/data/chat.h"

#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/data/documents.h"
#include "stretto/formats/mapped_file.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;

constexpr std::int32_t ignored_target = -100;
constexpr std::size_t open_rows = 256;  // rows that a conversation may still go into

// Where every token begins in the text; none: tokens are no stretches of it as it stands.
std::optional<std::vector<std::size_t>> places_of(const std::vector<std::int32_t>& ids, const Tokenizer& tokenizer,
                                                  std::string_view text) {
  std::vector<std::size_t> places;
  std::size_t at = 0;
  for (const std::int32_t id : ids) {
    const std::string own = tokenizer.decode(std::span(&id, 1), true, false);
    places.push_back(at);
    const std::string_view rest = text.substr(at);
    if (rest.starts_with(own))
      at += own.size();
    else if (own.starts_with(' ') && rest.starts_with(std::string_view(own).substr(1)))
      at += own.size() - 1;  // a blank that the tokenizer puts before a text
    else
      return std::nullopt;
  }
  return at == text.size() ? std::optional(std::move(places)) : std::nullopt;
}

// Each stretch by itself: what generation sees, too, where a prompt ends and an answer begins.
ChatTokens in_stretches(const Conversation& c, const Tokenizer& tokenizer) {
  ChatTokens all;
  const auto put = [&](std::size_t begin, std::size_t end, bool answer) {
    if (begin >= end) return;
    for (const std::int32_t id : tokenizer.encode(std::string_view(c.text).substr(begin, end - begin)))
      all.ids.push_back(id), all.answer.push_back(answer);
  };
  std::size_t at = 0;
  for (const Conversation::Stretch& s : c.answers) {
    put(at, s.begin, false);
    put(s.begin, s.end, true);
    at = s.end;
  }
  put(at, c.text.size(), false);
  return all;
}

class Chats : public TokenSource {
 public:
  Chats(const std::vector<fs::path>& files, const Tokenizer& tokenizer, const ChatTemplate& how, const ChatOptions& o)
      : vocab_(tokenizer.vocab()), length_(o.length), pad_(tokenizer.end_of_text().value_or(0)) {
    name_ = files.size() == 1 ? files[0].string() : fmt::format("{} files from {} on", files.size(), files[0].string());
    const std::vector<std::string> ends = special_texts(tokenizer);
    for (const fs::path& f : files) {
      if (!has_lines(f))
        throw Error("data", "'{}' is no .jsonl file, and conversations are read from those", f.string())
            .hint("write a conversation per line: {{\"messages\": [...]}}");
      each_line(f, [&](const Field& chat, const std::string& where) {
        check_messages(chat, where);
        try {
          add(tokenized(how.render(chat, ends), tokenizer));
        } catch (Error& e) {
          throw std::move(e.within(where));
        }
      });
    }
    if (tokens() == 0)
      throw Error("data", "{} has no conversation in which the assistant says anything", name_)
          .hint("answers are messages with the role 'assistant'");
  }

  i64 tokens() const override { return std::ssize(rows_) * length_; }
  i64 vocab() const override { return vocab_; }
  bool in_rows() const override { return true; }
  void read(i64 first, std::span<std::int32_t> to) const override { copy(first, to, false); }
  void targets(i64 first, std::span<std::int32_t> to) const override { copy(first, to, true); }
  std::vector<i64> documents(i64 first, i64 end) const override {
    std::vector<i64> starts;
    for (i64 row = first / length_; row * length_ < end && row < std::ssize(rows_); ++row)
      for (const i64 start : rows_[row].starts)
        if (const i64 at = row * length_ + start; at > first && at < end) starts.push_back(at);
    return starts;
  }
  std::string str() const override {
    std::string text = fmt::format("{}, {} conversations in {} rows", name_, conversations_, rows_.size());
    if (cut_ > 0) text += fmt::format(", {} cut to {} tokens", cut_, length_);
    if (mute_ > 0) text += fmt::format(", {} without an answer left out", mute_);
    return text;
  }

 private:
  struct Row {
    std::vector<std::int32_t> ids;
    std::vector<char> answer;
    std::vector<i64> starts;  // of conversations, and of what fills the row up
  };

  // Tokens that templates end a message with.
  static std::vector<std::string> special_texts(const Tokenizer& tokenizer) {
    std::vector<std::string> all;
    for (const std::int32_t id : tokenizer.special_ids()) all.push_back(tokenizer.decode(std::span(&id, 1)));
    return all;
  }

  void add(ChatTokens c) {
    ++conversations_;
    if (std::ssize(c.ids) > length_) c.ids.resize(length_), c.answer.resize(length_), ++cut_;
    if (std::find(c.answer.begin() + (c.answer.empty() ? 0 : 1), c.answer.end(), char(1)) == c.answer.end()) {
      ++mute_;
      return;
    }
    const std::size_t first = rows_.size() > open_rows ? rows_.size() - open_rows : 0;
    auto row = std::find_if(rows_.begin() + first, rows_.end(),
                            [&](const Row& r) { return std::ssize(r.ids) + std::ssize(c.ids) <= length_; });
    if (row == rows_.end()) row = rows_.insert(rows_.end(), Row());
    row->starts.push_back(std::ssize(row->ids));
    row->ids.insert(row->ids.end(), c.ids.begin(), c.ids.end());
    row->answer.insert(row->answer.end(), c.answer.begin(), c.answer.end());
  }

  void copy(i64 first, std::span<std::int32_t> to, bool targets) const {
    STRETTO_ASSERT(first >= 0 && first + std::ssize(to) <= tokens(), "outside of the conversations");
    for (i64 at = first; std::int32_t & id : to) {
      const Row& row = rows_[at / length_];
      const i64 place = at++ % length_;
      const bool there = place < std::ssize(row.ids);
      id = !there ? (targets ? ignored_target : pad_) : targets && !row.answer[place] ? ignored_target : row.ids[place];
    }
  }

  i64 vocab_, length_;
  std::int32_t pad_;
  std::string name_;
  std::vector<Row> rows_;
  i64 conversations_ = 0, cut_ = 0, mute_ = 0;
};

}  // namespace

ChatTokens tokenized(const Conversation& c, const Tokenizer& tokenizer) {
  ChatTokens all{.ids = tokenizer.encode(c.text)};
  const auto places = places_of(all.ids, tokenizer, c.text);
  if (!places) return in_stretches(c, tokenizer);
  auto stretch = c.answers.begin();
  for (const std::size_t at : *places) {
    while (stretch != c.answers.end() && at >= stretch->end) ++stretch;
    all.answer.push_back(stretch != c.answers.end() && at >= stretch->begin);
  }
  return all;
}

std::shared_ptr<const TokenSource> open_chat(const std::vector<fs::path>& files, const Tokenizer& tokenizer,
                                             const ChatTemplate& how, const ChatOptions& o) {
  return std::make_shared<Chats>(files, tokenizer, how, o);
}

ChatTemplate chat_template_for(const std::string& file, const std::string& tokenizer) {
  if (!file.empty()) {
    if (!is_there(file))
      throw Error("data", "there is no template '{}'", file).hint("data.template names a Jinja file");
    fs::path beside =
        tokenizer == "bytes" || tokenizer == "none" ? fs::path() : tokenizer_file(tokenizer).parent_path();
    return ChatTemplate(MappedFile(file).text(), file, template_tokens(beside));
  }
  if (tokenizer != "bytes" && tokenizer != "none")
    if (auto found = find_chat_template(tokenizer_file(tokenizer).parent_path())) return std::move(*found);
  throw Error("data", "there is no chat template beside the tokenizer '{}'", tokenizer)
      .hint("put chat_template.jinja or a tokenizer_config.json that has one beside it, or name one: data.template");
}

}  // namespace stretto
