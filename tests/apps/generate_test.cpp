#include <gmock/gmock.h>

#include <filesystem>

#include "stretto/formats/utf8.h"
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
