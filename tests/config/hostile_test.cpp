// Whatever a key is given, a run is valid or refused with a message: nothing crashes, hangs or is written.
#include <gmock/gmock.h>

#include <filesystem>
#include <set>

#include "stretto/base/error.h"
#include "stretto/config/describe.h"
#include "stretto/config/run.h"
#include "stretto/run/loop.h"
#include "support/files.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;

class Hostile : public testing::Test {
 protected:
  Hostile() : before_(fs::current_path()) {
    folder_.write("text.txt", test::sentences(100));
    fs::current_path(folder_.str());
  }
  ~Hostile() override { fs::current_path(before_); }

  std::set<std::string> files() const {
    std::set<std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(folder_.str())) all.insert(entry.path().string());
    return all;
  }

  // "": the run is valid.
  std::string said(const std::string& key, const std::string& value) const {
    std::vector<std::string> settings{"--model.layers=1",  "--model.width=16",       "--model.heads=2",
                                      "--model.context=8", "--data.path=text.txt",   "--train.batch=4",
                                      "--train.steps=2",   "--train.microbatches=2", "--checkpoint.keep=0"};
    settings.push_back(fmt::format("--{}={}", key, value));
    try {
      check_run(read_run("", settings));
    } catch (const Error& e) {
      EXPECT_LE(e.exit_code(), 3) << e.what();
      EXPECT_NE(e.kind(), Error::Kind::bug) << e.what();
      return e.what();
    } catch (const std::exception& e) {
      ADD_FAILURE() << key << ": " << std::string(e.what()).substr(0, 200);
    }
    return "";
  }
  void expect_clean(const std::string& message, const std::string& key, const std::string& value) const {
    const std::string what = fmt::format("--{}={}: {}", key, value.substr(0, 60), message);
    EXPECT_LT(message.size(), 5000u) << what;
    EXPECT_TRUE(message.empty() || message.starts_with("[")) << what;
    for (const char c : message) EXPECT_FALSE(c >= 0 && c < ' ' && c != '\n') << what << " has a byte " << int(c);
  }

  test::Folder folder_;
  fs::path before_;
};

TEST_F(Hostile, EveryKeyTakesAnyValueOrSaysWhyNot) {
  const std::string words(1 << 16, 'x');
  const std::string values[] = {"-1",
                                "0",
                                "1e308",
                                "nan",
                                "inf",
                                "\"\"",
                                "[]",
                                "{}",
                                "true",
                                "9223372036854775807",
                                "-9223372036854775808",
                                "123456789012345678901234567890",
                                "1979-05-27",
                                words,
                                "\"\\u0000\"",
                                "\"a\\u001b[2Jb\"",
                                "[[[]]]",
                                "{a = {b = 1}}",
                                "../../up",
                                "/dev/null"};
  const std::set<std::string> before = files();
  int valid = 0, refused = 0;
  for (const KeyInfo& key : all_keys())
    for (const std::string& value : values) {
      const std::string message = said(key.name, value);
      expect_clean(message, key.name, value);
      ++(message.empty() ? valid : refused);
    }
  EXPECT_EQ(files(), before);
  EXPECT_GT(valid, 50);
  EXPECT_GT(refused, 500);
}

TEST_F(Hostile, SectionsThatAreNoTablesAreSaid) {
  for (const char* section : {"model", "data", "train", "optimizer", "parallel", "checkpoint", "log", "none"})
    for (const char* value : {"1", "[]", "\"x\"", "{}", "nan", "[{}]"})
      expect_clean(said(section, value), section, value);
}

TEST_F(Hostile, ManyMistakesAreAShortMessage) {
  std::string toml = "[train]\n";
  for (int i = 0; i < 20000; ++i) toml += fmt::format("key{} = {}\n", i, i);
  toml += std::string(100000, 'k') + " = 1\n";
  try {
    parse_run(toml, "run.toml");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.faults().size(), 20001u);
    EXPECT_LT(std::string(e.what()).size(), 40000u);
  }
}

TEST_F(Hostile, ANulIsNoPartOfAName) {
  EXPECT_EQ(said("checkpoint.export", "\"a\\u0000b\""),
            "[command line] key 'checkpoint.export' holds a NUL, which ends names of files; hint: leave it out");
}

}  // namespace
}  // namespace stretto
