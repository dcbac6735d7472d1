// Where a template stands, and what conversations must look like.
#include "stretto/tokenize/chat_template.h"

#include <gtest/gtest.h>

#include "support/files.h"
#include "support/message.h"

namespace stretto {
namespace {

TEST(ChatTemplates, AFileOfItsOwnComesBeforeTheConfigurations) {
  const test::Folder folder;
  EXPECT_FALSE(find_chat_template(folder.str()));
  folder.write("tokenizer_config.json", R"({"chat_template": "config", "bos_token": {"content": "<s>"},
      "add_bos_token": true, "pad_token": null, "image_token": "<image>"})");
  ChatTemplate t = *find_chat_template(folder.str());
  EXPECT_EQ(t.source, "config");
  EXPECT_EQ(t.where, folder.str() + "/tokenizer_config.json, chat_template");
  EXPECT_EQ(write_json(t.tokens), R"({"bos_token":"<s>","image_token":"<image>"})");
  folder.write("chat_template.jinja", "file");
  t = *find_chat_template(folder.str());
  EXPECT_EQ(t.source, "file");
  EXPECT_EQ(t.where, folder.str() + "/chat_template.jinja");
  EXPECT_EQ(write_json(t.tokens), R"({"bos_token":"<s>","image_token":"<image>"})");
}

TEST(ChatTemplates, OfSeveralTheDefaultIsTaken) {
  const test::Folder folder;
  folder.write("tokenizer_config.json",
               R"({"chat_template": [{"name": "tool_use", "template": "a"}, {"name": "default", "template": "b"}]})");
  EXPECT_EQ(find_chat_template(folder.str())->source, "b");
  folder.write("tokenizer_config.json", R"({"chat_template": [{"name": "tool_use", "template": "a"}]})");
  EXPECT_FALSE(find_chat_template(folder.str()));
}

TEST(ChatTemplates, MessagesHaveRolesAndContents) {
  const auto said = [](const std::string& json) {
    return refusal_of([&] { check_messages(read_json(json, "c"), "c.jsonl:3"); });
  };
  const std::string hint = "; hint: a line is {\"messages\": [{\"role\": \"user\", \"content\": \"...\"}, ...]}";
  EXPECT_EQ(said("{}"), "[c.jsonl:3] has no list 'messages'" + hint);
  EXPECT_EQ(said(R"({"messages": []})"), "[c.jsonl:3] 'messages' is empty" + hint);
  EXPECT_EQ(said(R"({"messages": [{"role": "user", "content": "a"}, {"content": "b"}]})"),
            "[c.jsonl:3] message 2 has no 'role'" + hint);
  EXPECT_EQ(said(R"({"messages": [{"role": "user", "content": null}]})"),
            "[c.jsonl:3] message 1 has no text as its 'content'" + hint);
}

}  // namespace
}  // namespace stretto
