#include "stretto/base/error.h"

#include <gtest/gtest.h>

namespace stretto {
namespace {

TEST(Error, SaysWhereWhatAndHint) {
  const Error e = Error("contract", "dim '{}' is {}", "ff", 2048).hint("rename {}", "ff");
  EXPECT_STREQ(e.what(), "[contract] dim 'ff' is 2048; hint: rename ff");
  EXPECT_EQ(e.exit_code(), 1);
}

TEST(Error, CarriesContextAndKind) {
  Error e = Error("gelu", "not finite").as(Error::Kind::run);
  e.within("rank 3, stage 1");
  EXPECT_STREQ(e.what(), "[gelu] not finite (rank 3, stage 1)");
  EXPECT_EQ(e.exit_code(), 3);
}

TEST(Error, RefuseThrowsAllFaults) {
  EXPECT_NO_THROW(refuse({}));
  try {
    refuse({fault("a", "h", "x {}", 1), fault("b", "", "y")});
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "[a] x 1; hint: h\n[b] y");
  }
}

TEST(Error, SaysWhatItIsAbout) {
  const Error one = Error("stages", "too many").about({"parallel.stages", "parallel.pipe"}).hint("fewer");
  EXPECT_EQ(one.faults()[0].subjects, (std::vector<std::string>{"parallel.stages", "parallel.pipe"}));
  EXPECT_STREQ(one.what(), "[stages] too many; hint: fewer");
  const Error two = Error({fault("a", "", "x").about({"train.exact"}), fault("b", "", "y")}).about({"parallel.mesh"});
  EXPECT_EQ(two.faults()[0].subjects, std::vector<std::string>{"train.exact"});
  EXPECT_EQ(two.faults()[1].subjects, std::vector<std::string>{"parallel.mesh"});
}

TEST(Error, IsBoundedWhateverIsInIt) {
  const std::string name(100000, 'n');
  const Error longest("run.toml:3", "key '{}' is unknown", name);
  EXPECT_LT(std::string(longest.what()).size(), 500u);
  EXPECT_TRUE(std::string(longest.what()).ends_with("nnn' is unknown")) << longest.what();
  std::string words;
  for (int i = 0; i < 100000; ++i) words += "word ";
  EXPECT_LT(std::string(Error("a", "{}", words).what()).size(), 10000u);
  EXPECT_LT(std::string(Error(name, "x").hint("{}", words).what()).size(), 10000u);
  std::vector<Fault> many(100000, fault("run.toml:3", "", "key 'x' is unknown"));
  const std::string text = Error(many).what();
  EXPECT_LT(text.size(), 3000u);
  EXPECT_TRUE(text.ends_with("\nand 99950 more faults like these")) << text;
  EXPECT_LT(std::string(Error(std::vector<Fault>(60, fault("a", words, "{}", words))).what()).size(), 60000u);
}

TEST(Error, ShowsControlCharactersInsteadOfSendingThem) {
  using namespace std::string_view_literals;
  const Error e("a\0b"sv, "{}", "\x1b[2J\r\x7f\xc2\x9b \xc3\xa4\tx\ny"sv);
  EXPECT_STREQ(e.what(), "[a\\x00b] \\x1b[2J\\x0d\\x7f\\x9b \xc3\xa4\tx\ny");
}

TEST(Error, CutsBetweenCharacters) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "\xe2\x82\xac";  // a euro sign
  const std::string said = Error("a", "{}", text).what();
  EXPECT_NE(said.find("\xe2\x82\xac...("), said.npos) << said;
  EXPECT_NE(said.find(")...\xe2\x82\xac"), said.npos) << said;
}

TEST(Error, BrokenInvariantIsABug) {
  try {
    STRETTO_ASSERT(1 == 2, "arithmetic");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), Error::Kind::bug);
    EXPECT_EQ(e.exit_code(), 3);
  }
}

}  // namespace
}  // namespace stretto
