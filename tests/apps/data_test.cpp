// `stretto data` as a user runs it.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "stretto/formats/token_file.h"
#include "support/command.h"
#include "support/files.h"

namespace stretto {
namespace {

using test::Folder;
using test::Result;
using testing::AllOf;
using testing::HasSubstr;

const std::string gpt2_folder = STRETTO_TEST_DATA "/tokenizers/gpt2_style";

Result data(const std::string& arguments, const Folder& folder) {
  return test::stretto("data " + arguments, folder.str());
}

TEST(Data, TokenizeAndDecodeInEveryFormat) {
  const Folder folder;
  folder.write("a.txt", "The first document, naïve.\n");
  folder.write("b.jsonl", "{\"text\": \"The second\\n\"}\n\n{\"id\": 3, \"text\": \"and the third\"}");
  for (const std::string format : {"nanogpt", "llmc", "megatron"}) {
    const Result made =
        data("tokenize a.txt b.jsonl --tokenizer " + gpt2_folder + " --out out.bin --eot --format " + format, folder);
    ASSERT_EQ(made.code, 0) << made.error;
    EXPECT_THAT(made.out, AllOf(HasSubstr("out.bin: "), HasSubstr("tokens of 3 documents")));
    const Result text = data("decode out.bin --tokenizer " + gpt2_folder, folder);
    EXPECT_EQ(text.out, "The first document, naïve.\n<|endoftext|>The second\n<|endoftext|>and the third<|endoftext|>");
    const TokenFile file(folder / "out.bin");
    EXPECT_EQ(file.tokens().type, FileType::U16);
    EXPECT_EQ(file.tokens().at(file.tokens().size() - 1), 0);
    const Result info = data("info out.bin", folder);
    EXPECT_THAT(info.out,
                AllOf(HasSubstr("U16 per token"), HasSubstr(fmt::format("tokens      {}\n", file.tokens().size()))));
    if (format == "megatron") {
      EXPECT_THAT(info.out, HasSubstr("documents   3"));
    }
    const Result some = data("decode out.bin --first 1 --count 2 --tokenizer " + gpt2_folder, folder);
    EXPECT_EQ(some.code, 0) << some.error;
    EXPECT_LT(some.out.size(), 20u);
  }
}

TEST(Data, ALearnedVocabularyTokenizes) {
  const Folder folder;
  std::string text;
  for (int i = 0; i < 200; ++i) text += "the cat sat on the mat\n";
  folder.write("a.txt", text);
  Result r = data("train-bpe a.txt --vocab 280 --out t.json", folder);
  ASSERT_EQ(r.code, 0) << r.error;
  EXPECT_THAT(r.out, HasSubstr("t.json: "));
  r = data("tokenize a.txt --tokenizer t.json --out a.bin", folder);
  ASSERT_EQ(r.code, 0) << r.error;
  EXPECT_EQ(data("decode a.bin --tokenizer t.json", folder).out, text);
  EXPECT_LT(TokenFile(folder / "a.bin").tokens().size(), i64(text.size() / 3));
}

TEST(Data, NothingThatIsReadIsWrittenOver) {
  const Folder folder;
  const std::string text = "a text of one's own\n", tokenizer = test::text_of(gpt2_folder + "/tokenizer.json");
  folder.write("a.txt", text);
  folder.write("b.idx", text);
  folder.write("t.json", tokenizer);
  const auto error = [&](const std::string& arguments) {
    const Result r = data(arguments, folder);
    EXPECT_EQ(r.code, 1) << arguments << r.out;
    return r.error;
  };
  EXPECT_EQ(error("tokenize a.txt --tokenizer bytes --out ./a.txt"),
            "[tokenize] ./a.txt would be written over a.txt, which is read; hint: choose another name\n");
  EXPECT_THAT(error("tokenize a.txt b.idx --tokenizer bytes --format megatron --out b"),
              HasSubstr("b.idx, which is read"));
  EXPECT_THAT(error("tokenize a.txt --tokenizer t.json --out t.json"), HasSubstr("over t.json, which is read"));
  EXPECT_THAT(error("train-bpe a.txt --vocab 300 --out a.txt"), HasSubstr("over a.txt, which is read"));
  EXPECT_EQ(test::text_of(folder / "a.txt"), text);
  EXPECT_EQ(test::text_of(folder / "b.idx"), text);
  EXPECT_EQ(test::text_of(folder / "t.json"), tokenizer);
}

TEST(Data, MistakesAreNamedAndNothingIsWritten) {
  const Folder folder;
  folder.write("a.txt", "text");
  folder.write("empty.txt", "");
  folder.write("b.jsonl", "{\"text\": \"a\"}\n{\"body\": \"b\"}\n");
  folder.write("c.jsonl", "{\"text\": 1}\n");
  folder.write("d.jsonl", "{\"text\": \n");
  const auto error = [&](const std::string& arguments, int code = 1) {
    const Result r = data(arguments, folder);
    EXPECT_EQ(r.code, code) << arguments << r.out << r.error;
    EXPECT_FALSE(std::filesystem::exists(folder / "o.bin")) << arguments;
    return r.error + r.out;
  };
  const std::string rest = " --out o.bin --tokenizer " + gpt2_folder;
  EXPECT_THAT(error("tokenize none.txt" + rest), HasSubstr("there is no file 'none.txt'"));
  EXPECT_THAT(error("tokenize empty.txt" + rest), HasSubstr("there is no text in empty.txt"));
  EXPECT_THAT(error("tokenize b.jsonl" + rest), HasSubstr("[b.jsonl:2] has no key 'text', but 'body'; hint: "));
  EXPECT_THAT(error("tokenize c.jsonl" + rest), HasSubstr("[c.jsonl:1] 'text' is an integer and not text; hint: name "
                                                          "the key that holds the text: stretto data tokenize --key"));
  EXPECT_THAT(error("tokenize d.jsonl" + rest), HasSubstr("d.jsonl:1"));
  EXPECT_THAT(error("tokenize a.txt --tokenizer none.json --out o.bin"), HasSubstr("[none.json] cannot be opened"));
  EXPECT_THAT(error("tokenize a.txt --tokenizer bytes --eot --out o.bin"), HasSubstr("has no token that ends a text"));
  EXPECT_THAT(error("tokenize a.txt --eot '<x>'" + rest), HasSubstr("has no token '<x>'"));
  EXPECT_THAT(error("tokenize a.txt --format x" + rest, 2), HasSubstr("'x' is none of nanogpt, "));
  EXPECT_THAT(error("train-bpe a.txt --vocab 10 --out o.bin"), HasSubstr("a vocabulary of 10 is asked for; 257"));
  for (const char* character : {"b", "Ġ", "é"})
    EXPECT_THAT(error("train-bpe a.txt --vocab 300 --special " + std::string(character) + " --out o.bin"),
                HasSubstr("is a character that stands for a byte in every vocabulary; hint: choose a longer one"));
  folder.write("the.txt", "on the and the by the of the in the");
  EXPECT_THAT(error("train-bpe the.txt --vocab 300 --special Ġthe --out o.bin"),
              HasSubstr("the special token 'Ġthe' is how the vocabulary writes ' the', which the text made a token; "
                        "hint: choose another one, such as <|Ġthe|>"));
  EXPECT_THAT(error("info a.txt"), HasSubstr("is no token file"));
  EXPECT_THAT(error("decode a.txt --tokenizer bytes"), HasSubstr("is no token file"));
  folder.write("odd.bin", "abc");
  EXPECT_THAT(error("info odd.bin"), HasSubstr("[odd.bin] is 3 bytes long"));
}

}  // namespace
}  // namespace stretto
