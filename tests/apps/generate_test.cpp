#include <gmock/gmock.h>

#include <filesystem>

#include "stretto/formats/utf8.h"
#include "support/chats.h"
#include "support/command.h"
#include "support/files.h"

namespace stretto::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

Result generate(const std::string& arguments) { return stretto("generate " + arguments, STRETTO_TEST_DATA); }

// A folder with a text that a small model soon knows; called with a command line, it runs that there.
struct Learned {
  Folder folder;
  Learned() {
    std::string text;
    for (int i = 0; i < 200; ++i) text += "to be, or not to be. ";
    folder.write("text.txt", text);
  }
  std::string operator()(const std::string& arguments) const {
    const Result r = stretto(arguments, folder.str());
    EXPECT_EQ(r.code, 0) << arguments << r.error;
    return r.out;
  }
};

TEST(GenerateCommand, IdsInIdsOut) {
  const Result r = generate("hf/gpt2/model --ids 54,134,217,155,210,122,55,54 --tokens 6 --temperature 0");
  EXPECT_EQ(r.code, 0) << r.error;
  EXPECT_EQ(r.out, "165 53 140 178 155 97\n");
}

TEST(GenerateCommand, TextIsAlwaysUtf8AndAFunctionOfTheSeed) {
  for (const char* seed : {"1", "2", "3"}) {
    const std::string arguments = std::string("hf/gpt2/model --prompt 'é€' --tokens 30 --temperature 2 --seed ") + seed;
    const Result r = generate(arguments);
    EXPECT_EQ(r.code, 0) << r.error;
    EXPECT_FALSE(first_bad_utf8(r.out)) << r.out;
    EXPECT_THAT(r.out, StartsWith("é€"));
    EXPECT_EQ(generate(arguments).out, r.out);
  }
}

TEST(GenerateCommand, FromARunACheckpointAndAnExportAlike) {
  const Learned in_folder;
  in_folder(
      "train --data.path=text.txt --model.layers=1 --model.width=32 --model.heads=2 --model.context=32 "
      "--train.steps=400 --train.batch=4 --optimizer.lr=0.01 --log.dir=run");
  in_folder("convert run hf");
  const std::string how = " --prompt 'or n' --tokens 8 --temperature 0";
  const std::string out = in_folder("generate run" + how);
  EXPECT_THAT(out, StartsWith("or not to be"));
  EXPECT_EQ(in_folder("generate run/checkpoints/step-00000400" + how), out);
  EXPECT_EQ(in_folder("generate hf" + how), out);
}

TEST(GenerateCommand, TheTokenizerOfTheDataIsCarriedAlong) {
  const Learned in_folder;
  in_folder("data train-bpe text.txt --vocab 270 --out tokenizer.json");
  in_folder(
      "train --data.path=text.txt --data.tokenizer=tokenizer.json --model.vocab=280 --model.layers=1 --model.width=32 "
      "--model.heads=2 --model.context=16 --train.steps=400 --train.batch=4 --optimizer.lr=0.01 --log.dir=run");
  in_folder("convert run hf");
  EXPECT_EQ(text_of(in_folder.folder / "hf/tokenizer.json"), text_of(in_folder.folder / "tokenizer.json"));
  fs::remove(in_folder.folder / "tokenizer.json");
  const std::string how = " --prompt 'or not' --tokens 6 --temperature 0";
  const std::string out = in_folder("generate run" + how);
  EXPECT_THAT(out, StartsWith("or not to be"));
  EXPECT_EQ(in_folder("generate hf" + how), out);
}

// A model that has learned its conversations by heart says what the assistant says, and stops where answers end.
TEST(GenerateCommand, ChatsWithTheTemplateThatTheModelWasTrainedOn) {
  STRETTO_NEEDS_JINJA();
  const Learned in_folder;
  std::string chats;
  for (const auto& [question, answer] : {std::pair{"one?", "1!"}, {"two?", "22"}, {"on?", "x"}})
    chats += fmt::format(
        R"({{"messages": [{{"role": "user", "content": "{}"}}, {{"role": "assistant", "content": "{}"}}]}})"
        "\n",
        question, answer);
  in_folder.folder.write("c.jsonl", chats);
  in_folder.folder.write("t.jinja",
                         "{% for m in messages %}<{{ m.role[0] }}>{{ m.content }}<|endoftext|>{% endfor %}"
                         "{% if add_generation_prompt %}<a>{% endif %}");
  in_folder("data train-bpe text.txt --vocab 257 --out tokenizer.json");
  in_folder(
      "train --data.path=c.jsonl --data.field=messages --data.template=t.jinja --data.tokenizer=tokenizer.json "
      "--model.vocab=260 --model.layers=1 --model.width=32 --model.heads=2 --model.context=48 --train.steps=400 "
      "--train.batch=3 --optimizer.lr=0.01 --log.dir=run");
  const std::string how = " --tokens 10 --temperature 0";
  EXPECT_EQ(in_folder("generate run --chat --prompt one?" + how), "1!\n");
  EXPECT_EQ(in_folder("generate run --chat --prompt two?" + how), "22\n");
  in_folder.folder.write("chat.json", "{\n \"messages\": [{\"role\": \"user\", \"content\": \"two?\"}]\n}\n");
  EXPECT_EQ(in_folder("generate run --chat=chat.json" + how), "22\n");
  const auto said = [&](const std::string& arguments) { return stretto("generate " + arguments, in_folder.folder.str()); };
  EXPECT_EQ(said("run --chat=chat.json --prompt a").error,
            "[generate] there are a conversation, 'chat.json', and a prompt; hint: give one of them; --chat by itself "
            "makes a conversation of the prompt\n");
  EXPECT_EQ(said("run --chat=chat.json --template none").error,
            "[generate] there is no template 'none'; hint: --template names a Jinja file\n");
  in_folder.folder.write("chat.json", "{\"messages\": [{\"role\": \"user\"}]}");
  EXPECT_THAT(said("run --chat=chat.json").error, StartsWith("[chat.json] message 1 has no text as its 'content'"));
  EXPECT_EQ(said("run --chat").code, 2);
}

TEST(GenerateCommand, WithoutATemplateAChatIsRefused) {
  EXPECT_THAT(generate("hf/gpt2/model --chat --prompt a").error,
              HasSubstr("there is no chat template beside the weights in 'hf/gpt2/model'; hint: name one"));
}

// A python3 that says when it is asked, and is asked only for conversations.
TEST(GenerateCommand, OnlyConversationsNeedPython) {
  const Learned in_folder;
  in_folder.folder.write("bin/python3", "#!/bin/sh\necho asked >> asked\nexit 1\n");
  fs::permissions(in_folder.folder / "bin/python3", fs::perms::owner_all);
  in_folder.folder.write("t.jinja", "x");
  in_folder.folder.write("c.jsonl", "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}\n");
  const auto run = [&](const std::string& arguments) {
    return shell("PATH=$PWD/bin:$PATH " + binaries() + "/stretto train --model.layers=1 --model.width=16 "
                 "--model.heads=2 --model.context=8 --train.steps=1 --train.batch=1 " + arguments,
                 in_folder.folder.str());
  };
  EXPECT_EQ(run("--data.path=text.txt").code, 0);
  EXPECT_FALSE(fs::exists(in_folder.folder / "asked"));
  EXPECT_EQ(run("--data.path=c.jsonl --data.field=messages --data.template=t.jinja").code, 1);
  EXPECT_EQ(text_of(in_folder.folder / "asked"), "asked\n");
}

TEST(GenerateCommand, MistakesAreNamed) {
  for (const auto& [arguments, code, message] : std::vector<std::tuple<std::string, int, std::string>>{
           {"hf/gpt2/model", 2, "[generate] there is no prompt; hint: give --prompt TEXT, or --ids 1,2,3"},
           {"hf/gpt2/model --prompt a --ids 1", 2, "--prompt and --ids exclude each other"},
           {"none --prompt a", 1, "[none] is not a directory; hint: "},
           {"hf/gpt2/model --ids 999", 1, "token 999 is outside of a vocabulary of 256"},
           {"hf/gpt2/model --prompt ''", 1, "the prompt is empty"},
           {"hf/gpt2/model --prompt a --temperature=-1", 1, "[temperature] is -1"},
           {"hf/gpt2/model --prompt a --top-p 2", 1, "[top-p] is 2"},
           {"hf/gpt2/model --prompt " + std::string(65, 'a'), 1,
            "the prompt has 65 tokens and the model's context is 64"},
       }) {
    const Result r = generate(arguments);
    EXPECT_EQ(r.code, code) << arguments;
    EXPECT_EQ(r.out, "") << arguments << ": not even the prompt";
    EXPECT_THAT(r.error, HasSubstr(message)) << arguments;
  }
}

TEST(GenerateCommand, SaysWhenTheContextIsFull) {
  const Result r = generate("hf/gpt2/model --ids 54,134 --tokens 100 --temperature 0");
  EXPECT_EQ(r.code, 0);
  EXPECT_EQ(r.error, "note: the model's context of 64 tokens is full after 63 of 100\n");
  EXPECT_EQ(generate("hf/gpt2/model --ids 54,134 --tokens 63 --temperature 0").error, "");
}

}  // namespace
}  // namespace stretto::test
