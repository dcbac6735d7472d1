// The text that the default run trains on is what its script makes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "stretto/formats/mapped_file.h"
#include "support/files.h"

namespace stretto {
namespace {

TEST(Corpus, IsPlainTextOfTheRightSize) {
  const MappedFile tales(std::string(STRETTO_SOURCE) + "/examples/data/tales.txt");
  EXPECT_GT(tales.text().size(), 300'000u);
  EXPECT_TRUE(std::all_of(tales.text().begin(), tales.text().end(),
                          [](char c) { return c == '\n' || (c >= ' ' && c < 0x7f); }));
}

TEST(Corpus, IsWhatItsScriptMakes) {
  if (std::system("python3 -c pass >/dev/null 2>&1") != 0) GTEST_SKIP() << "needs python3";
  test::Folder dir;
  const std::string source = STRETTO_SOURCE;
  ASSERT_EQ(std::system(("python3 '" + source + "/scripts/make_corpus' '" + (dir / "tales").string() + "'").c_str()),
            0);
  EXPECT_TRUE(MappedFile(dir / "tales").text() == MappedFile(source + "/examples/data/tales.txt").text());
}

}  // namespace
}  // namespace stretto
