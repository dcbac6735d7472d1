// Mistakes about files and directories: what was named is something else, and the message says what to write instead.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "support/command.h"
#include "support/files.h"

namespace stretto::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class Mistakes : public testing::Test {
 protected:
  std::string said(const std::string& arguments, int code = 1) {
    const Result r = stretto(arguments, folder.str());
    EXPECT_EQ(r.code, code) << arguments << "\n" << r.out << r.error;
    EXPECT_EQ(r.out, "") << arguments;
    return r.error;
  }
  const Folder folder;
};

TEST_F(Mistakes, ARunThatIsNotThere) {
  EXPECT_THAT(said("train nowhere.toml"), StartsWith("[nowhere.toml] cannot be opened: No such file or directory; "
                                                     "hint: names are relative to the current directory, /"));
  EXPECT_THAT(said("check gpt2"), HasSubstr("hint: gpt2 is a preset: --model.preset=gpt2"));
  EXPECT_THAT(said("check /nowhere.toml"), Not(HasSubstr("current directory")));
}

// An installed copy has no examples in the current directory.
TEST_F(Mistakes, NoDataIsNamed) {
  EXPECT_EQ(
      said("train"),
      "[data] there is no file 'examples/data/tales.txt', the example that is taken when data.path is not given; hint: "
      "--data.path=FILE names a text to train on\n");
}

TEST_F(Mistakes, ADirectoryInPlaceOfARun) {
  folder.write("runs/a/config.toml", "");
  folder.write("hf/config.json", "{}");
  fs::create_directories(folder / "empty");
  EXPECT_THAT(said("train runs/a"), HasSubstr("[runs/a] is a directory, not a file; hint: to go on with its run: "
                                              "--resume=runs/a; its settings are in runs/a/config.toml"));
  EXPECT_THAT(said("train hf"), HasSubstr("hint: to train its model: --model.from=hf"));
  EXPECT_THAT(said("train empty"), HasSubstr("hint: a run is a TOML file"));
}

TEST_F(Mistakes, TextInPlaceOfARun) {
  folder.write("tale.txt", "Once upon a time\n");
  EXPECT_THAT(said("train tale.txt"),
              HasSubstr("hint: a run is a TOML file; to train on a text: --data.path=tale.txt"));
  folder.write("run.toml", "[model\n");
  EXPECT_THAT(said("train run.toml"), Not(HasSubstr("--data.path")));
}

TEST_F(Mistakes, AModelThatIsNoDirectoryHere) {
  EXPECT_THAT(said("check --model.from=gpt2"), HasSubstr("hint: name a Hugging Face directory, or its config.json; a "
                                                         "model of the Hub is fetched by: hf download gpt2 --local-dir "
                                                         "gpt2"));
  EXPECT_THAT(said("check --model.from=some/Model-1B"), HasSubstr("hf download some/Model-1B --local-dir Model-1B"));
  EXPECT_THAT(said("check --model.from=../a/b/c"), Not(HasSubstr("hf download")));
}

TEST_F(Mistakes, WeightsOfPickle) {
  folder.write("hf/config.json", R"({"model_type": "gpt2"})");
  folder.write("hf/pytorch_model.bin", "PK");
  EXPECT_THAT(said("generate hf --prompt a"),
              HasSubstr("hint: pytorch_model.bin is not read: load the model in transformers and save_pretrained it"));
}

TEST_F(Mistakes, AConfigWithoutItsType) {
  folder.write("hf/config.json", R"({"hidden_size": 64, "num_hidden_layers": 4})");
  EXPECT_EQ(
      said("check --model.from=hf"),
      "[command line] key 'model.from': hf/config.json:1: key 'model_type' is missing; hint: is it the config.json of "
      "a model that transformers has saved?\n");
}

TEST_F(Mistakes, DirectoriesThatAreNoModels) {
  folder.write("runs/a/checkpoints/x", "");
  folder.write("runs/b/c/x", "");
  EXPECT_THAT(said("generate runs --prompt a"), HasSubstr("hint: did you mean runs/a?"));
  EXPECT_THAT(said("generate runs/b --prompt a"), HasSubstr("hint: give a Hugging Face directory, a checkpoint or"));
}

TEST_F(Mistakes, ATokenizerThatIsNotThere) {
  folder.write("a.txt", "Once upon a time\n");
  EXPECT_THAT(said("data tokenize a.txt --tokenizer none.json --out a.bin"),
              HasSubstr("[none.json] cannot be opened: No such file or directory; hint: names are relative to"));
}

TEST_F(Mistakes, OptionsThatAreForSomethingElse) {
  EXPECT_THAT(said("eval runs/a --data a.txt --model.layers=3", 2),
              StartsWith("[eval] unexpected argument '--model.layers=3'; hint: of the settings only those of "
                         "[parallel] are for this command"));
  EXPECT_THAT(said("generate runs/a --ids 1,,2", 2), HasSubstr("--ids: '1,,2' is not a list of whole numbers"));
  EXPECT_THAT(said("generate runs/a --ids abc", 2), HasSubstr("--ids: 'abc' is not a list of whole numbers"));
  EXPECT_THAT(said("bench nope", 2), StartsWith("[bench] there is no command 'nope'; hint: there are comm, device"));
  EXPECT_THAT(said("data tokenise", 2),
              StartsWith("[data] there is no command 'tokenise'; hint: did you mean 'tokenize'?"));
  EXPECT_THAT(said("show", 2), StartsWith("[show] it is not said what to show; hint: stretto show RUN.toml WHAT"));
  EXPECT_THAT(said("plan --model.layers=2 --cluster a.toml -o best.html", 2),
              HasSubstr("hint: -o best.toml: the page"));
  EXPECT_THAT(said("plan --cluster a.toml --plan.pipe=0"),
              HasSubstr("key 'plan.pipe' is 0 but must be \"auto\" or a list of whole numbers from 1 to 1024"));
}

}  // namespace
}  // namespace stretto::test
