// What root never sees: files and directories that may not be read. All other tests run as root here.
#include <gmock/gmock.h>

#include <filesystem>

#include "support/child.h"
#include "support/command.h"
#include "support/files.h"

namespace stretto::test {
namespace {

namespace fs = std::filesystem;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

class Nobody : public testing::Test {
 protected:
  void SetUp() override {
    if (!can_become_nobody()) GTEST_SKIP() << "only root can become a user without rights";
    folder_.write("text.txt", std::string(20000, 'x'));
    fs::copy(std::string(STRETTO_TEST_DATA) + "/hf/gpt2/model", folder_ / "hf");
    ASSERT_EQ(stretto("train " + run_text + " --log.dir=run", folder_.str()).code, 0);
    ASSERT_EQ(stretto("data train-bpe text.txt --vocab 260 --out tokenizer.json", folder_.str()).code, 0);
    ASSERT_EQ(stretto("data tokenize text.txt --tokenizer bytes --out tokens.bin", folder_.str()).code, 0);
    // To be looked at under any name but these by everybody.
    shell("chmod -R a+rwX . && chmod 0777 .", folder_.str());
    fs::create_directory(folder_ / "closed");
    for (const char* name : {"hf", "run", "text.txt", "tokens.bin", "tokenizer.json"})
      fs::copy(folder_ / name, folder_ / ("closed/" + std::string(name)), fs::copy_options::recursive);
    fs::permissions(folder_ / "closed", fs::perms(0700));
    fs::create_symlink("self", folder_ / "self");
  }

  // Neither a crash nor "this is a bug": the path and the reason, as wrong input.
  void refused(const std::string& arguments, const std::string& reason) const {
    const Result r =
        shell("setpriv --reuid 61234 --regid 61234 --clear-groups timeout 60 '" + binaries() + "/stretto' " + arguments,
              folder_.str());
    EXPECT_EQ(r.code, 1) << arguments << "\n" << r.error;
    EXPECT_THAT(r.error, HasSubstr(reason)) << arguments;
    EXPECT_THAT(r.error, Not(HasSubstr("[internal]"))) << arguments;
  }

  const std::string run_text =
      "--data.path=text.txt --model.layers=1 --model.width=16 --model.heads=1 --model.context=16 --train.batch=2 "
      "--train.steps=2";
  Folder folder_;
};

TEST_F(Nobody, WhatMayNotBeRead) {
  const std::string denied = "Permission denied", run = "train " + run_text + " --log.dir=new ";
  for (const std::string arguments :
       {"generate closed/run --prompt x", "generate closed/hf --ids 1", "generate closed --prompt x",
        "convert closed/run out", "convert closed out", "convert run closed/out", "data info closed/tokens.bin",
        "data decode closed/tokens.bin --tokenizer bytes", "data decode tokens.bin --tokenizer closed/tokenizer.json",
        "data tokenize closed/text.txt --tokenizer bytes --out x.bin",
        "data train-bpe closed/text.txt --vocab 260 "
        "--out x.json",
        "train --resume=closed/run", "train closed/run/config.toml", "check closed/run/config.toml"})
    refused(arguments, denied);
  for (const char* more : {"--model.from=closed/hf", "--data.path=closed/text.txt", "--data.path=closed/tokens.bin",
                           "--data.tokenizer=closed/tokenizer.json", "--log.dir=closed/run", "--log.dir=closed/new",
                           "--checkpoint.export=closed/x", "--resume=closed/run/checkpoints/step-00000002"})
    refused(run + more, denied);
  fs::permissions(folder_ / "run/checkpoints", fs::perms(0700));
  refused("train --resume=run", denied);
  refused("generate run --prompt x", denied);
}

TEST_F(Nobody, LinksToThemselvesAndNamesThatAreTooLong) {
  const std::string longest(300, 'n'), run = "train " + run_text + " --log.dir=new ";
  for (const auto& [name, reason] : {std::pair<std::string, std::string>{"self", "Too many levels of symbolic links"},
                                     {longest, "File name too long"}}) {
    for (const std::string before :
         {"generate --prompt x ", "data info ", "data decode tokens.bin --tokenizer ", "check ", "train --resume="})
      refused(before + name, reason);
    for (const std::string key : {"--model.from=", "--data.path=", "--data.tokenizer=", "--log.dir="})
      refused(run + key + name, reason);
  }
}

}  // namespace
}  // namespace stretto::test
