// Conversations as rows: whole ones, a loss on answers alone.
#include "stretto/data/chat.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "stretto/data/sequences.h"
#include "support/chats.h"
#include "support/files.h"
#include "support/message.h"

namespace stretto {
namespace {

// Bytes as tokens: a template without special tokens, so that every position is one of the text.
constexpr const char* short_template =
    "{% for m in messages %}{{ m.role[0] }}:{{ m.content }}\n{% endfor %}{% if add_generation_prompt %}a:{% endif %}";

std::string line(const std::string& question, const std::string& answer) {
  return fmt::format(
             R"({{"messages": [{{"role": "user", "content": "{}"}}, {{"role": "assistant", "content": "{}"}}]}})",
             question, answer) +
         "\n";
}

struct ChatFiles {
  ChatFiles() {
    folder.write("t.jinja", short_template);
    folder.write("c.jsonl", line("one", "two") + line("three", "four") + line("a", "a much longer answer than fits") +
                                line("five", "six") + "\n" + line("quiet", ""));
  }
  CorpusOptions options() const {
    return {.path = {(folder / "c.jsonl").string()},
            .field = "messages",
            .chat_template = (folder / "t.jinja").string(),
            .documents = true};
  }
  test::Folder folder;
};

std::string text_of(std::span<const std::int32_t> ids) {
  std::string s;
  for (const std::int32_t id : ids) s += id < 0 ? '_' : id == 0 ? '.' : id == '\n' ? '|' : char(id);
  return s;
}

class Chat : public testing::Test {
 protected:
  void SetUp() override { STRETTO_NEEDS_JINJA(); }
};

TEST_F(Chat, RowsHoldWholeConversationsAndTargetsAreAnswers) {
  const ChatFiles files;
  const Corpus corpus = open_corpus(files.options(), 28);
  const TokenSource& source = *corpus.training[0].source;
  EXPECT_EQ(corpus.name, (files.folder / "c.jsonl").string() +
                             ", 5 conversations in 3 rows, 1 cut to 28 tokens, 1 without an answer left out");
  EXPECT_TRUE(source.in_rows());
  ASSERT_EQ(source.tokens(), 3 * 28);
  const RowsOptions o{.length = 28, .batch = 3, .documents = true};
  const Rows rows = validation_rows(source, o, 1, 0);
  const auto row = [&](const std::vector<std::int32_t>& all, std::size_t i) {
    return text_of(std::span(all).subspan(i * 28, 28));
  };
  EXPECT_EQ(row(rows.ids, 0), "u:one|a:two|u:three|a:four|.");
  EXPECT_EQ(row(rows.targets, 0), "_______two___________four___");
  EXPECT_EQ(row(rows.ids, 1), "u:a|a:a much longer answer t");
  EXPECT_EQ(row(rows.targets, 1), "_____a much longer answer t_");
  EXPECT_EQ(row(rows.ids, 2), "u:five|a:six|...............");
  EXPECT_EQ(row(rows.targets, 2), "________six_________________");
  const std::vector<std::int32_t> segments(rows.segments.begin(), rows.segments.begin() + 28);
  EXPECT_EQ(segments[11], 0);
  EXPECT_EQ(segments[12], 1);
  EXPECT_EQ(segments[26], 1);
}

TEST_F(Chat, EveryEpochHasEveryRowOnceAndNoOtherCuts) {
  const ChatFiles files;
  const TrainingRows training(open_corpus(files.options(), 28),
                              {.length = 28, .batch = 3, .seed = 7, .documents = true});
  for (i64 step = 1; step < 6; ++step) {
    const Rows rows = training.at(step);
    std::vector<std::string> all;
    for (std::size_t i = 0; i < 3; ++i) all.push_back(text_of(std::span(rows.ids).subspan(i * 28, 5)));
    std::sort(all.begin(), all.end());
    EXPECT_EQ(all, (std::vector<std::string>{"u:a|a", "u:fiv", "u:one"})) << step;
  }
}

TEST_F(Chat, HeldOutRowsAreWhole) {
  const ChatFiles files;
  CorpusOptions o = files.options();
  o.validation = 0.4;
  const Corpus corpus = open_corpus(o, 28);
  EXPECT_EQ(corpus.training[0].source->tokens(), 2 * 28);
  EXPECT_EQ(corpus.validation->tokens(), 28);
  std::vector<std::int32_t> ids(28);
  corpus.validation->read(0, ids);
  EXPECT_EQ(text_of(ids).substr(0, 6), "u:five");
}

TEST_F(Chat, MistakesAreNamed) {
  const ChatFiles files;
  const auto said = [&](const CorpusOptions& o) {
    std::string text = refusal_of([&] { open_corpus(o, 28); });
    for (std::size_t at; (at = text.find(files.folder.str() + "/")) != text.npos;)
      text.erase(at, files.folder.str().size() + 1);
    return text;
  };
  CorpusOptions o = files.options();
  o.field = "text";
  EXPECT_EQ(said(o),
            "[c.jsonl:1] has no key 'text', but 'messages'; hint: for conversations write data.field = \"messages\" in the run, "
            "or eval --field messages");
  o = files.options();
  o.chat_template.clear();
  EXPECT_EQ(said(o),
            "[data] there is no chat template beside the tokenizer 'bytes'; hint: put chat_template.jinja or a "
            "tokenizer_config.json that has one beside it, or name one: data.template");
  files.folder.write("c.jsonl", line("a", "b") + "{\"messages\": [{\"content\": \"x\"}]}\n");
  EXPECT_EQ(said(files.options()).substr(0, 37), "[c.jsonl:2] message 1 has no 'role'; ");
  files.folder.write("c.jsonl", "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}]}\n");
  EXPECT_EQ(said(files.options()),
            "[data] c.jsonl has no conversation with an answer among its first 28 tokens; hint: answers are messages with "
            "the role 'assistant', as t.jinja writes them; model.context says how long a row is");
}

// What processes tell each other, between threads.
class Told {
 public:
  void tell(std::vector<std::int32_t>& words) {
    const std::lock_guard lock(mutex_);
    all_.push_back(words);
    changed_.notify_all();
  }
  void hear(std::vector<std::int32_t>& words) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !all_.empty(); });
    words = std::move(all_.front());
    all_.pop_front();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::vector<std::int32_t>> all_;
};

TEST_F(Chat, OfSeveralProcessesOnlyTheFirstReadsAndRenders) {
  const ChatFiles files;
  std::string many;
  for (int i = 0; i < 3000; ++i) many += line(fmt::format("question {}", i), std::string(100 + i % 50, 'a'));
  files.folder.write("c.jsonl", many);
  files.folder.write("nothing.jsonl", line("of this", "nothing is read"));
  const std::vector<std::filesystem::path> chats{files.folder / "c.jsonl"}, others{files.folder / "nothing.jsonl"};
  const ChatTemplate how{.source = short_template, .where = "t.jinja"};
  const ChatTemplate refuses{.source = "{{ raise_exception('rendered') }}", .where = "t.jinja"};
  Told told;
  int blocks = 0;
  const auto tell = [&](std::vector<std::int32_t>& words) { ++blocks, told.tell(words); };
  const auto hear = [&](std::vector<std::int32_t>& words) { told.hear(words); };
  std::shared_ptr<const TokenSource> second;
  std::thread other([&] {
    second = open_chat(others, Tokenizer::bytes(), refuses, {.length = 300, .others = FromFirst{false, hear}});
  });
  const auto first = open_chat(chats, Tokenizer::bytes(), how, {.length = 300, .others = FromFirst{true, tell}});
  other.join();
  EXPECT_GT(blocks, 2);
  const auto alone = open_chat(chats, Tokenizer::bytes(), how, {.length = 300});
  ASSERT_EQ(alone->tokens(), first->tokens());
  ASSERT_EQ(alone->tokens(), second->tokens());
  std::vector<std::int32_t> a(alone->tokens()), b(a), c(a);
  for (const bool targets : {false, true}) {
    const auto read = [&](const TokenSource& s, std::vector<std::int32_t>& to) {
      targets ? s.targets(0, to) : s.read(0, to);
    };
    read(*alone, a), read(*first, b), read(*second, c);
    EXPECT_TRUE(a == b && a == c) << targets;
  }
  EXPECT_EQ(alone->documents(0, alone->tokens()), second->documents(0, alone->tokens()));
}

}  // namespace
}  // namespace stretto
