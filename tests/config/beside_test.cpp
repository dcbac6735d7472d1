#include "stretto/config/inner/beside.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "stretto/config/run.h"
#include "support/files.h"

namespace stretto {
namespace {

using test::Folder;
using testing::AllOf;
using testing::HasSubstr;

// Works in a folder of its own, beside another in which runs lie.
class Beside : public testing::Test {
 protected:
  Beside() : before_(std::filesystem::current_path()) { std::filesystem::current_path(here_.str()); }
  ~Beside() override { std::filesystem::current_path(before_); }
  RunConfig read(const std::string& text, const std::vector<std::string>& overrides = {}) const {
    runs_.write("run.toml", text);
    return read_run((runs_ / "run.toml").string(), overrides);
  }
  const Folder here_, runs_;

 protected:
  std::string beside(const std::string& name) const { return (runs_ / name).string(); }

 private:
  std::filesystem::path before_;
};

TEST_F(Beside, NamesAreLookedForBesideTheRunFileToo) {
  for (const char* file : {"data/a.txt", "data/b.txt", "set.idx", "set.bin", "bytes", "1f1b"})
    runs_.write(file, "text");
  const RunConfig c = read(
      "[model]\nvocab = 256\n[data]\nmixture = [{path = \"data/*.txt\"}, {path = [\"set\", \"data/a.txt\"], weight = "
      "2}]\n"
      "validation = [\"data/b.txt\"]\n[parallel]\nschedule = \"1f1b\"\n");
  EXPECT_EQ(c.data.mixture.at(0).path, std::vector{beside("data/*.txt")});
  EXPECT_EQ(c.data.mixture.at(1).path, (std::vector{beside("set"), beside("data/a.txt")}));
  EXPECT_EQ(c.data.validation_path, std::vector{beside("data/b.txt")});
  EXPECT_EQ(c.data.tokenizer, "bytes") << "words are no files";
  EXPECT_EQ(c.parallel.schedule, "1f1b");
}

TEST_F(Beside, TheCurrentDirectoryComesFirst) {
  runs_.write("a.txt", "there");
  here_.write("a.txt", "here");
  EXPECT_EQ(read("[data]\npath = \"a.txt\"\n").data.path, std::vector<std::string>{"a.txt"});
}

TEST_F(Beside, WordsOfTheCommandLineAreOfTheCurrentDirectory) {
  runs_.write("a.txt", "there");
  EXPECT_EQ(read("", {"--data.path=a.txt"}).data.path, std::vector<std::string>{"a.txt"});
}

TEST_F(Beside, WhatIsNowhereIsSaidWithBothPlaces) {
  const auto said = [&](const std::string& text) {
    try {
      open_corpus(corpus_of(read(text)), 8);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  const auto both = AllOf(HasSubstr("names are relative to the current directory, " + here_.str()),
                          HasSubstr("or to that of the run file, " + runs_.str()));
  EXPECT_THAT(said("[data]\npath = \"a.txt\"\n"), AllOf(HasSubstr("[data] there is no file 'a.txt'"), both));
  EXPECT_THAT(said("[data]\npath = \"a*.txt\"\n"), AllOf(HasSubstr("no file matches 'a*.txt'"), both));
  EXPECT_THAT(said("[model]\nvocab = 256\n[data]\ntokenizer = \"t.json\"\n"), HasSubstr("there is no"));
  EXPECT_THAT(said("[model]\nfrom = \"nowhere\"\n"), both);
}

}  // namespace
}  // namespace stretto
