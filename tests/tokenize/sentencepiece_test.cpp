#include "stretto/tokenize/inner/sentencepiece.h"

#include <gmock/gmock.h>

#include "stretto/base/error.h"
#include "stretto/tokenize/tokenizer.h"
#include "support/files.h"
#include "support/message.h"

namespace stretto {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kinds_folder = STRETTO_TEST_DATA "/tokenizers/kinds/";

// Fields of protocol buffers.
std::string message_field(char field, const std::string& bytes) {
  return std::string{char(field << 3 | 2), char(bytes.size())} + bytes;
}
std::string number_field(char field, char number) { return {char(field << 3), number}; }
std::string piece(const std::string& text, char kind) {
  return message_field(1, message_field(1, text) + std::string("\x15\0\0\0\0", 5) + number_field(3, kind));
}
std::string small(char model_type = 2) {
  return piece("<unk>", 2) + piece("<s>", 3) + piece("\u2581", 1) + piece("a", 1) +
         piece(
             "\u2581"
             "a",
             1) +
         message_field(2, number_field(3, model_type)) + message_field(3, number_field(4, 0));
}

std::string refusal_of_model(const std::string& bytes) {
  return refusal_of([&] { Tokenizer(parse_tokenizer(bytes, "t.model"), "t.model").encode("a text"); });
}

TEST(SentencePiece, TheSmallestModel) {
  const Tokenizer t(parse_tokenizer(small(), "t.model"), "t.model");
  EXPECT_EQ(t.vocab(), 5);
  EXPECT_THAT(t.encode("a a"), ElementsAre(4, 4));
  EXPECT_THAT(t.encode("a", true), ElementsAre(1, 4));  // begins with <s>
  EXPECT_THAT(t.encode("<s>"), ElementsAre(2, 0));      // no text is a control token
  EXPECT_EQ(t.decode(std::vector<std::int32_t>{4, 4}), "a a");
  EXPECT_EQ(t.decode(std::vector<std::int32_t>{4, 0}), "a \u2047 ");
}

TEST(SentencePiece, MistakesAreNamed) {
  EXPECT_EQ(refusal_of_model(small()), "no error");
  EXPECT_THAT(refusal_of_model(""), HasSubstr("[t.model] is no SentencePiece model: it has no pieces"));
  EXPECT_THAT(refusal_of_model("garbage"), HasSubstr("[t.model] is no SentencePiece model: "));
  EXPECT_THAT(refusal_of_model("{\"model\": {}}"), HasSubstr("is no SentencePiece model"));
  EXPECT_THAT(refusal_of_model(std::string(20, '\xff')), HasSubstr("a number of more than 64 bits"));
  EXPECT_THAT(refusal_of_model(small(3)), HasSubstr("the model type word is not supported; hint: bpe and unigram are"));
  EXPECT_THAT(refusal_of_model(piece("a", 1)), HasSubstr("no piece for what is unknown"));
  EXPECT_THAT(refusal_of_model(small() + piece("b", 5)), HasSubstr("piece 5 ('b') is marked as unused"));
  EXPECT_THAT(refusal_of_model(small() + piece("b", 9)), HasSubstr("of the unknown kind 9"));
  EXPECT_THAT(refusal_of_model(small() + piece("\xff", 1)), HasSubstr("which is no text"));
  EXPECT_THAT(refusal_of_model(small() + piece("a", 1)), HasSubstr("the token 'a' is there twice"));
  EXPECT_THAT(refusal_of_model(small() + message_field(3, message_field(2, "bad map"))),
              HasSubstr("the map of characters"));
  EXPECT_THAT(refusal_of_model(small() + message_field(3, number_field(5, 0))), HasSubstr("escape_whitespaces"));
}

// Cut anywhere, or with any byte changed: an Error, or a tokenizer that works.
TEST(SentencePiece, DamagedFilesNeverCrash) {
  const std::string whole = test::text_of(kinds_folder + "sp_unigram_bytes/tokenizer.model");
  int refused = 0;
  for (std::size_t at = 0; at < whole.size(); at += 499) {
    refused += refusal_of_model(whole.substr(0, at)) != "no error";
    std::string changed = whole;
    changed[at] = char(changed[at] ^ 0x81);
    refusal_of_model(changed);
  }
  EXPECT_GT(refused, 5);
}

TEST(SentencePiece, TheFileBesideSaysWhatIsAdded) {
  test::Folder folder;
  folder.write("tokenizer.model", small());
  EXPECT_THAT(read_tokenizer(folder.str()).encode("a", true), ElementsAre(1, 4));
  folder.write("tokenizer_config.json", "{\"add_bos_token\": false}");
  EXPECT_THAT(read_tokenizer(folder.str()).encode("a", true), ElementsAre(4));
  test::Folder empty;
  try {
    read_tokenizer(empty.str());
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("neither a tokenizer.json nor a tokenizer.model"));
  }
}

}  // namespace
}  // namespace stretto
