#include "stretto/data/corpus.h"

#include <gmock/gmock.h>
#include <rapidcheck.h>

#include <numeric>

#include "stretto/base/error.h"
#include "stretto/data/sequences.h"
#include "support/files.h"
#include "support/message.h"

namespace stretto {
namespace {

using test::Folder;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string tokens_folder = STRETTO_TEST_DATA "/tokens/", tokenizers_folder = STRETTO_TEST_DATA "/tokenizers/";

std::string message(const CorpusOptions& o, i64 length = 4) {
  return input_refusal_of([&] { open_corpus(o, length); });
}

std::vector<std::int32_t> all_of(const TokenSource& source) {
  std::vector<std::int32_t> ids(std::size_t(source.tokens()));
  source.read(0, ids);
  return ids;
}
std::vector<std::int32_t> trained_on(const CorpusOptions& o) { return all_of(*open_corpus(o, 4).training[0].source); }

std::vector<std::int32_t> counted(std::int32_t from, std::int32_t to) {
  std::vector<std::int32_t> ids(std::size_t(to - from));
  std::iota(ids.begin(), ids.end(), from);
  return ids;
}

void write_tokens(const std::filesystem::path& path, TokenFormat format, i64 vocab,
                  const std::vector<std::int32_t>& ids) {
  TokenFileWriter out(path, format, vocab);
  out.write(ids);
  out.commit();
}

TEST(Corpus, ReadsTokenFilesThatOthersWrote) {
  const std::vector<std::int32_t> nanogpt = trained_on({.path = {tokens_folder + "nanogpt.bin"}});
  EXPECT_THAT(std::vector(nanogpt.begin(), nanogpt.begin() + 5), ElementsAre(0, 1, 50256, 65535, 29063));
  const std::vector<std::int32_t> narrow = trained_on({.path = {tokens_folder + "llmc_gpt2.bin"}});
  EXPECT_THAT(std::vector(narrow.begin(), narrow.begin() + 3), ElementsAre(50256, 49972, 21120));
  const std::vector<std::int32_t> wide = trained_on({.path = {tokens_folder + "llmc_llama3.bin"}});
  EXPECT_THAT(std::vector(wide.begin(), wide.begin() + 3), ElementsAre(128000, 71675, 124373));
  for (const char* name : {"megatron_u16", "megatron_u16.bin", "megatron_u16.idx", "megatron_u16.*"})
    EXPECT_THAT(trained_on({.path = {tokens_folder + name}}),
                ElementsAre(5, 6, 7, 8, 9, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 65000, 3, 11, 12, 13, 14, 15, 16, 17))
        << name;
  const std::string index = tokens_folder + "megatron_u16.idx", tokens = tokens_folder + "megatron_u16.bin";
  EXPECT_EQ(trained_on({.path = {index, tokens}}), trained_on({.path = {tokens, index}}));
  EXPECT_EQ(trained_on({.path = {index, tokens}}), trained_on({.path = {tokens}}));
}

TEST(Corpus, ShardsOfAGlobAreOneRow) {
  const Folder folder;
  for (const TokenFormat format : {TokenFormat::nanogpt, TokenFormat::llmc, TokenFormat::megatron})
    for (const i64 vocab : {1000, 100000}) {
      if (format == TokenFormat::nanogpt && vocab > 65536) continue;
      const std::string name = fmt::format("{}_{}", int(format), vocab);
      write_tokens(folder / (name + "_1.bin"), format, vocab, counted(0, 10));
      write_tokens(folder / (name + "_2.bin"), format, vocab, counted(10, 11));
      write_tokens(folder / (name + "_3.bin"), format, vocab, counted(11, 300));
      const Corpus c = open_corpus({.path = {folder.str() + "/" + name + "_*"}, .vocab = 300}, 8);
      const TokenSource& source = *c.training[0].source;
      ASSERT_EQ(source.tokens(), 300) << name;
      EXPECT_EQ(source.vocab(), 300);
      EXPECT_TRUE(rc::check([&] {
        const i64 first = *rc::gen::inRange<i64>(0, 301), count = *rc::gen::inRange<i64>(0, 301 - first);
        std::vector<std::int32_t> ids(std::size_t(count), -1);
        source.read(first, ids);
        RC_ASSERT(ids == counted(std::int32_t(first), std::int32_t(first + count)));
      }));
    }
}

TEST(Corpus, ASetThatAnotherOneStandsBetweenIsReadOnce) {
  const Folder folder;
  write_tokens(folder / "part.bin", TokenFormat::megatron, 1000, counted(0, 10));
  write_tokens(folder / "part.en.bin", TokenFormat::megatron, 1000, counted(10, 25));
  const Corpus c = open_corpus({.path = {folder.str() + "/*"}, .vocab = 300}, 8);
  EXPECT_EQ(c.training[0].source->tokens(), 25);
}

TEST(Corpus, TextIsTokenizedAndDocumentsEnd) {
  const Folder folder;
  folder.write("a.txt", "the cat and the dog");
  folder.write("b.jsonl", "{\"text\": \"the dog\"}\n\n{\"text\": \"a cat\"}\n");
  const Tokenizer t = read_tokenizer(tokenizers_folder + "gpt2_style");
  std::vector<std::int32_t> expected;
  for (const char* text : {"the cat and the dog", "the dog", "a cat"}) {
    for (const std::int32_t id : t.encode(text)) expected.push_back(id);
    if (t.end_of_text()) expected.push_back(*t.end_of_text());
  }
  const CorpusOptions o{.path = {folder.str() + "/*"}, .tokenizer = tokenizers_folder + "gpt2_style"};
  EXPECT_EQ(trained_on(o), expected);
  EXPECT_EQ(open_corpus(o, 4).training[0].source->vocab(), t.vocab());
}

TEST(Corpus, LinesOfJsonWithoutATokenizerAreTheBytesOfTheirTexts) {
  const Folder folder;
  folder.write("b.jsonl", "{\"text\": \"ab\\n\"}\n{\"text\": \"cde\"}\n");
  EXPECT_THAT(trained_on({.path = {(folder / "b.jsonl").string()}}), ElementsAre('a', 'b', '\n', 'c', 'd', 'e'));
}

TEST(Corpus, TextAndTokenFilesFollowEachOther) {
  const Folder folder;
  folder.write("a.txt", "abc");
  write_tokens(folder / "b.bin", TokenFormat::nanogpt, 256, {1, 2});
  folder.write("c.txt", "d");
  EXPECT_THAT(trained_on({.path = {folder.str() + "/*"}, .vocab = 256}), ElementsAre('a', 'b', 'c', 1, 2, 'd'));
}

TEST(Corpus, FormatSaysWhatAFileIs) {
  const Folder folder;
  folder.write("a.bin", "abcdef");
  folder.write("tokens", "abcdefghij");
  const std::string bin = (folder / "a.bin").string(), tokens = (folder / "tokens").string();
  EXPECT_THAT(trained_on({.path = {bin}, .format = DataFormat::text}), ElementsAre('a', 'b', 'c', 'd', 'e', 'f'));
  EXPECT_THAT(trained_on({.path = {tokens}, .format = DataFormat::nanogpt}),
              ElementsAre(0x6261, 0x6463, 0x6665, 0x6867, 0x6a69));
  EXPECT_THAT(message({.path = {bin}, .format = DataFormat::llmc}), HasSubstr("is 6 bytes long; the header alone"));
  EXPECT_THAT(message({.path = {bin}, .format = DataFormat::megatron}), HasSubstr(folder.str() + "/a.idx"));
}

TEST(Corpus, WrongFilesAreNamed) {
  const Folder folder;
  folder.write("empty.bin", "");
  folder.write("odd.bin", "abc");
  std::string header(1024, '\0');
  header.replace(0, 12, std::string("\x01\x02\x03\x04\x01\x00\x00\x00\x05\x00\x00\x00", 12));
  folder.write("magic.bin", header + "abcdefghij");
  write_tokens(folder / "good.bin", TokenFormat::llmc, 1000, counted(0, 100));
  const std::string good = test::text_of(folder / "good.bin");
  folder.write("cut.bin", good.substr(0, good.size() - 1));
  folder.write("nothing.jsonl", "\n");
  const auto file = [&](const char* name) { return (folder / name).string(); };
  EXPECT_THAT(message({.path = {file("empty.bin")}}), HasSubstr("[" + file("empty.bin") + "] is empty"));
  EXPECT_THAT(message({.path = {file("odd.bin")}}), HasSubstr("[" + file("odd.bin") + "] is 3 bytes long"));
  EXPECT_THAT(message({.path = {file("magic.bin")}, .format = DataFormat::llmc}),
              HasSubstr("begins with 67305985; a token file of llm.c begins with 20240520 or 20240801"));
  EXPECT_THAT(
      message({.path = {file("cut.bin")}}),
      AllOf(HasSubstr("[" + file("cut.bin") + "] says it holds 100 tokens"), HasSubstr("is the file cut off?")));
  EXPECT_THAT(message({.path = {file("nothing.jsonl")}}), HasSubstr("has no text; hint: "));
  EXPECT_THAT(message({.path = {file("good.bin")}, .vocab = 98}),
              HasSubstr("[" + file("good.bin") +
                        "] token 98 is 98, the largest is 99, and the vocabulary is 98; hint: use "
                        "model.vocab = 100"));
  EXPECT_EQ(message({.path = {file("good.bin")}, .vocab = 100}), "no error");
  EXPECT_THAT(message({.path = {file("good.bin")}, .vocab = 100, .validation_path = {file("cut.bin")}}),
              HasSubstr("cut.bin] says it holds"));
  EXPECT_THAT(message({.mixture = {{{file("good.bin")}, 1}, {{file("odd.bin")}, 1}}, .vocab = 100}),
              HasSubstr("odd.bin] is 3 bytes long"));
  EXPECT_THAT(message({.mixture = {{{file("good.bin")}, 1}, {{file("good.bin")}, 1}}, .vocab = 100}, 100),
              HasSubstr("has 100 tokens, and one sequence with its targets takes 101"));
  EXPECT_THAT(message({.path = {file("nothing.jsonl")}, .tokenizer = "nowhere.json"}), HasSubstr("nowhere.json"));
}

TEST(Corpus, ATokenizerMustFitTheModel) {
  const Folder folder;
  folder.write("a.txt", "some text to read");
  const i64 vocab = read_tokenizer(tokenizers_folder + "gpt2_style").vocab();
  EXPECT_THAT(
      message(
          {.path = {(folder / "a.txt").string()}, .tokenizer = tokenizers_folder + "gpt2_style", .vocab = vocab - 1}),
      HasSubstr(fmt::format("has ids up to {}, and the model's vocabulary is {}; hint: use model.vocab = {}", vocab - 1,
                            vocab - 1, vocab)));
}

TEST(Corpus, ValidationIsTheEndOfEverySourceOfAMixture) {
  const Folder folder;
  write_tokens(folder / "a.bin", TokenFormat::nanogpt, 1000, counted(0, 100));
  write_tokens(folder / "b.bin", TokenFormat::nanogpt, 1000, counted(500, 540));
  const Corpus c = open_corpus(
      {.mixture = {{{(folder / "a.bin").string()}, 3}, {{(folder / "b.bin").string()}, 1}}, .validation = 0.25}, 4);
  EXPECT_EQ(c.training_tokens(), 105);
  EXPECT_EQ(all_of(*c.training[0].source), counted(0, 75));
  EXPECT_EQ(all_of(*c.training[1].source), counted(500, 530));
  std::vector<std::int32_t> held_out = counted(75, 100);
  for (const std::int32_t id : counted(530, 540)) held_out.push_back(id);
  EXPECT_EQ(all_of(*c.validation), held_out);
  EXPECT_THAT(c.name, AllOf(HasSubstr("75% "), HasSubstr("a.bin"), HasSubstr("; 25% "), HasSubstr("b.bin")));
}

TEST(Corpus, ItsHashIsThatOfTheTokensWhateverTheyAreIn) {
  const Folder folder;
  const std::vector<std::int32_t> ids = counted(0, 250);
  std::vector<std::int32_t> other = ids;
  other[200] = 7;
  write_tokens(folder / "a.bin", TokenFormat::nanogpt, 256, ids);
  write_tokens(folder / "b.bin", TokenFormat::llmc, 256, ids);
  write_tokens(folder / "other.bin", TokenFormat::nanogpt, 256, other);
  const auto hash = [&](const std::string& name, double validation = 0) {
    return open_corpus({.path = {(folder / name).string()}, .validation = validation}, 4).hash();
  };
  EXPECT_EQ(hash("a.bin"), hash("b.bin"));
  EXPECT_NE(hash("a.bin"), hash("other.bin"));
  EXPECT_NE(hash("a.bin"), hash("a.bin", 0.1)) << "what is held out is not trained on";
  write_tokens(folder / "long.bin", TokenFormat::nanogpt, 256, std::vector<std::int32_t>(1 << 20, 3));
  write_tokens(folder / "longer.bin", TokenFormat::nanogpt, 256, std::vector<std::int32_t>((1 << 20) + 1, 3));
  EXPECT_NE(hash("long.bin"), hash("longer.bin"));
}

TEST(Documents, BeginBehindEndTokensInIndexedFilesAndFilesAndTexts) {
  const Folder folder;
  const auto file = [&](const std::string& name) { return (folder / name).string(); };
  const Tokenizer t = read_tokenizer(tokenizers_folder + "gpt2_style");
  const std::int32_t end = t.end_of_text().value();
  folder.write("a.jsonl", "{\"text\": \"the dog\"}\n{\"text\": \"a cat\"}\n{\"text\": \"\"}\n{\"text\": \"one\"}\n");
  const i64 first = i64(t.encode("the dog").size()) + 1, second = first + i64(t.encode("a cat").size()) + 1;
  const CorpusOptions text{.path = {file("a.jsonl")}, .tokenizer = tokenizers_folder + "gpt2_style", .documents = true};
  const Corpus c = open_corpus(text, 4);
  const std::vector<std::int32_t> ids = all_of(*c.training[0].source);
  const i64 size = i64(ids.size());
  EXPECT_THAT(c.training[0].source->documents(0, size), ElementsAre(first, second));
  EXPECT_THAT(c.training[0].source->documents(first, size), ElementsAre(second));
  EXPECT_THAT(c.training[0].source->documents(first - 1, second), ElementsAre(first));
  // The same tokens as files: of one kind, of both, in parts.
  write_tokens(folder / "n.bin", TokenFormat::nanogpt, t.vocab(), ids);
  TokenFileWriter indexed(folder / "m.bin", TokenFormat::megatron, t.vocab());
  indexed.write(std::span(ids).first(std::size_t(first)));
  indexed.end_document();
  indexed.write(std::span(ids).subspan(std::size_t(first), std::size_t(second - first)));
  indexed.end_document();
  indexed.write(std::span(ids).subspan(std::size_t(second)));
  indexed.commit();
  for (const char* name : {"n.bin", "m.bin"}) {
    CorpusOptions o = text;
    o.path = {file(name), file(name), file("a.jsonl")};
    const auto source = open_corpus(o, 4).training[0].source;
    std::vector<i64> expected;
    for (i64 k = 0; k < 3; ++k)
      for (const i64 s : {i64(0), first, second})
        if (k + s > 0) expected.push_back(k * size + s);
    EXPECT_TRUE(rc::check([&] {
      const i64 from = *rc::gen::inRange<i64>(0, 3 * size), to = *rc::gen::inRange<i64>(from, 3 * size + 1);
      std::vector<i64> inside;
      for (const i64 s : expected)
        if (s > from && s < to) inside.push_back(s);
      RC_ASSERT(source->documents(from, to) == inside);
      const auto part = part_of(source, from, to - from);
      for (i64& s : inside) s -= from;
      RC_ASSERT(part->documents(0, to - from) == inside);
    }));
  }
  EXPECT_EQ(ids[std::size_t(first - 1)], end);
  EXPECT_THAT(message({.path = {file("n.bin")}, .documents = true}),
              HasSubstr("[" + file("n.bin") + "] does not say where documents begin"));
  EXPECT_EQ(message({.path = {file("m.bin")}, .documents = true}), "no error");
  const auto empty = open_corpus({.path = {tokens_folder + "megatron_empty"}, .documents = true}, 4).training[0].source;
  EXPECT_THAT(empty->documents(0, 6), ElementsAre(3, 4));
}

TEST(Documents, RowsCountThem) {
  const Folder folder;
  for (const char* name : {"a", "b", "c"}) folder.write(name, std::string(7, name[0]));
  const RowsOptions o{.length = 5, .batch = 3, .seed = 1, .documents = true};
  const Corpus corpus = open_corpus({.path = {folder.str() + "/*"}, .documents = true}, 5);
  const TrainingRows training(corpus, o);
  const auto expect_counted = [](const Rows& rows) {
    ASSERT_EQ(rows.segments.size(), rows.ids.size());
    for (std::size_t i = 0; i < std::size_t(rows.filled) * 5; ++i) {  // the letter is the file
      EXPECT_EQ(rows.segments[i], rows.ids[i] - rows.ids[i / 5 * 5]);
      // What another document begins with is nobody's target; 'a' to 'c' stand for themselves otherwise.
      if (i % 5 < 4) {
        EXPECT_EQ(rows.targets[i], rows.ids[i] == rows.ids[i + 1] ? rows.ids[i] : Rows::ignored);
      }
      EXPECT_TRUE(rows.targets[i] == rows.ids[i] || rows.targets[i] == Rows::ignored);
    }
  };
  for (i64 step = 1; step < 20; ++step) expect_counted(training.at(step));
  expect_counted(validation_rows(*corpus.training[0].source, o, 1, 0));
}

TEST(Corpus, RowsOfAMixtureComeInProportionAndFromAnywhereTheSame) {
  const Folder folder;
  write_tokens(folder / "a.bin", TokenFormat::nanogpt, 1000, counted(0, 500));
  write_tokens(folder / "b.bin", TokenFormat::nanogpt, 1000, counted(500, 700));
  const Corpus corpus =
      open_corpus({.mixture = {{{(folder / "a.bin").string()}, 0.75}, {{(folder / "b.bin").string()}, 0.25}}}, 8);
  const RowsOptions o{.length = 8, .batch = 4, .seed = 11};
  const TrainingRows training(corpus, o);
  i64 of_b = 0;
  for (i64 step = 1; step <= 100; ++step) {
    const Rows rows = training.at(step);
    for (i64 r = 0; r < 4; ++r) of_b += rows.ids[std::size_t(r * 8)] >= 500;
    for (std::size_t i = 0; i < rows.ids.size(); ++i) ASSERT_EQ(rows.targets[i], rows.ids[i] + 1);
  }
  EXPECT_EQ(of_b, 100);
  EXPECT_TRUE(rc::check([&] {
    const i64 step = *rc::gen::inRange<i64>(1, 1000000);
    RC_ASSERT(TrainingRows(corpus, o).at(step).ids == training.at(step).ids);
    const Rows twice = TrainingRows(corpus, {.length = 8, .batch = 8, .seed = 11}).at(step);
    Rows one = training.at(2 * step - 1), two = training.at(2 * step);
    one.ids.insert(one.ids.end(), two.ids.begin(), two.ids.end());
    RC_ASSERT(twice.ids == one.ids);
  }));
}

}  // namespace
}  // namespace stretto
