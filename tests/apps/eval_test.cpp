#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <sstream>

#include "support/command.h"
#include "support/files.h"

namespace stretto::test {
namespace {

using testing::HasSubstr;

struct Numbers {
  double loss = 0, perplexity = 0, bits_per_byte = 0;
  long tokens = 0;
};
Numbers numbers(const Result& r) {
  EXPECT_EQ(r.code, 0) << r.error;
  std::istringstream lines(r.out);
  std::string head;
  std::getline(lines, head);
  EXPECT_EQ(head, "loss\tperplexity\tbits_per_byte\ttokens\tseconds");
  Numbers n;
  lines >> n.loss >> n.perplexity >> n.bits_per_byte >> n.tokens;
  return n;
}

const char* tiny_run =
    "train --data.path=text.txt --data.validation=0.5 --train.steps=20 --train.batch=4 --train.validate_batches=100 "
    "--model.layers=2 --model.width=32 --model.heads=2 --model.context=16 --model.vocab=256 --optimizer.lr=1e-2 "
    "--log.dir=run";

// Half of the text is held out and is evaluated by training itself.
TEST(EvalCommand, IsWhatTrainingSaysOfTheSameText) {
  Folder folder;
  std::string text, held_out;
  for (int i = 0; i < 64; ++i) text += "to be, or not to";
  for (int i = 0; i < 64; ++i) held_out += "not to be, or to";
  folder.write("text.txt", text + held_out);
  folder.write("held_out.txt", held_out);
  const Result train = stretto(tiny_run, folder.str());
  ASSERT_EQ(train.code, 0) << train.error;
  const auto at = train.out.rfind("validation loss ");
  ASSERT_NE(at, std::string::npos) << train.out;
  const double said = std::stod(train.out.substr(at + 16));
  const Numbers n = numbers(stretto("eval run --data held_out.txt --plain", folder.str()));
  EXPECT_NEAR(n.loss, said, 1e-5);
  EXPECT_NEAR(n.perplexity, std::exp(n.loss), 1e-9 * n.perplexity);
  EXPECT_NEAR(n.bits_per_byte, n.loss / std::log(2), 1e-9) << "a token is a byte";
  EXPECT_EQ(n.tokens, 1008) << "63 rows of 16: a row needs the token after it";
  for (const char* layout : {"--parallel.data=2", "--parallel.pipe=2", "--parallel.tensor=2", "--batch=3"})
    EXPECT_NEAR(numbers(stretto(std::string("eval run --data held_out.txt --plain ") + layout, folder.str())).loss,
                n.loss, 1e-6)
        << layout;
}

TEST(EvalCommand, ExpertsMayLieOnSeveralRanks) {
  Folder folder;
  std::string text;
  for (int i = 0; i < 64; ++i) text += "to be, or not to";
  folder.write("text.txt", text);
  const Result train =
      stretto(std::string(tiny_run) + " --model.family=mixtral --model.experts=4 --model.ff=32", folder.str());
  ASSERT_EQ(train.code, 0) << train.error;
  const std::string eval = "eval run --data text.txt --plain";
  const double loss = numbers(stretto(eval, folder.str())).loss;
  for (const char* layout : {" --parallel.expert=2", " --parallel.pipe=2 --parallel.expert=4"})
    EXPECT_NEAR(numbers(stretto(eval + layout, folder.str())).loss, loss, 1e-6) << layout;
}

TEST(EvalCommand, RefusesWhatItCannotEvaluate) {
  Folder folder;
  folder.write("text.txt", std::string(4000, 'x'));
  folder.write("short.txt", "x");
  ASSERT_EQ(stretto(tiny_run, folder.str()).code, 0);
  const auto refused = [&](const std::string& arguments) {
    const Result r = stretto("eval " + arguments, folder.str());
    EXPECT_TRUE(r.code == 1 || r.code == 2) << r.code;
    EXPECT_EQ(r.out, "");
    return r.error;
  };
  EXPECT_THAT(refused("run --data nowhere.txt"), HasSubstr("there is no file 'nowhere.txt'"));
  EXPECT_THAT(refused("run --data short.txt"), HasSubstr("short.txt"));
  EXPECT_THAT(refused("nowhere --data text.txt"), HasSubstr("is not a directory"));
  EXPECT_THAT(refused("run"), HasSubstr("--data"));
  EXPECT_THAT(refused("run --data text.txt --train.steps=3"), HasSubstr("--train.steps=3"));
  EXPECT_THAT(refused("run --data text.txt --parallel.tensor=3"), HasSubstr("tensor"));
  EXPECT_THAT(refused("run --data text.txt --parallel.expert=2"), HasSubstr("family 'gpt2' has no experts"));
}

TEST(EvalCommand, TextNeedsATokenizer) {
  Folder folder;
  folder.write("text.txt", std::string(4000, 'x'));
  std::string run = tiny_run;
  run.replace(run.find("vocab=256"), 9, "vocab=300");
  ASSERT_EQ(stretto(run, folder.str()).code, 0);
  const Result r = stretto("eval run --data text.txt", folder.str());
  EXPECT_EQ(r.code, 1);
  EXPECT_THAT(r.error, HasSubstr("there is no tokenizer beside its weights; hint: give --tokenizer FILE"));
}

// PEFT saves no tokenizer beside an adapter.
TEST(EvalCommand, AnAdaptersTokenizerMayLieBesideItsModel) {
  Folder folder;
  std::string text;
  for (int i = 0; i < 128; ++i) text += "to be, or not to";
  folder.write("text.txt", text);
  const auto must = [&](const std::string& arguments) {
    const Result r = stretto(arguments, folder.str());
    ASSERT_EQ(r.code, 0) << arguments << "\n" << r.error;
  };
  must("data train-bpe text.txt --vocab 260 --out tokenizer.json");
  std::string run = tiny_run;
  must(run.replace(run.find("vocab=256"), 9, "vocab=260") + " --data.tokenizer=tokenizer.json");
  must("convert run base");
  must(
      "train --model.from=base --data.path=text.txt --train.steps=2 --train.batch=4 --finetune.lora.rank=2 "
      "--checkpoint.export=merged --checkpoint.export_adapter=adapter --log.dir=tuned");
  std::filesystem::remove(folder / "adapter/tokenizer.json");
  const Numbers of_adapter = numbers(stretto("eval adapter --data text.txt --plain", folder.str()));
  EXPECT_EQ(of_adapter.loss, numbers(stretto("eval merged --data text.txt --plain", folder.str())).loss);
}

}  // namespace
}  // namespace stretto::test
