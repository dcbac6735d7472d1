// Runs whose files change while they are not running.
#include "stretto/run/inner/same_data.h"

#include <gmock/gmock.h>

#include "stretto/formats/fields.h"
#include "stretto/run/loop.h"
#include "support/files.h"

namespace stretto {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format("line {} of it\n", i * 7 % 100);
  return text;
}

struct TextRun {
  // What it has said until now.
  std::string run(int steps, const std::optional<std::string>& resume = {}) const {
    const RunConfig config =
        read_run("", {"--model.layers=1", "--model.width=16", "--model.heads=2", "--model.context=16",
                      "--train.batch=4", fmt::format("--train.steps={}", steps),
                      "--data.path=" + (folder / "a.txt").string(), "--log.dir=" + (folder / "run").string()});
    std::FILE* out = std::fopen("/dev/null", "w");
    train(config, out, Verbosity::normal, resume);
    std::fclose(out);
    return test::text_of(folder / "run/log.txt");
  }
  std::string hash() const {
    return std::get<std::string>(read_toml_file(folder / "run/config.toml").find("data")->find("hash")->value);
  }
  test::Folder folder;
};

TEST(SameData, ARunSaysWhenItIsNot) {
  const TextRun r;
  r.folder.write("a.txt", lines(200));
  EXPECT_THAT(r.run(1), Not(HasSubstr("data.hash")));
  const std::string first = r.hash();
  EXPECT_THAT(r.run(2, ""), Not(HasSubstr("data.hash")));
  EXPECT_EQ(r.hash(), first);
  r.folder.write("a.txt", lines(150));
  const std::string said = r.run(3, "");
  EXPECT_THAT(said, HasSubstr("note: data.hash is " + r.hash() + " and was " + first + ": what is trained on, "));
  EXPECT_NE(r.hash(), first);
  std::string log = r.run(4, "");
  log.erase(0, said.size());
  EXPECT_THAT(log, Not(HasSubstr("data.hash"))) << "it has been said";
}

}  // namespace
}  // namespace stretto
