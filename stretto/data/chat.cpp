#include "stretto/data/chat.h"

#include <algorithm>

#include "stretto/base/clock.h"
#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/data/documents.h"

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

// Rendered ahead of the one whose tokens are made: enough that neither waits for the other, and little memory.
constexpr std::size_t most_ahead = 64;
constexpr std::size_t ahead_bytes = 1 << 20;

using Use = std::function<void(ChatTokens)>;

// Every conversation of the files, in their order.
void render_all(const std::vector<fs::path>& files, const Tokenizer& tokenizer, const ChatTemplate& how,
                RenderOptions o, const Use& use) {
  o.ends = special_texts(tokenizer);
  ChatRenderer renderer(how, std::move(o));
  std::size_t bytes = 0;  // put since nothing waited
  const auto take = [&] { use(tokenized(renderer.take(), tokenizer)); };
  for (const fs::path& f : files)
    each_line(f, [&](const Field& chat, std::string_view line, const std::string& where) {
      check_messages(chat, where);
      renderer.put(line, where);
      if (renderer.waiting() > most_ahead) take();
      if ((bytes += line.size()) > ahead_bytes)
        for (bytes = 0; renderer.waiting() > 0;) take();
    });
  while (renderer.waiting() > 0) take();
}

// Conversations as words that other processes read: how many tokens, and each of them, in an answer its complement.
void pack(const ChatTokens& c, std::vector<std::int32_t>& words) {
  words.push_back(std::int32_t(c.ids.size()));
  for (std::size_t i = 0; i < c.ids.size(); ++i) words.push_back(c.answer[i] ? ~c.ids[i] : c.ids[i]);
}
void unpack(std::span<const std::int32_t> words, const Use& use) {
  for (std::size_t at = 0; at < words.size();) {
    ChatTokens c;
    for (const std::int32_t word : words.subspan(at + 1, words[at])) {
      c.ids.push_back(word < 0 ? ~word : word);
      c.answer.push_back(word < 0);
    }
    at += 1 + c.ids.size();
    use(std::move(c));
  }
}

// The first process sends what it has at least every few seconds: the others do not wait longer than that.
constexpr std::size_t words_at_once = 1 << 18;
constexpr double seconds_at_most = 5;

void from_first(const FromFirst& others, const std::function<void(const Use&)>& render, const Use& use) {
  std::vector<std::int32_t> words;
  if (others.first) {
    double sent = now();
    render([&](ChatTokens c) {
      pack(c, words);
      use(std::move(c));
      if (words.size() < words_at_once && now() < sent + seconds_at_most) return;
      others.share(words);
      words.clear();
      sent = now();
    });
    if (!words.empty()) others.share(words);
    words.clear();
    return others.share(words);
  }
  for (others.share(words); !words.empty(); others.share(words)) unpack(words, use);
}

class Chats : public TokenSource {
 public:
  Chats(const std::vector<fs::path>& files, const Tokenizer& tokenizer, const ChatTemplate& how, const ChatOptions& o)
      : vocab_(tokenizer.vocab()), length_(o.length), pad_(tokenizer.end_of_text().value_or(0)) {
    name_ = files.size() == 1 ? files[0].string() : fmt::format("{} files from {} on", files.size(), files[0].string());
    for (const fs::path& f : files)
      if (!has_lines(f))
        throw Error("data", "'{}' is no .jsonl file, and conversations are read from those", f.string())
            .hint("write a conversation per line: {{\"messages\": [...]}}");
    const auto render = [&](const Use& use) { render_all(files, tokenizer, how, o.render, use); };
    const Use use = [&](ChatTokens c) { add(std::move(c)); };
    o.others ? from_first(*o.others, render, use) : render(use);
    if (tokens() == 0)
      throw Error("data", "{} has no conversation with an answer among its first {} tokens", name_, length_)
          .hint(
              "answers are messages with the role 'assistant', as {} writes them; model.context says how long a row is",
              how.where);
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

std::vector<std::string> special_texts(const Tokenizer& tokenizer) {
  std::vector<std::string> all;
  for (const std::int32_t id : tokenizer.special_ids()) all.push_back(tokenizer.decode(std::span(&id, 1)));
  return all;
}

ChatTemplate chat_template_for(const std::string& file, const std::string& tokenizer) {
  std::optional<fs::path> beside;
  if (tokenizer != "bytes" && tokenizer != "none") beside = tokenizer_file(tokenizer).parent_path();
  if (!file.empty() && !is_there(file))
    throw Error("data", "there is no template '{}'", file).hint("data.template names a Jinja file");
  if (!file.empty()) return read_chat_template(file, beside ? files_in(*beside) : no_files);
  if (beside)
    if (auto found = find_chat_template(*beside)) return std::move(*found);
  throw Error("data", "there is no chat template beside the tokenizer '{}'", tokenizer)
      .hint("put chat_template.jinja or a tokenizer_config.json that has one beside it, or name one: data.template");
}

}  // namespace stretto
