// Templates as transformers renders them (tests/files/chat/make.py), and where answers stand.
#include "stretto/tokenize/chat_template.h"

#include <gtest/gtest.h>

#include "support/files.h"
#include "support/message.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;
const fs::path chats_folder = fs::path(STRETTO_TEST_DATA) / "chat";

ChatTemplate template_in(const std::string& file) {
  return ChatTemplate(test::text_of(chats_folder / file), file,
                      {{"bos_token", Field("<s>")}, {"eos_token", Field("</s>")}});
}

TEST(ChatTemplates, TextsAreThoseOfTransformers) {
  const Field expected = read_json_file(chats_folder / "expected.json");
  int seen = 0, refused = 0;
  for (const auto& [file, results] : *expected.find("templates")->table()) {
    const ChatTemplate t = template_in(file);
    for (std::size_t i = 0; i < results.array()->size(); ++i)
      for (const bool prompt : {false, true}) {
        const Field& theirs = (*(*results.array())[i].array())[prompt];
        const Field& chat = (*expected.find("chats")->array())[i];
        ++seen;
        if (const Field* why = theirs.find("refused")) {
          ++refused;
          EXPECT_NE(refusal_of([&] { t.render(chat, prompt); }).find(std::get<std::string>(why->value)),
                    std::string::npos)
              << file << " " << i;
        } else {
          EXPECT_EQ(t.render(chat, prompt), std::get<std::string>(theirs.value)) << file << " " << i;
        }
      }
  }
  EXPECT_EQ(seen, 120);
  EXPECT_GT(refused, 0);
}

TEST(ChatTemplates, LinesMayEndInAnyWay) {
  const Field chat = read_json(R"({"messages": [{"role": "user", "content": "a\r\nb"}]})", "chat");
  const std::string text = "<s>\n{%- for m in messages %}\n{{ m.content }}\n{% endfor %}\nend\n";
  std::string dos, old;
  for (const char c : text) dos += c == '\n' ? "\r\n" : std::string(1, c), old += c == '\n' ? '\r' : c;
  for (const std::string& one : {text, dos, old})
    EXPECT_EQ(ChatTemplate(one, "x").render(chat, false), "<s>a\r\nb\nend") << one;
}

std::vector<std::string> answers_of(const std::string& file, const std::string& chat) {
  const Conversation c = template_in(file).render(read_json(chat, "chat"), {"<|im_end|>", "</s>", "<|eot_id|>"});
  std::vector<std::string> all;
  for (const Conversation::Stretch& s : c.answers) all.push_back(c.text.substr(s.begin, s.end - s.begin));
  return all;
}

TEST(ChatTemplates, AnswersAreWhatTheAssistantSaysWithTheTokenThatEndsIt) {
  using Texts = std::vector<std::string>;
  const std::string chat = R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": " b "},
      {"role": "user", "content": "b"}, {"role": "assistant", "content": "<think>\nx\n</think>\n\nb c"}]})";
  EXPECT_EQ(answers_of("llama3_style.jinja", chat), (Texts{"b<|eot_id|>", "<think>\nx\n</think>\n\nb c<|eot_id|>"}));
  EXPECT_EQ(answers_of("mistral_style.jinja", chat), (Texts{"b</s>", "<think>\nx\n</think>\n\nb c</s>"}));
  // What the template makes of thoughts is a part of the answer when it comes from it.
  EXPECT_EQ(answers_of("qwen_style.jinja", chat), (Texts{" b <|im_end|>", "x\n</think>\n\nb c<|im_end|>"}));
  EXPECT_EQ(answers_of("blanks.jinja", chat), (Texts{"marked 4"}));
}

TEST(ChatTemplates, WhatIsNotKnownIsRefusedByName) {
  const auto said = [](const std::string& source) { return refusal_of([&] { ChatTemplate(source, "t.jinja"); }); };
  EXPECT_EQ(said("a\n{% include 'x' %}"),
            "[t.jinja, line 2] the statement 'include' is not supported; hint: templates are read in the part of Jinja "
            "that docs/finetune.md describes");
  EXPECT_EQ(said("{{ x | groupby('a') }}").substr(0, 61),
            "[t.jinja, line 1] the filter 'groupby' is not supported; hint");
  EXPECT_EQ(said("{{ x is divisibleby 3 }}").substr(0, 57),
            "[t.jinja, line 1] the test 'divisibleby' is not supported");
  EXPECT_EQ(said("{{ x.format(1) }}").substr(0, 54), "[t.jinja, line 1] the method 'format' is not supported");
  EXPECT_EQ(said("{% if x %}a"),
            "[t.jinja, line 1] 'endif' is missing at the end; hint: templates are read in the part "
            "of Jinja that docs/finetune.md describes");
  EXPECT_EQ(said("{{ 'a }}"), "[t.jinja, line 1] a string has no end; hint: is the template whole?");
  EXPECT_NE(said("{{ " + std::string(5000, '(') + " }}").find("too deep"), std::string::npos);
  EXPECT_NE(said("{% endfor %}").find("'endfor' ends nothing"), std::string::npos);
}

TEST(ChatTemplates, WhatGoesWrongNamesTheLine) {
  const Field chat = read_json(R"({"messages": [{"role": "user", "content": "a"}]})", "chat");
  const auto said = [&](const std::string& source) {
    return refusal_of([&] { ChatTemplate(source, "t.jinja").render(chat, false); });
  };
  EXPECT_EQ(said("\n\n{{ nothing.at.all }}").substr(0, 45), "[t.jinja, line 3] 'at' of what is not defined");
  EXPECT_EQ(said("{{ messages + 1 }}").substr(0, 35), "[t.jinja, line 1] a list + a number");
  EXPECT_EQ(said("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}").substr(0, 46),
            "[t.jinja, line 1] macro 'm' calls itself too o");
  EXPECT_EQ(said("{% set a = [] %}{{ a.append(1) }}").substr(0, 41), "[t.jinja, line 1] a list would be changed");
  EXPECT_EQ(said("{% set a = [] %}{% if not messages %}{{ a.append(1) }}{% endif %}"), "no error");
  EXPECT_EQ(said("{{ unknown_function() }}").substr(0, 67),
            "[t.jinja, line 1] the function 'unknown_function' is not supported;");
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
