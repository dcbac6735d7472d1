// Runs on conversations: the day on which they started.
#include "stretto/run/inner/conversations.h"

#include <gmock/gmock.h>

#include "stretto/base/day.h"
#include "stretto/run/loop.h"
#include "support/chats.h"
#include "support/files.h"
#include "support/message.h"

namespace stretto {
namespace {

using testing::HasSubstr;

struct ChatRun {
  ChatRun() {
    std::string chats;
    for (int i = 0; i < 40; ++i)
      chats += fmt::format(
          R"({{"messages": [{{"role": "user", "content": "{}"}}, {{"role": "assistant", "content": "{}"}}]}})"
          "\n",
          i * 7 % 10, i % 10);
    folder.write("c.jsonl", chats);
    folder.write("t.jinja", "{{ strftime_now('%Y%m%d') }}{% for m in messages %}{{ m.content }}{% endfor %}");
  }
  RunConfig config(const std::vector<std::string>& more) const {
    std::vector<std::string> all{"--model.layers=1",
                                 "--model.width=16",
                                 "--model.heads=2",
                                 "--model.context=16",
                                 "--train.batch=4",
                                 "--train.steps=8",
                                 "--data.field=messages",
                                 "--data.path=" + (folder / "c.jsonl").string(),
                                 "--data.template=" + (folder / "t.jinja").string()};
    all.insert(all.end(), more.begin(), more.end());
    return read_run("", all);
  }
  std::string dir(const std::string& name) const { return (folder / name).string(); }
  u64 run(const std::string& name, const std::vector<std::string>& more,
          const std::optional<std::string>& resume = {}) const {
    std::vector<std::string> all = more;
    all.push_back("--log.dir=" + dir(name));
    std::FILE* out = std::fopen("/dev/null", "w");
    const RunSummary s = train(config(all), out, Verbosity::normal, resume);
    std::fclose(out);
    return s.parameters;
  }
  std::string date_of(const std::string& name) const {
    const Field config = read_toml_file(folder / name / "config.toml");
    const Field* date = config.find("data")->find("date");
    return date ? std::get<std::string>(date->value) : "none";
  }
  test::Folder folder;
};

class Conversations : public testing::Test {
 protected:
  void SetUp() override { STRETTO_NEEDS_JINJA(); }
};

TEST_F(Conversations, ARunKeepsTheDayOnWhichItStarted) {
  const ChatRun chats;
  const u64 then = chats.run("then", {"--data.date=2020-01-02"});
  const u64 now = chats.run("now", {});
  EXPECT_NE(then, now) << "the template says the day";
  EXPECT_EQ(chats.date_of("now"), today());
  // It is resumed on another day, and nobody says which one it was.
  chats.run("twice", {"--data.date=2020-01-02", "--train.steps=4", "--optimizer.schedule=constant"});
  const u64 resumed = chats.run("twice", {"--optimizer.schedule=constant"}, "");
  EXPECT_EQ(chats.date_of("twice"), "2020-01-02");
  EXPECT_EQ(resumed, chats.run("once", {"--data.date=2020-01-02", "--optimizer.schedule=constant"}));
  const std::string manifest = test::text_of(chats.folder / "twice/checkpoints/step-00000008/manifest.json");
  EXPECT_THAT(manifest, HasSubstr("date = \\\"2020-01-02\\\""));
}

TEST(ConversationDates, AreDaysAndOnlyOfConversations) {
  const ChatRun chats;
  EXPECT_THAT(refusal_of([&] { chats.config({"--data.date=2020-02-30"}); }), HasSubstr("is no day: '2020-02-30'"));
  RunConfig text = chats.config({"--data.field=text"});
  settle_conversations(text, nullptr);
  EXPECT_EQ(text.data.date, "");
  EXPECT_TRUE(is_day("2024-02-29"));
  EXPECT_FALSE(is_day("2023-02-29"));
  EXPECT_FALSE(is_day("2023-2-9"));
  EXPECT_FALSE(is_day("2023-02-09 "));
}

}  // namespace
}  // namespace stretto
