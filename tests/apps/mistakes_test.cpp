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
  EXPECT_THAT(said("check --model.from=gpt2"),
              AllOf(HasSubstr("hint: name a Hugging Face directory, or its config.json; "),
                    HasSubstr("; a model of the Hub is fetched by: hf download gpt2 --local-dir gpt2")));
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
  folder.write("runs/new/config.toml", "");
  EXPECT_THAT(said("generate runs/new --prompt a"),
              HasSubstr("is a run that has no checkpoint yet; hint: a run writes"));
  EXPECT_THAT(said("generate runs/b --prompt a"), HasSubstr("hint: give a Hugging Face directory, a checkpoint or"));
}

TEST_F(Mistakes, ATokenizerThatIsNotThere) {
  folder.write("a.txt", "Once upon a time\n");
  EXPECT_THAT(said("data tokenize a.txt --tokenizer none.json --out a.bin"),
              HasSubstr("[none.json] cannot be opened: No such file or directory; hint: names are relative to"));
}

TEST_F(Mistakes, AFieldOfPlainText) {
  folder.write("a.txt", "Once upon a time\n");
  const std::string wanted =
      "[data] the field 'body' is asked for, and only lines of .jsonl files have fields: 'a.txt'";
  EXPECT_THAT(said("data tokenize a.txt --key body --tokenizer bytes --out a.bin"), StartsWith(wanted));
  EXPECT_THAT(said("data train-bpe a.txt --key body --vocab 300 --out a.json"), StartsWith(wanted));
  EXPECT_FALSE(fs::exists(folder / "a.bin"));
}

// What can be known at once is not found out after minutes of work.
TEST_F(Mistakes, AreFoundBeforeTheWork) {
  folder.write("empty.txt", "");  // would be the next mistake
  EXPECT_THAT(said("data train-bpe empty.txt --vocab 100 --out a.json"),
              HasSubstr("257 is the least (256 bytes and 1 special token), 16777216 the most; hint: 1028 is usual"));
  EXPECT_THAT(said("data train-bpe empty.txt --vocab 300 --out none/a.json"),
              HasSubstr("there is no directory 'none'"));
  const std::string plan = "plan --model.preset=llama-tiny --cluster none.toml ";
  EXPECT_THAT(said(plan + "-o best.json", 2), HasSubstr("hint: -o best.toml: the page is written beside it; --json"));
  EXPECT_THAT(said(plan + "-o none/best.toml"), HasSubstr("there is no directory 'none'"));
  EXPECT_THAT(said(plan + "--measured none.tsv", 2), HasSubstr("--measured is for the page, and none is written"));
  EXPECT_THAT(said(plan + "--measured none.tsv -o best.toml"), HasSubstr("[none.tsv] cannot be opened"));
  EXPECT_THAT(said("calibrate none.toml --measured none.tsv -o none/c.toml"), HasSubstr("no directory 'none'"));
}

// It would be touched before the first step: what the machine does not have ends the process, or another one.
TEST_F(Mistakes, MoreMemoryThanThereIs) {
  folder.write("a.txt", std::string(1000, 'a'));
  const std::string model = " --model.preset=llama-tiny --model.context=64 --data.path=a.txt ";
  EXPECT_THAT(said("verify" + model + "--train.batch=10000000"), StartsWith("[memory] the run needs "));
  EXPECT_EQ(stretto("train -q" + model + "--train.steps=1 --train.batch=1 --log.dir=run", folder.str()).code, 0);
  EXPECT_THAT(said("eval run --data a.txt --batch 10000000"), HasSubstr("hint: fewer rows at a time: --batch"));
}

TEST_F(Mistakes, SizesOfFiles) {
  for (const char* size : {"0", "10XB", "1e30", "-5GB", "99999999999999999999", "99999999999TB", "GB"})
    EXPECT_THAT(said(std::string("convert a b --shard-size ") + size, 2),
                HasSubstr("is not a size such as 500MB or 5GB"));
}

// Damaged files of every kind end with what to do.
TEST_F(Mistakes, DamagedFilesHaveAHint) {
  folder.write("hf/config.json", "{\"model_type\": ");
  EXPECT_THAT(said("check --model.from=hf"), HasSubstr("; hint: is the file whole?"));
  folder.write("hf/config.json", "\xff\xfe{}");
  EXPECT_THAT(said("check --model.from=hf"), HasSubstr("is not UTF-8: byte 0 is 0xff; hint: is the file whole?"));
  folder.write("run.toml", "[model]\nlayers 3\n");
  EXPECT_THAT(said("check run.toml"), HasSubstr("; hint: a line of TOML is [section], key = value or # a comment"));
  folder.write("a.txt", "Once upon a time\n");
  folder.write("t.json", "{\"version\": \"1.0\"}");
  EXPECT_THAT(said("data tokenize a.txt --tokenizer t.json --out a.bin"),
              HasSubstr("has no 'model' and so is no tokenizer; hint: is it a tokenizer that"));
  folder.write("s.csv", "{\n\"a\": 1,\n\"b\": 2\n}\n");
  EXPECT_THAT(said("check --schedule s.csv"),
              StartsWith("[s.csv] is no schedule: none of its cells is an action, the first wrong one is on line 1"));
  folder.write("d.toml", "memory = \n");
  folder.write("c.toml", "device = \"d.toml\"\n");
  EXPECT_THAT(said("simulate --model.preset=llama-tiny --cluster c.toml"),
              StartsWith("[c.toml:1] key 'device': d.toml:1: column 10, key-value pair: expected value"));
  folder.write("c.toml", "ranks_per_node = 0\n");
  EXPECT_THAT(said("simulate --model.preset=llama-tiny --cluster c.toml"),
              HasSubstr("; hint: a cluster file has flops"));
  folder.write("e.toml", "");
  folder.write("c.toml", "device = \"e.toml\"\n");
  EXPECT_THAT(said("simulate --model.preset=llama-tiny --cluster c.toml"),
              HasSubstr("; hint: docs/costs.md says what"));
  folder.write("t.bin", "");
  EXPECT_THAT(said("data info t.bin"), HasSubstr("is empty; hint: the file is damaged or of another format"));
  EXPECT_THAT(said("data info hf"), HasSubstr("is a directory, not a file; hint: name a file in it"));
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
  // A value out of range: what the key is, and what holds without it.
  EXPECT_EQ(said("check --model.preset=llama-tiny --model.layers=0"),
            "[command line] key 'model.layers' is 0 but must be a whole number from 1 to 10000; hint: how many layers; "
            "4 if it is "
            "left out\n");
  EXPECT_THAT(said("check --parallel.link=fast"), HasSubstr("must be a table; hint: its keys: latency, bandwidth"));
  EXPECT_THAT(
      said("plan --cluster a.toml --plan.pipe=0"),
      HasSubstr("key 'plan.pipe' is 0 but must be a whole number from 1 to 1024; hint: sizes of parallel.pipe"));
}

}  // namespace
}  // namespace stretto::test
