#include "stretto/tokenize/tokenizer.h"

#include <gmock/gmock.h>
#include <rapidcheck.h>
#include <unistd.h>

#include <fstream>

#include "stretto/base/error.h"
#include "stretto/tokenize/inner/byte_level.h"
#include "stretto/tokenize/inner/normalize.h"
#include "stretto/tokenize/split_pattern.h"
#include "support/child.h"
#include "support/files.h"
#include "support/message.h"

namespace stretto {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using Ids = std::vector<std::int32_t>;

std::string message(const std::string& json) {
  return refusal_of([&] { Tokenizer(parse_tokenizer(json, "t.json"), "t.json").encode("text"); });
}

// A whole tokenizer.json with something in it replaced.
std::string file(const std::string& old_text = "", const std::string& new_text = "") {
  std::string text = R"({"added_tokens": [{"id": 5, "content": "<e>", "special": true}],
 "normalizer": null,
 "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
 "post_processor": null,
 "model": {"type": "BPE", "vocab": {"t": 0, "e": 1, "x": 2, "te": 3, "tex": 4}, "merges": ["t e", ["te", "x"]]}})";
  if (!old_text.empty()) {
    EXPECT_NE(text.find(old_text), text.npos) << old_text;
    text.replace(text.find(old_text), old_text.size(), new_text);
  }
  return text;
}

// The same for tokens that are not byte-level: no byte of them, one unknown token.
std::string characters(const std::string& old_text = "", const std::string& new_text = "") {
  std::string text = R"({"added_tokens": [],
 "pre_tokenizer": {"type": "Metaspace", "replacement": "_", "prepend_scheme": "first", "split": false},
 "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "_"}, "content": " "},
  {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
 "model": {"type": "BPE", "vocab": {"<unk>": 0, "_": 1, "a": 2, "b": 3, "_a": 4, "<0xC3>": 5, "<0xA9>": 6},
  "merges": ["_ a"], "byte_fallback": true, "fuse_unk": true, "unk_token": "<unk>"}})";
  if (!old_text.empty()) {
    EXPECT_NE(text.find(old_text), text.npos) << old_text;
    text.replace(text.find(old_text), old_text.size(), new_text);
  }
  return text;
}

// The ids are those of the tokenizers library (0.23.3), which takes the last of two.
TEST(Tokenizer, AUnigramTokenMayBeThereTwice) {
  const std::string json = R"({"added_tokens": [],
 "pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": true},
 "decoder": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": true},
 "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["a", -1.0], ["b", -1.5], ["ab", -5.0],
  ["c", -2.0], ["ab", -2.2], ["bc", -9.0], ["\u2581", -1.0], ["a", -3.0]]}})";
  const Tokenizer t(parse_tokenizer(json, "t.json"), "t.json");
  EXPECT_THAT(t.encode("ab"), ElementsAre(7, 5));
  EXPECT_THAT(t.encode("a b"), ElementsAre(7, 8, 7, 2));
  EXPECT_THAT(t.encode("aabbab"), ElementsAre(7, 8, 5, 2, 5));
  EXPECT_THAT(t.encode("c a ab x"), ElementsAre(7, 4, 7, 8, 7, 5, 7, 0));
  EXPECT_EQ(t.decode(Ids{7, 3, 1, 8, 5}), "abaaab");
  EXPECT_EQ(t.id_of("ab"), 5);
}

// In parts of any length, and in the blocks that long texts are cut into: the ids of the whole.
TEST(Tokenizer, TextsThatComeInPartsHaveTheIdsOfTheWhole) {
  const std::vector<std::filesystem::path> all{STRETTO_TEST_DATA "/tokenizers/gpt2_style",
                                               STRETTO_TEST_DATA "/tokenizers/llama3_style", "bytes"};
  std::vector<std::filesystem::path> files = all;
  for (const auto& e : std::filesystem::directory_iterator(STRETTO_TEST_DATA "/tokenizers/kinds"))
    if (e.path().extension() == ".json" && e.path().string().find("expected") == std::string::npos)
      files.push_back(e.path());
  std::string text;
  for (int i = 0; text.size() < (3u << 20); ++i)
    text += fmt::format("{} well-known words, it's \u00c4rger e\u0301 {:05}  and\n{}\"so\" on<|endoftext|>", i % 977, i,
                        i % 5 ? "" : "\n ");
  for (const auto& file : files) {
    std::optional<Tokenizer> t;
    try {
      t = read_tokenizer(file);
    } catch (const Error&) {
      continue;  // no tokenizer
    }
    Encoder encoder(*t);
    Ids whole, blocks, parts;
    encoder.encode(text, whole);
    encoder.encode(text, [&](std::span<const std::int32_t> ids, std::size_t) {
      blocks.insert(blocks.end(), ids.begin(), ids.end());
    });
    std::size_t before = 0;
    for (std::size_t at = 0, n = 1; at < text.size(); at += n, n = n * 7 % 400009)
      encoder.encode_part(std::string_view(text).substr(at, n), at + n >= text.size(),
                          [&](std::span<const std::int32_t> ids, std::size_t done) {
                            parts.insert(parts.end(), ids.begin(), ids.end());
                            EXPECT_LE(before, done);
                            EXPECT_LE(done, text.size());
                            before = done;
                          });
    EXPECT_TRUE(whole == blocks) << file << " " << whole.size() << " " << blocks.size();
    EXPECT_TRUE(whole == parts) << file << " " << whole.size() << " " << parts.size();
  }
}

// Memory that is used at most, above what there was.
TEST(Tokenizer, LongTextsTakeLittleMemory) {
  for (const char* name : {"bytes", STRETTO_TEST_DATA "/tokenizers/gpt2_style"}) {
    const test::Ended e = test::in_child([&] {
      const Tokenizer t = read_tokenizer(name);
      std::string text(16 << 20, 'a');
      for (std::size_t i = 7; i < text.size(); i += 8) text[i] = ' ';
      Encoder encoder(t);
      std::ifstream statm("/proc/self/statm");
      rlim_t pages = 0;
      statm >> pages;
      test::limit(RLIMIT_AS, pages * sysconf(_SC_PAGESIZE) + (16 << 20));
      std::size_t ids = 0;
      encoder.encode(text, [&](std::span<const std::int32_t> some, std::size_t) { ids += some.size(); });
      if (ids < text.size() / 8) throw Error("test", "{} ids", ids);
    });
    EXPECT_EQ(e.code, 0) << name << e.error;
  }
}

TEST(Tokenizer, CharactersBytesAndWhatIsUnknown) {
  const Tokenizer t(parse_tokenizer(characters(), "t.json"), "t.json");
  EXPECT_THAT(t.encode("a b"), ElementsAre(4, 1, 3));
  EXPECT_THAT(t.encode("b\u00e9a"), ElementsAre(1, 3, 5, 6, 2));
  EXPECT_THAT(t.encode("b\u0416\u0416a"), ElementsAre(1, 3, 0, 2));  // two unknown ones are one token
  EXPECT_THAT(t.encode("a\xff"), ElementsAre(4, 0));                 // bytes that are no UTF-8
  EXPECT_EQ(t.decode(Ids{4, 1, 3}), "a b");
  EXPECT_EQ(t.decode(Ids{4, 1, 3}, true, false), " a b");  // in the middle of a text
  EXPECT_EQ(t.decode(Ids{4, 5, 6}), "a\u00e9");
  EXPECT_EQ(t.id_of("_a"), 4);
}

TEST(Tokenizer, TheSmallestFile) {
  const Tokenizer t(parse_tokenizer(file(), "t.json"), "t.json");
  EXPECT_EQ(t.vocab(), 6);
  EXPECT_THAT(t.encode("text<e>xt"), ElementsAre(4, 0, 5, 2, 0));
  EXPECT_EQ(t.decode(Ids{4, 0, 5, 2, 0}), "text<e>xt");
  EXPECT_EQ(t.decode(Ids{4, 0, 5, 2, 0}, false), "textxt");
  EXPECT_EQ(t.id_of("<e>"), 5);
  EXPECT_EQ(t.id_of("te"), 3);
  EXPECT_EQ(t.id_of("nothing"), std::nullopt);
  EXPECT_EQ(t.end_of_text(), std::nullopt);
}

TEST(Tokenizer, MistakesAreNamed) {
  EXPECT_EQ(message(file()), "no error");
  EXPECT_THAT(message("{}"), HasSubstr("[t.json:1] has no 'model'"));
  EXPECT_THAT(message("[1]"), HasSubstr("is a list and not a tokenizer"));
  EXPECT_THAT(message("{"), HasSubstr("t.json:1"));
  EXPECT_THAT(message(file("\"BPE\"", "\"WordPiece\"")), HasSubstr("the model \"WordPiece\" is not supported; hint: "));
  EXPECT_THAT(message(file("\"BPE\"", "\"Unigram\"")), HasSubstr("where a list of tokens and scores is expected"));
  EXPECT_THAT(message(file("\"ByteLevel\"", "\"BertPreTokenizer\"")),
              HasSubstr("[t.json:3] the pre-tokenizer \"BertPreTokenizer\""));
  EXPECT_THAT(message(file("\"normalizer\": null", "\"normalizer\": {\"type\": \"BertNormalizer\"}")),
              HasSubstr("[t.json:2] the normalizer \"BertNormalizer\" is not supported"));
  EXPECT_THAT(message(file("\"normalizer\": null", "\"normalizer\": {\"type\": \"Precompiled\"}")),
              HasSubstr("tokenizer.model"));
  EXPECT_THAT(message(file("{\"type\": \"ByteLevel\", \"add_prefix_space\": false}", "null")),
              HasSubstr("neither a ByteLevel pre-tokenizer nor a decoder"));
  EXPECT_THAT(message(file("\"post_processor\": null", "\"decoder\": {\"type\": \"WordPiece\"}")),
              HasSubstr("the decoder \"WordPiece\" is not supported"));
  EXPECT_THAT(message(characters("\"Fuse\"", "\"CTC\"")), HasSubstr("the decoder \"CTC\" is not supported"));
  EXPECT_THAT(message(characters("\"<unk>\"}", "null}")), HasSubstr("none for what is unknown; hint: "));
  EXPECT_THAT(message(characters("\"pattern\": {\"String\": \"_\"}, ", "")), HasSubstr("'pattern' is missing"));
  EXPECT_THAT(message(file("\"normalizer\": null", "\"normalizer\": {\"type\": \"Replace\", \"content\": \"\"}")),
              HasSubstr("[t.json:2] 'pattern' is missing"));
  // Two of them make a letter a million.
  const std::string thousands =
      R"({"type": "Replace", "pattern": {"String": "e"}, "content": ")" + std::string(999, 'e') + "\"}";
  const std::string sequence = R"({"type": "Sequence", "normalizers": [)" + thousands + ", " + thousands + "]}";
  EXPECT_EQ(message(file("\"normalizer\": null", "\"normalizer\": " + thousands)), "no error");
  EXPECT_THAT(message(file("\"normalizer\": null", "\"normalizer\": " + sequence)),
              HasSubstr("its normalizers make a text more than 1000 times as long"));
  EXPECT_THAT(message(characters("{\"type\": \"ByteFallback\"}", thousands + ", " + thousands)),
              HasSubstr("its decoders make a token more than 1000 times as long"));
  EXPECT_THAT(message(characters("\"first\"", "\"last\"")), HasSubstr("'prepend_scheme' is 'last'"));
  EXPECT_THAT(message(file("\"post_processor\": null", "\"post_processor\": {\"type\": \"BertProcessing\"}")),
              HasSubstr("the post-processor \"BertProcessing\""));
  EXPECT_THAT(message(file("\"t e\"", "\"t e x\"")), HasSubstr("the merge 't e x' is not two tokens"));
  EXPECT_THAT(message(file("\"t e\"", "\"te\"")), HasSubstr("the merge 'te' is not two tokens"));
  EXPECT_THAT(message(file("\"t e\"", "7")), HasSubstr("a merge is an integer"));
  EXPECT_THAT(message(file("\"t e\"", "\"e e\"")),
              HasSubstr("merge 0 ('e' with 'e') needs the token 'ee', which is not"));
  EXPECT_THAT(message(file("\"e\": 1", "\"e\": 2")), AllOf(HasSubstr("both have the id 2"), HasSubstr("'e' and 'x'")));
  EXPECT_THAT(message(file("\"e\": 1", "\"e\": -1")), HasSubstr("the id of 'e' is -1"));
  EXPECT_THAT(message(file("\"e\": 1", "\"e\": 99999999999")), HasSubstr("the id of 'e' is 99999999999"));
  EXPECT_THAT(message(file("\"e\": 1", "\"e\": 2000000000")),
              HasSubstr("token 'e' has the id 2000000000; with 6 tokens"));
  EXPECT_THAT(message(file("\"e\": 1", "\"e\": \"1\"")), HasSubstr("where an id is expected"));
  EXPECT_THAT(message(file("{\"t\": 0, \"e\": 1, \"x\": 2, \"te\": 3, \"tex\": 4}", "[]")),
              HasSubstr("'model.vocab' is not"));
  EXPECT_THAT(message(file("\"id\": 5, ", "")), HasSubstr("the added token '<e>' has no id"));
  EXPECT_THAT(message(file("<e>", "te")), HasSubstr("the added token 'te' has the id 5 and, in the vocabulary, 3"));
  EXPECT_THAT(message(file("\"model\": {", "\"model\": {\"dropout\": 0.1, ")), HasSubstr("'dropout' is 0.1"));
  EXPECT_THAT(message(file("\"t\": 0", "\"z\": 0, \"tt\": 9")), HasSubstr("needs the token 't'"));
  EXPECT_THAT(message(file("\"x\": 2", "\"y\": 2")), HasSubstr("needs the token 'x'"));
}

std::string split_message(const std::string& expression) {
  return refusal_of([&] {
    const SplitPattern p(expression, "t.json");
    SplitPattern::Search s(p);
    const std::string text(4000, 'a');
    s.start(text);
    std::size_t begin = 0, end = 0;
    while (s.next(begin, end)) {
    }
  });
}

TEST(SplitPattern, MistakesAreNamed) {
  EXPECT_EQ(split_message("a+"), "no error");
  EXPECT_EQ(split_message("a*?|b"), "no error");  // matches that are empty
  EXPECT_THAT(split_message(""), HasSubstr("the split expression is empty"));
  EXPECT_THAT(split_message("(a"), HasSubstr("[t.json] the split expression '(a' is wrong near"));
  EXPECT_THAT(split_message("\\p{Zwork}"), HasSubstr("is wrong near"));
  EXPECT_THAT(split_message("[a&&[b]]"), HasSubstr("a class within a class"));
  EXPECT_THAT(split_message("\\h"), HasSubstr("'\\h'"));
  EXPECT_THAT(split_message(std::string(100000, 'a')), HasSubstr("is 100000 bytes long"));
  EXPECT_THAT(split_message("(?:a|aa)+[bc]"), HasSubstr("the split expression gives up at byte 0 of a text of 4000"));
}

TEST(SplitPattern, ForPcre2) {
  EXPECT_EQ(for_pcre2("a\\s[\\s]\\S\\n", "t"),
            "a[\\t-\\r \\x{85}\\p{Z}][\\t-\\r \\x{85}\\p{Z}][^\\t-\\r \\x{85}\\p{Z}]\\n");
  EXPECT_EQ(for_pcre2("[]a][^]b]", "t"), "[]a][^]b]");
}

TEST(Tokenizer, AnyBytesComeBack) {
  for (const char* style : {"gpt2_style", "llama3_style"}) {
    const Tokenizer t = read_tokenizer(std::string(STRETTO_TEST_DATA "/tokenizers/") + style);
    Encoder encoder(t);
    EXPECT_TRUE(rc::check([&] {
      const auto text = *rc::gen::container<std::string>(
          rc::gen::oneOf(rc::gen::arbitrary<char>(),
                         rc::gen::element(' ', 'e', 't', '\n', '\'', 's', '<', '|', '>', '1', '\xc3', '\xa9')));
      Ids ids, in_parts;
      encoder.encode(text, ids);
      for (const auto id : ids) RC_ASSERT(id >= 0 && id < t.vocab());
      RC_ASSERT(t.decode(ids) == text);
      encoder.encode(text, [&](std::span<const std::int32_t> some, std::size_t) {
        in_parts.insert(in_parts.end(), some.begin(), some.end());
      });
      RC_ASSERT(in_parts == ids);
    }));
  }
}

TEST(Tokenizer, ALongTextComesInParts) {
  const Tokenizer t = read_tokenizer(STRETTO_TEST_DATA "/tokenizers/gpt2_style");
  std::string text;
  for (int i = 0; i < 60000; ++i) text += fmt::format("word{} <|endoftext|>", i % 1000);
  Ids ids;
  std::size_t parts = 0, last = 0;
  Encoder(t).encode(text, [&](std::span<const std::int32_t> some, std::size_t done) {
    ids.insert(ids.end(), some.begin(), some.end());
    ++parts;
    EXPECT_GT(done, last);
    last = done;
  });
  EXPECT_GT(parts, 3u);
  EXPECT_EQ(last, text.size());
  EXPECT_EQ(ids, t.encode(text));
}

TEST(Tokenizer, BytesAreTheirOwnIds) {
  const Tokenizer t = Tokenizer::bytes();
  EXPECT_EQ(t.vocab(), 256);
  EXPECT_THAT(t.encode(std::string_view("\0a\xff", 3)), ElementsAre(0, 97, 255));
  EXPECT_EQ(t.decode(Ids{255, 0, 65}), std::string("\xff\0A", 3));
  EXPECT_EQ(read_tokenizer("bytes").vocab(), 256);
}

TEST(Tokenizer, AnIdThatStandsForNothingIsRefused) {
  const Tokenizer t = Tokenizer::bytes();
  EXPECT_THROW(t.decode(Ids{256}), Error);
  EXPECT_THROW(t.decode(Ids{-1}), Error);
}

TEST(Tokenizer, WhatIsWrittenIsReadBack) {
  for (const char* style :
       {"gpt2_style", "llama3_style", "random/prefix_and_strip", "random/steps", "random/removed"}) {
    const std::string path = std::string(STRETTO_TEST_DATA "/tokenizers/") + style + "/tokenizer.json";
    const TokenizerParts parts = parse_tokenizer(test::text_of(path), path);
    EXPECT_EQ(parse_tokenizer(tokenizer_json(parts), "again"), parts) << style;
  }
}

TEST(ByteLevel, EveryByteHasACharacter) {
  std::string all;
  for (int b = 0; b < 256; ++b) all += char(b);
  EXPECT_EQ(from_byte_level(to_byte_level(all)), all);
  EXPECT_EQ(to_byte_level(" a\n"), "ĠaĊ");
  EXPECT_EQ(from_byte_level("a b"), std::nullopt);
  EXPECT_EQ(from_byte_level("日"), std::nullopt);
  EXPECT_EQ(from_byte_level("\xc4"), std::nullopt);
}

// The library's tables are of an older Unicode than utf8proc's, and its letters of a newer one.
TEST(Normalize, CharactersAsOldAndAsNewAsInTheLibrary) {
  const auto in = [](Normalizer::Kind kind, const char* text) {
    return TextNormalizer({{.kind = kind}}, "t.json").apply(text, true);
  };
  using enum Normalizer::Kind;
  EXPECT_EQ(in(nfkc, "\uFB01\u32FF\u2460\U0001FBF1\u212B"), "fi\u32FF1\U0001FBF1\u00C5");
  EXPECT_EQ(in(nfkd, "\U0001E030\u00C5\U00011938"), "\U0001E030A\u030A\U00011938");
  EXPECT_EQ(in(nfd, "\U00011938\u00E9"), "\U00011938e\u0301");
  EXPECT_EQ(in(nfc, "\u1734\u1AC4\u0334 e\u07FD\u0301"), "\u1734\u1AC4\u0334 e\u07FD\u0301");
  EXPECT_EQ(in(lowercase, "\U00016EA4\uA7CE\uA7D4\u1C89"), "\U00016EBF\uA7CF\uA7D5\u1C8A");
}

}  // namespace
}  // namespace stretto
