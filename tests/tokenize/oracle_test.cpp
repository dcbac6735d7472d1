// Ids, pieces and decoded text as the tokenizers library of Hugging Face has them.
#include <gtest/gtest.h>

#include <cstdlib>

#include "stretto/base/error.h"
#include "stretto/formats/fields.h"
#include "stretto/formats/utf8.h"
#include "stretto/tokenize/inner/byte_level.h"
#include "stretto/tokenize/tokenizer.h"

namespace stretto {
namespace {

std::string folder_of(const std::string& name) {
  const char* own = std::getenv("STRETTO_TOKENIZERS");  // e.g. a folder with more random texts
  return (own ? own : STRETTO_TEST_DATA "/tokenizers/") + name;
}

// Bytes that are no UTF-8 as the library shows them.
std::string without_bad_bytes(std::string text) {
  std::string good;
  for (auto bad = first_bad_utf8(text); bad; bad = first_bad_utf8(text)) {
    good += text.substr(0, *bad);
    text = text.substr(*bad + 1);
  }
  return good + text;
}
std::string without_replacements(std::string text) {
  for (std::size_t at = 0; (at = text.find("\uFFFD", at)) != text.npos;) text.erase(at, 3);
  return text;
}

std::string kind_folder(const std::string& name) {  // scripts/tokenizer_oracle makes more of them
  const char* own = std::getenv("STRETTO_KINDS");
  return (own ? own : STRETTO_TEST_DATA "/tokenizers/kinds/") + name;
}

std::vector<std::int32_t> ids_of(const Field& f) {
  std::vector<std::int32_t> ids;
  for (const Field& id : *f.array()) ids.push_back(std::int32_t(std::get<i64>(id.value)));
  return ids;
}
std::string text_of(const Field& f) { return std::get<std::string>(f.value); }

class Oracle : public testing::TestWithParam<std::string> {};

TEST_P(Oracle, IdsAreThoseOfTheLibrary) {
  const Tokenizer tokenizer = read_tokenizer(folder_of(GetParam()));
  const Field expected = read_json_file(folder_of(GetParam()) + "/expected.json");
  EXPECT_EQ(tokenizer.vocab(), std::get<i64>(expected.find("vocab_size")->value));
  Encoder encoder(tokenizer);  // one for all, so that remembered words are used
  int cases = 0;
  for (const char* list : {"cases", "edge_cases"}) {
    if (!expected.find(list)) continue;
    for (const Field& c : *expected.find(list)->array()) {
      ++cases;
      const std::string text = text_of(*c.find("text"));
      const auto ids = ids_of(*c.find("ids"));
      EXPECT_EQ(tokenizer.encode(text), ids) << list << " '" << text << "'";
      std::vector<std::int32_t> again;
      encoder.encode(text, again);
      EXPECT_EQ(again, ids) << list << " '" << text << "'";
      if (c.find("ids_with_special")) {
        EXPECT_EQ(tokenizer.encode(text, true), ids_of(*c.find("ids_with_special"))) << text;
      }
      EXPECT_EQ(without_bad_bytes(without_replacements(tokenizer.decode(ids))),
                without_replacements(text_of(*c.find("decoded"))));
      if (!c.find("pieces")) continue;
      std::vector<std::string> pieces, wanted;
      encoder.each_piece(text, [&](std::string_view p) { pieces.push_back(to_byte_level(p)); });
      for (const Field& p : *c.find("pieces")->array()) wanted.push_back(text_of(p));
      EXPECT_EQ(pieces, wanted) << text;
    }
  }
  EXPECT_GT(cases, 20);
}

// Tokenizers of every family, trained by their libraries: ids and text of random strings are theirs.
class Kinds : public testing::TestWithParam<std::string> {};

TEST_P(Kinds, IdsAndTextAreThoseOfTheLibrary) {
  const Tokenizer tokenizer = read_tokenizer(kind_folder(GetParam()));
  const Field expected = read_json_file(kind_folder(GetParam()) + "/expected.json");
  EXPECT_EQ(tokenizer.vocab(), std::get<i64>(expected.find("vocab_size")->value));
  Encoder encoder(tokenizer);
  std::size_t cases = 0, wrong = 0;
  for (const Field& c : *expected.find("cases")->array()) {
    ++cases;
    const std::string text = text_of(*c.find("text")), decoded = text_of(*c.find("decoded"));
    const auto ids = ids_of(*c.find("ids"));
    std::vector<std::int32_t> own;
    encoder.encode(text, own);
    const bool right =
        own == ids && without_bad_bytes(without_replacements(tokenizer.decode(ids))) == without_replacements(decoded);
    if (right || ++wrong > 5) continue;
    EXPECT_EQ(own, ids) << json_text(text);
    EXPECT_EQ(json_text(tokenizer.decode(ids)), json_text(decoded)) << json_text(text);
  }
  EXPECT_GE(cases, 60u);
  EXPECT_EQ(wrong, 0u) << "of " << cases;
}

INSTANTIATE_TEST_SUITE_P(All, Kinds,
                         testing::Values("llama2", "mistral", "gemma", "qwen", "nfkc_bytes", "nfd_bytes", "unknown",
                                         "unigram", "unigram_bytes", "sp_llama2", "sp_gemma", "sp_bpe_nfkc",
                                         "sp_unigram", "sp_unigram_bytes", "sp_suffix"),
                         [](const auto& info) { return info.param; });

INSTANTIATE_TEST_SUITE_P(Styles, Oracle,
                         testing::Values("gpt2_style", "llama3_style", "random/gpt2", "random/llama3",
                                         "random/prefix_and_strip", "random/steps", "random/removed"),
                         [](const auto& info) {
                           return info.param.substr(info.param.find('/') == std::string::npos ? 0 : 7) +
                                  (info.param.starts_with("random") ? "Random" : "");
                         });

}  // namespace
}  // namespace stretto
