// Completion scripts, asked as a shell asks them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "support/command.h"
#include "support/files.h"

namespace stretto::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

// What bash offers after these words; the last one is begun.
std::vector<std::string> offered(const std::string& words) {
  const Folder folder;
  folder.write("stretto.bash", stretto("completion bash", STRETTO_SOURCE).out);
  const Result r =
      shell("bash -c 'source ./stretto.bash; COMP_WORDS=(" + words +
                "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _stretto; printf \"%s\\n\" \"${COMPREPLY[@]}\"'",
            folder.str());
  EXPECT_EQ(r.code, 0) << r.error;
  std::vector<std::string> all;
  std::istringstream lines(r.out);
  for (std::string line; std::getline(lines, line);)
    if (!line.empty()) all.push_back(line);
  return all;
}

TEST(Completion, CommandsAndTheirOptions) {
  EXPECT_THAT(offered("stretto tr"), ElementsAre("train"));
  EXPECT_THAT(offered("stretto train --qu"), ElementsAre("--quiet"));
  EXPECT_THAT(offered("stretto bench c"), ElementsAre("comm"));
  EXPECT_THAT(offered("stretto train ru"), IsEmpty());  // a file
  EXPECT_THAT(offered("stretto eval runs/a --da"), ElementsAre("--data", "--date"));
  EXPECT_THAT(offered("stretto train --nothing"), IsEmpty());
}

TEST(Completion, KeysSectionBySectionAndTheirValues) {
  EXPECT_THAT(offered("stretto train run.toml --mod"), ElementsAre("--model."));
  EXPECT_THAT(offered("stretto train run.toml --model.lay"), ElementsAre("--model.layers="));
  EXPECT_THAT(offered("stretto launch -n 2 -- train --train.mic"), ElementsAre("--train.microbatches="));
  EXPECT_THAT(offered("stretto launch -n 2 train --train.mic"), ElementsAre("--train.microbatches="));
  EXPECT_THAT(offered("stretto train --parallel.schedule = zb-h"), ElementsAre("zb-h1", "zb-h2"));
  EXPECT_THAT(offered("stretto train --train.dtype ="), Contains("bf16"));
  EXPECT_THAT(offered("stretto train --train.exact = t"), ElementsAre("true"));
  EXPECT_THAT(offered("stretto train --data.path = ex"), IsEmpty());  // files, by the shell itself
  EXPECT_THAT(offered("stretto eval runs/a --model.l"), IsEmpty());   // the model is what it is
  EXPECT_THAT(offered("stretto eval runs/a --parallel.da"), ElementsAre("--parallel.data="));
}

TEST(Completion, ZshReadsItsScript) {
  if (shell("command -v zsh", "/").code != 0) GTEST_SKIP() << "there is no zsh here";
  const Folder folder;
  folder.write("_stretto", stretto("completion zsh", STRETTO_SOURCE).out);
  const Result r = shell("zsh -n _stretto", folder.str());
  EXPECT_EQ(r.code, 0) << r.error;
}

TEST(Completion, OtherShellsAreRefused) {
  const Result r = stretto("completion fish", STRETTO_SOURCE);
  EXPECT_EQ(r.code, 2);
  EXPECT_THAT(r.error, testing::StartsWith("[completion] SHELL: 'fish' is none of bash, zsh"));
}

}  // namespace
}  // namespace stretto::test
