#include "stretto/data/documents.h"
#include "stretto/data/tokenize_files.h"

#include <gmock/gmock.h>
#include <zlib.h>

#include "stretto/base/error.h"
#include "stretto/data/corpus.h"
#include "support/files.h"
#include "support/message.h"

namespace stretto {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string packed(const std::string& text) {
  z_stream z{};
  deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&z, text.size()) + 64, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = text.size();
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = out.size();
  deflate(&z, Z_FINISH);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

std::vector<std::string> documents(const std::filesystem::path& file, const std::string& field = "text") {
  std::vector<std::string> all;
  each_document(file, field, [&, whole = std::string()](const DocumentPart& part) mutable {
    whole += part.text;
    if (part.last) all.push_back(std::move(whole)), whole.clear();
  });
  return all;
}

TEST(Documents, OfEveryKindOfFile) {
  const test::Folder folder;
  const std::string lines = "{\"text\": \"one\", \"n\": 1}\n\n{\"text\": \"two\\nlines\"}\r\n{\"text\": \"last\"}";
  folder.write("a.txt", "a text");
  folder.write("a.txt.gz", packed("a text"));
  folder.write("a.jsonl", lines);
  folder.write("a.jsonl.gz", packed(lines));
  folder.write("two.txt.gz", packed("a ") + packed("text") + std::string(512, '\0'));  // members, padding
  folder.write("other.jsonl", "{\"content\": \"c\"}\n");
  EXPECT_THAT(documents(folder / "a.txt"), ElementsAre("a text"));
  EXPECT_THAT(documents(folder / "a.txt.gz"), ElementsAre("a text"));
  EXPECT_THAT(documents(folder / "two.txt.gz"), ElementsAre("a text"));
  EXPECT_THAT(documents(folder / "a.jsonl"), ElementsAre("one", "two\nlines", "last"));
  EXPECT_THAT(documents(folder / "a.jsonl.gz"), ElementsAre("one", "two\nlines", "last"));
  EXPECT_THAT(documents(folder / "other.jsonl", "content"), ElementsAre("c"));
}

// However much comes out, a few megabytes of it are held.
TEST(Documents, ACompressedTextComesInParts) {
  const test::Folder folder;
  std::string text;
  while (text.size() < (2u << 20)) text += fmt::format("some {} words\nand more", text.size());
  folder.write("a.txt", text);
  std::string many;
  for (int i = 0; i < 4; ++i) many += packed(text);
  folder.write("a.txt.gz", many);
  int parts = 0, last = 0;
  std::size_t longest = 0;
  std::string whole;
  each_document(folder / "a.txt.gz", "text", [&](const DocumentPart& part) {
    ++parts;
    longest = std::max(longest, part.text.size());
    whole += part.text;
    last += part.last;
  });
  EXPECT_TRUE(whole == text + text + text + text);
  EXPECT_EQ(last, 1);
  EXPECT_GT(parts, 16);
  EXPECT_LE(longest, 256u << 10);
  const Tokenizer t = read_tokenizer(STRETTO_TEST_DATA "/tokenizers/gpt2_style");
  folder.write("whole.txt", whole);
  const auto plain = open_text({folder / "whole.txt"}, t), compressed = open_text({folder / "a.txt.gz"}, t);
  ASSERT_EQ(plain->tokens(), compressed->tokens());
  std::vector<std::int32_t> a(plain->tokens()), b(a);
  plain->read(0, a), compressed->read(0, b);
  EXPECT_TRUE(a == b);
}

TEST(Documents, OnesWithoutTextAreNone) {
  const test::Folder folder;
  folder.write("a.jsonl", "{\"text\": \"\"}\n{\"text\": \"one\"}\n{\"text\": \"\"}\n{\"text\": \"two\"}\n");
  for (const std::optional<std::int32_t> end : {std::optional<std::int32_t>(), std::optional<std::int32_t>(0)}) {
    const std::string out = (folder / (end ? "ended" : "plain")).string();
    const Tokenized t = tokenize_files({folder / "a.jsonl"}, Tokenizer::bytes(), out + ".bin",
                                       {.format = TokenFormat::megatron, .end = end});
    EXPECT_EQ(t.documents, 2);
    EXPECT_EQ(t.tokens, end ? 8 : 6);
    EXPECT_EQ(TokenFile(out + ".bin").megatron()->documents(), 2);
  }
}

// Not those of the file, which may be packed, or have the texts in lines of JSON.
TEST(Documents, BytesAreThoseOfTheText) {
  const test::Folder folder;
  folder.write("a.txt", std::string(5000, 'x'));
  folder.write("b.txt.gz", packed(std::string(3000, 'y')));
  folder.write("c.jsonl", "{\"id\": 17, \"text\": \"seventeen letters\"}\n");
  for (const auto& [name, bytes] : {std::pair("a.txt", 5000u), {"b.txt.gz", 3000u}, {"c.jsonl", 17u}})
    EXPECT_EQ(tokenize_files({folder / name}, Tokenizer::bytes(), folder / "out.bin", {}).bytes, bytes) << name;
}

TEST(Documents, LongLinesAndManyBlocks) {
  const test::Folder folder;
  std::string lines;
  std::vector<std::string> wanted;
  for (int n = 0; n < 40; ++n) {
    wanted.push_back(std::string(n * 50000, char('a' + n % 26)));
    lines += "{\"text\": \"" + wanted.back() + "\"}\n";
  }
  folder.write("long.jsonl.gz", packed(lines));
  EXPECT_EQ(documents(folder / "long.jsonl.gz"), wanted);
}

TEST(Documents, BrokenFilesAreNamed) {
  const test::Folder folder;
  const std::string good = packed(std::string(100000, 'x') + "the end of a long text");
  std::string damaged = packed("some text that is not the same everywhere, 0123456789");
  damaged[20] = char(damaged[20] ^ 0x55);
  folder.write("cut.txt.gz", good.substr(0, good.size() / 2));
  folder.write("header.txt.gz", good.substr(0, 5));
  folder.write("damaged.txt.gz", damaged);
  folder.write("plain.txt.gz", "not compressed");
  folder.write("tail.txt.gz", packed("text") + "garbage");
  folder.write("broken.jsonl", "{\"text\": \"a\"}\n{\"text\": \n");
  folder.write("list.jsonl", "[1]\n");
  folder.write("number.jsonl", "{\"text\": 7}\n");
  const auto error = [&](const std::string& name) { return refusal_of([&] { documents(folder / name); }); };
  EXPECT_THAT(error("cut.txt.gz"), HasSubstr("ends in the middle of its compressed data"));
  EXPECT_THAT(error("header.txt.gz"), HasSubstr("ends in the middle of its compressed data"));
  EXPECT_THAT(error("damaged.txt.gz"), HasSubstr("is damaged near byte"));
  EXPECT_THAT(error("plain.txt.gz"), HasSubstr("is named like a gzip file and is none"));
  EXPECT_THAT(error("tail.txt.gz"), HasSubstr("is damaged near byte"));
  EXPECT_THAT(error("broken.jsonl"), HasSubstr("broken.jsonl:2] is not JSON"));
  EXPECT_THAT(error("broken.jsonl"),
              HasSubstr("; hint: every line of a .jsonl file is one JSON object, e.g. {\"text\""));
  EXPECT_THAT(error("list.jsonl"), HasSubstr("list.jsonl:1] has no key 'text'; hint: name the key"));
  EXPECT_THAT(error("number.jsonl"), HasSubstr("'text' is an integer and not text"));
}

TEST(Documents, WhatIsNotTextIsRefused) {
  const test::Folder folder;
  std::string latin;
  for (int n = 0; n < 100; ++n) latin += "gr\xfc\xdf Gott ";
  folder.write("gzip.txt", packed("text"));
  folder.write("table.parquet", "PAR1 and so on");
  folder.write("nul.txt", std::string("a\0b", 3));
  folder.write("latin.txt", latin);
  folder.write("inside.txt.gz", packed("PAR1 and so on"));
  folder.write("slip.txt", "one \xff bad byte in a text");
  folder.write("empty.txt", "");
  folder.write("list.json", "[{\"text\": \"a\"}]");
  const auto error = [&](const std::string& name) { return refusal_of([&] { need_text(folder / name); }); };
  EXPECT_THAT(error("gzip.txt"), HasSubstr("is compressed with gzip and not text; hint: give it a name"));
  EXPECT_THAT(error("table.parquet"),
              HasSubstr("is a Parquet file and not text; hint: make a .jsonl.gz of it: pip install pandas pyarrow && "
                        "python3 -c \"import pandas; pandas.read_parquet('" +
                        (folder / "table.parquet").string() + "').to_json('"));
  EXPECT_THAT(error("list.json"),
              HasSubstr("is JSON and not text; hint: make a list a .jsonl, an object per line: jq"));
  EXPECT_THAT(error("nul.txt"), HasSubstr("has a NUL byte at 1"));
  EXPECT_THAT(error("latin.txt"), HasSubstr("is not UTF-8: 200 of its first 1000 bytes are not, the first at 2"));
  EXPECT_THAT(error("inside.txt.gz"), HasSubstr("is a Parquet file"));
  EXPECT_EQ(error("slip.txt"), "no error");
  EXPECT_EQ(error("empty.txt"), "no error");
  const auto opened = [&](const CorpusOptions& o) { return refusal_of([&] { open_corpus(o, 2); }); };
  EXPECT_THAT(opened({.path = {(folder / "latin.txt").string()}}), HasSubstr("is not UTF-8"));
  EXPECT_EQ(opened({.path = {(folder / "latin.txt").string()}, .format = DataFormat::text}), "no error");
}

// A field of text would be ignored, and so would a template of what is no conversation.
TEST(Documents, WhatWouldBeIgnoredIsRefused) {
  const test::Folder folder;
  folder.write("a.txt", "some text");
  folder.write("a.jsonl", "{\"body\": \"some text\"}\n");
  const std::string text = (folder / "a.txt").string(), lines = (folder / "a.jsonl").string();
  const auto error = [&](const CorpusOptions& o) { return refusal_of([&] { open_corpus(o, 2); }); };
  EXPECT_THAT(error({.path = {text}, .field = "body"}),
              HasSubstr("[data] the field 'body' is asked for, and only lines of .jsonl files have fields: '" + text +
                        "' is none; hint: leave the field out"));
  EXPECT_THAT(error({.path = {text, text}, .field = "body"}), HasSubstr("none of the 2 files is one"));
  EXPECT_EQ(error({.path = {text, lines}, .field = "body"}), "no error");
  EXPECT_EQ(error({.path = {text}, .field = "body", .validation_path = {lines}}), "no error");
  EXPECT_EQ(error({.path = {text}, .field = "text"}), "no error");
  EXPECT_THAT(error({.path = {text}, .chat_template = "chat.jinja"}),
              HasSubstr("a template is given ('chat.jinja'), and the data is no conversations; hint: for conversations "
                        "write data.field = \"messages\""));
}

TEST(Documents, TextWithoutATokenizerIsRefused) {
  const test::Folder folder;
  folder.write("a.txt", "some text");
  const CorpusOptions o{.path = {(folder / "a.txt").string()}, .tokenizer = "none"};
  EXPECT_THAT(refusal_of([&] { open_corpus(o, 2); }),
              HasSubstr("is text, and there is no tokenizer beside the weights"));
}

TEST(Corpus, TheVocabularyOfData) {
  const test::Folder folder;
  folder.write("a.txt", "some text");
  folder.write("a.bin", std::string("\x05\0\x09\x01\x02\0", 6));
  const auto vocab = [&](const std::string& name, const std::string& tokenizer) {
    return vocabulary_of({.path = {(folder / name).string()}, .tokenizer = tokenizer});
  };
  EXPECT_EQ(vocab("a.txt", "bytes"), std::nullopt);
  EXPECT_EQ(vocab("a.txt", STRETTO_TEST_DATA "/tokenizers/gpt2_style"), 512);
  EXPECT_EQ(vocab("a.bin", "bytes"), 0x109 + 1);
  const CorpusOptions o{.path = {(folder / "a.bin").string()}, .vocab = 4};
  EXPECT_THAT(
      refusal_of([&] { open_corpus(o, 1); }),
      HasSubstr("token 0 is 5, the largest is 265, and the vocabulary is 4; hint: use model.vocab = 266 or more"));
}

}  // namespace
}  // namespace stretto
