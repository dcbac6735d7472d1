#include "stretto/data/sequences.h"

#include <gmock/gmock.h>
#include <rapidcheck.h>

#include <set>

#include "stretto/base/error.h"
#include "support/files.h"
#include "support/message.h"

namespace stretto {
namespace {

using test::Folder;
using testing::HasSubstr;

std::string numbers(int from, int to) {  // bytes from, from + 1, ... to - 1
  std::string text;
  for (int i = from; i < to; ++i) text.push_back(char(i));
  return text;
}

std::string order_message(const CorpusOptions& o, i64 length) {
  return input_refusal_of([&] { open_corpus(o, length); });
}

Rows training_rows(std::shared_ptr<const TokenSource> source, const RowsOptions& o, i64 step) {
  Corpus corpus;
  corpus.training.push_back({std::move(source)});
  return TrainingRows(corpus, o).at(step);
}

TEST(Bytes, SeveralFilesAreOneRow) {
  const Folder folder;
  folder.write("a.txt", numbers(0, 5));
  folder.write("b.txt", "");
  folder.write("c.txt", numbers(5, 6));
  folder.write("d.txt", numbers(6, 200));
  const auto source = open_bytes(find_files({folder.str() + "/*.txt"}));
  ASSERT_EQ(source->tokens(), 200);
  EXPECT_EQ(source->vocab(), 256);
  EXPECT_THAT(source->str(), HasSubstr("4 files from"));
  EXPECT_TRUE(rc::check([&] {
    const i64 first = *rc::gen::inRange<i64>(0, 201), count = *rc::gen::inRange<i64>(0, 201 - first);
    std::vector<std::int32_t> ids(std::size_t(count), -1);
    source->read(first, ids);
    for (i64 i = 0; i < count; ++i) RC_ASSERT(ids[std::size_t(i)] == first + i);
  }));
}

TEST(Bytes, BytesAbove127ArePositive) {
  const Folder folder;
  folder.write("a.txt", "\xff\x80");
  std::vector<std::int32_t> ids(2);
  open_bytes({folder / "a.txt"})->read(0, ids);
  EXPECT_THAT(ids, testing::ElementsAre(255, 128));
}

TEST(FindFiles, FilesAndGlobsInOrder) {
  const Folder folder;
  for (const char* name : {"b.txt", "a.txt", "c.md", "x[1].txt"}) folder.write(name, "text");
  std::filesystem::create_directory(folder / "d.txt");
  const auto files = find_files({(folder / "c.md").string(), folder.str() + "/?.txt", (folder / "x[1].txt").string()});
  EXPECT_THAT(files, testing::ElementsAre(folder / "c.md", folder / "a.txt", folder / "b.txt", folder / "x[1].txt"));
}

TEST(Corpus, MistakesAreNamed) {
  const Folder folder;
  folder.write("empty.txt", "");
  folder.write("short.txt", numbers(1, 101));
  const std::string empty = (folder / "empty.txt").string(), text = (folder / "short.txt").string();
  EXPECT_THAT(order_message({.path = {folder.str() + "/none.txt"}}, 8),
              AllOf(HasSubstr("[data] there is no file '" + folder.str() + "/none.txt'; hint: names are relative to")));
  EXPECT_THAT(order_message({.path = {folder.str() + "/*.md"}}, 8),
              HasSubstr("no file matches '" + folder.str() + "/*.md'"));
  EXPECT_THAT(order_message({.path = {folder.str()}}, 8),
              HasSubstr("is a directory; hint: name its files: '" + folder.str() + "/*'"));
  EXPECT_THAT(order_message({}, 8), HasSubstr("[data] no files are named"));
  EXPECT_THAT(order_message({.path = {empty}}, 8), HasSubstr("'" + empty + "' has 0 bytes"));
  EXPECT_THAT(order_message({.path = {text}}, 100),
              HasSubstr("[data] the training data (" + text +
                        ", 100 bytes) has 100 tokens, and one sequence with its targets takes 101; hint: "));
  EXPECT_EQ(order_message({.path = {text}}, 99), "no error");
  EXPECT_THAT(
      order_message({.path = {text}, .validation = 0.1}, 50),
      AllOf(HasSubstr("the validation data (tokens 90 to 100 of "), HasSubstr("has 10 tokens"), HasSubstr("takes 51")));
  EXPECT_THAT(order_message({.path = {text}, .validation = 0.6}, 50),
              AllOf(HasSubstr("the training data (tokens 0 to 40 of "), HasSubstr("has 40 tokens")));
  EXPECT_THAT(order_message({.path = {text}, .validation_path = {empty}}, 8), HasSubstr("has 0 bytes"));
}

TEST(Corpus, ValidationIsTheEndOfTheDataOrAFileOfItsOwn) {
  const Folder folder;
  folder.write("a.txt", numbers(0, 100));
  folder.write("b.txt", numbers(200, 240));
  const std::string a = (folder / "a.txt").string(), b = (folder / "b.txt").string();
  const Corpus none = open_corpus({.path = {a}, .format = DataFormat::text}, 8);
  EXPECT_EQ(none.training_tokens(), 100);
  EXPECT_EQ(none.validation, nullptr);
  const Corpus split = open_corpus({.path = {a}, .format = DataFormat::text, .validation = 0.25}, 8);
  EXPECT_EQ(split.training_tokens(), 75);
  EXPECT_EQ(split.validation->tokens(), 25);
  std::vector<std::int32_t> ids(25);
  split.validation->read(0, ids);
  EXPECT_EQ(ids.front(), 75);
  EXPECT_EQ(ids.back(), 99);
  const Corpus own = open_corpus({.path = {a}, .format = DataFormat::text, .validation_path = {b}}, 8);
  EXPECT_EQ(own.training_tokens(), 100);
  EXPECT_EQ(own.validation->tokens(), 40);
}

TEST(TrainingRows, TargetsAreTheIdsShiftedByOne) {
  const Folder folder;
  folder.write("a.txt", numbers(0, 256));
  const auto source = open_bytes({folder / "a.txt"});
  EXPECT_TRUE(rc::check([&] {
    const RowsOptions o{.length = *rc::gen::inRange<i64>(1, 40),
                        .batch = *rc::gen::inRange<i64>(1, 9),
                        .seed = *rc::gen::arbitrary<u64>()};
    const Rows rows = training_rows(source, o, *rc::gen::inRange<i64>(1, 1000000));
    RC_ASSERT(rows.filled == o.batch);
    RC_ASSERT(i64(rows.ids.size()) == o.batch * o.length && rows.targets.size() == rows.ids.size());
    for (std::size_t i = 0; i < rows.ids.size(); ++i) {
      RC_ASSERT(rows.targets[i] == rows.ids[i] + 1);
      if (i % std::size_t(o.length) != 0) RC_ASSERT(rows.ids[i] == rows.ids[i - 1] + 1);
    }
  }));
}

TEST(TrainingRows, DoNotDependOnHowManyRowsAStepHas) {
  const Folder folder;
  std::string text;
  for (int i = 0; i < 5000; ++i) text.push_back(char(i * 7 + i / 251));
  folder.write("a.txt", text);
  const auto source = open_bytes({folder / "a.txt"});
  const RowsOptions twelve{.length = 10, .batch = 12, .seed = 3}, four{.length = 10, .batch = 4, .seed = 3};
  for (i64 step = 1; step <= 60; ++step) {
    std::vector<std::int32_t> ids;
    for (i64 part = 1; part <= 3; ++part) {
      const Rows rows = training_rows(source, four, (step - 1) * 3 + part);
      ids.insert(ids.end(), rows.ids.begin(), rows.ids.end());
    }
    ASSERT_EQ(training_rows(source, twelve, step).ids, ids) << "step " << step;
  }
}

TEST(ValidationRows, CoverTheDataEvenlyAndMarkWhatIsEmpty) {
  const Folder folder;
  folder.write("a.txt", numbers(0, 101));  // ten windows of ten
  const auto source = open_bytes({folder / "a.txt"});
  const RowsOptions o{.length = 10, .batch = 4};
  ASSERT_EQ(validation_batches(*source, o, 100), 3);
  std::set<std::int32_t> firsts;
  i64 filled = 0;
  for (i64 b = 0; b < 3; ++b) {
    const Rows rows = validation_rows(*source, o, 3, b);
    filled += rows.filled;
    for (i64 r = 0; r < 4; ++r) {
      const bool holds = r < rows.filled;
      EXPECT_EQ(rows.targets[std::size_t(r * 10)], holds ? rows.ids[std::size_t(r * 10)] + 1 : Rows::ignored);
      if (holds) firsts.insert(rows.ids[std::size_t(r * 10)]);
    }
  }
  EXPECT_EQ(filled, 10);
  EXPECT_THAT(firsts, testing::ElementsAre(0, 10, 20, 30, 40, 50, 60, 70, 80, 90));
  ASSERT_EQ(validation_batches(*source, o, 1), 1);
  const Rows few = validation_rows(*source, o, 1, 0);
  EXPECT_EQ(few.filled, 4);
  EXPECT_THAT((std::vector{few.ids[0], few.ids[10], few.ids[20], few.ids[30]}), testing::ElementsAre(0, 20, 50, 70));
}

}  // namespace
}  // namespace stretto
