#include "stretto/tokenize/train_bpe.h"

#include <gmock/gmock.h>
#include <rapidcheck.h>

#include <map>

#include "stretto/base/error.h"
#include "stretto/tokenize/split_pattern.h"
#include "support/files.h"
#include "support/message.h"

namespace stretto {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

TEST(TrainBpe, MergesTheMostFrequentPairAndOfEqualOnesTheSmallest) {
  WordCounts words(gpt2_pattern, {"<e>"});
  words.add("abab abab<e>cd cd ab");
  const TokenizerParts parts = train_bpe(words, {.vocab = 262});
  EXPECT_THAT(parts.merges, ElementsAre(Pair("a", "b"), Pair("c", "d"), Pair("Ġ", "ab")));
  ASSERT_EQ(parts.vocab.size(), 260u);
  EXPECT_THAT(parts.vocab[0], Pair("<e>", 0));
  EXPECT_THAT(parts.vocab[1], Pair("!", 1));
  EXPECT_THAT(parts.vocab[257], Pair("ab", 257));
  const Tokenizer t(parts);
  EXPECT_THAT(t.encode("abab<e>"), ElementsAre(257, 257, 0));
}

// Counts everything anew after every merge.
std::vector<std::pair<std::string, std::string>> slowly(const WordCounts& words, i64 merges, i64 least) {
  std::map<std::string, int> ids;
  TokenizerParts bytes = train_bpe(words, {.vocab = 256});
  for (const auto& [token, id] : bytes.vocab) ids[token] = id;
  const Tokenizer t(bytes);
  std::vector<std::pair<std::vector<std::string>, i64>> all;
  for (const auto& [word, count] : words.sorted()) {
    std::vector<std::string> letters;
    for (const auto id : t.encode(word)) letters.push_back(bytes.vocab[std::size_t(id)].first);
    all.emplace_back(letters, count);
  }
  std::vector<std::pair<std::string, std::string>> made;
  while (i64(made.size()) < merges) {
    std::map<std::pair<std::string, std::string>, i64> pairs;
    for (const auto& [w, count] : all)
      for (std::size_t i = 0; i + 1 < w.size(); ++i) pairs[{w[i], w[i + 1]}] += count;
    const std::pair<const std::pair<std::string, std::string>, i64>* best = nullptr;
    for (const auto& p : pairs) {
      const auto order = [&](const auto& x) { return std::tuple(-x.second, ids[x.first.first], ids[x.first.second]); };
      if (!best || order(p) < order(*best)) best = &p;
    }
    if (!best || best->second < least) break;
    made.push_back(best->first);
    const std::string token = made.back().first + made.back().second;
    ids.emplace(token, int(255 + made.size()));
    for (auto& [w, count] : all)
      for (std::size_t i = 0; i + 1 < w.size(); ++i)
        if (w[i] == made.back().first && w[i + 1] == made.back().second)
          w[i] = token, w.erase(w.begin() + std::ptrdiff_t(i) + 1);
  }
  return made;
}

TEST(TrainBpe, CountsAreKeptRightWhileMerging) {
  EXPECT_TRUE(rc::check([] {
    WordCounts words(" ?[a-z]+");
    words.add(*rc::gen::container<std::string>(60, rc::gen::element('a', 'a', 'b', 'c', ' ')));
    const i64 merges = *rc::gen::inRange(0, 15), least = *rc::gen::inRange(1, 4);
    RC_ASSERT(train_bpe(words, {.vocab = 256 + merges, .least = least}).merges == slowly(words, merges, least));
  }));
}

TEST(TrainBpe, PartsOfATextHaveThePiecesOfTheWhole) {
  EXPECT_TRUE(rc::check([] {
    const std::vector<std::string> letters{"a",  "b", "1",  " ",  " ",      "\n",  "\r",  ".",
                                           "'s", "é", "字", "。", "\u3000", "<e>", "\xff"};
    const auto chosen =
        *rc::gen::container<std::vector<std::size_t>>(300, rc::gen::inRange<std::size_t>(0, letters.size()));
    std::string text;
    for (const std::size_t i : chosen) text += letters[i];
    for (const std::string_view pattern : {gpt2_pattern, llama3_pattern}) {
      WordCounts whole(pattern, {"<e>"}), parts(pattern, {"<e>"});
      whole.add(text);
      std::string_view left = text;
      while (!left.empty()) {
        const auto bytes = *rc::gen::inRange<std::size_t>(1, left.size() + 1);
        parts.add(left.substr(0, bytes), false);
        left.remove_prefix(bytes);
      }
      parts.add("", true);
      RC_ASSERT(whole.sorted() == parts.sorted());
    }
  }));
}

// One word of gigabytes takes no such memory, and no time to look through it again for every part.
TEST(TrainBpe, AWordWithoutAnEndIsRefused) {
  WordCounts words(gpt2_pattern);
  const std::string part(1 << 20, 'a');
  EXPECT_THAT(refusal_of([&] {
                for (int i = 0; i < 80; ++i) words.add(part, false);
              }),
              HasSubstr("[train-bpe] 65.0 MiB of the text are one word; hint: is it text?"));
}

TEST(TrainBpe, TheSameAsTheLibraryLearns) {  // tests/files/tokenizers/make_trained.py
  const std::string folder = STRETTO_TEST_DATA "/tokenizers/trained/";
  WordCounts words(gpt2_pattern, {"<|endoftext|>"});
  words.add(test::text_of(folder + "text.txt"));
  const TokenizerParts own = train_bpe(words, {.vocab = 700});
  const TokenizerParts library = parse_tokenizer(test::text_of(folder + "tokenizer.json"), "library");
  EXPECT_EQ(own.merges, library.merges);
  EXPECT_EQ((std::map<std::string, int>(own.vocab.begin(), own.vocab.end())),
            (std::map<std::string, int>(library.vocab.begin(), library.vocab.end())));
}

TEST(TrainBpe, AShortTextGivesASmallVocabulary) {
  WordCounts words(gpt2_pattern);
  words.add("aa aa");
  EXPECT_EQ(train_bpe(words, {.vocab = 1000}).vocab.size(), 257u);
  EXPECT_EQ(train_bpe(words, {.vocab = 1000, .least = 1}).vocab.size(), 258u);
  EXPECT_EQ(train_bpe(WordCounts(gpt2_pattern), {.vocab = 1000}).vocab.size(), 256u);
}

TEST(TrainBpe, MistakesAreNamed) {
  const auto message = [](i64 vocab, std::vector<std::string> special) -> std::string {
    return refusal_of([&] { train_bpe(WordCounts(gpt2_pattern, std::move(special)), {.vocab = vocab}); });
  };
  EXPECT_THAT(message(255, {}), HasSubstr("a vocabulary of 255 is asked for; 256 is the least (256 bytes)"));
  EXPECT_THAT(message(256, {"<e>"}), HasSubstr("257 is the least (256 bytes and 1 special token)"));
  EXPECT_THAT(message(i64(1) << 40, {}), HasSubstr("16777216 the most"));
  EXPECT_THAT(message(300, {""}), HasSubstr("the special token '' is empty"));
  EXPECT_THAT(message(300, {"<a>", "<a>"}), HasSubstr("the special token '<a>' is there twice"));
}

}  // namespace
}  // namespace stretto
