// Runs that read token files and mixtures.
#include <gmock/gmock.h>

#include <cstdio>
#include <memory>

#include "stretto/base/error.h"
#include "stretto/formats/token_file.h"
#include "stretto/run/loop.h"
#include "support/files.h"

namespace stretto {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Data : public testing::Test {
 protected:
  Data() {
    for (int i = 0; i < 3000; ++i) ids_.push_back(i * i % 90 + i % 7);
    for (const auto& [name, format] : {std::pair{"nano", TokenFormat::nanogpt}, std::pair{"llmc", TokenFormat::llmc},
                                       std::pair{"megatron", TokenFormat::megatron}}) {
      TokenFileWriter out(folder_ / (std::string(name) + ".bin"), format, 97);
      out.write(ids_);
      out.commit();
    }
  }

  RunConfig config(std::vector<std::string> overrides) const {
    std::vector<std::string> all{
        "--model.layers=1", "--model.width=16", "--model.heads=2", "--model.context=16",
        "--model.vocab=97", "--train.steps=3",  "--train.batch=4", "--log.dir=" + (folder_ / "run").string()};
    all.insert(all.end(), overrides.begin(), overrides.end());
    return read_run("", all);
  }

  RunSummary run(std::vector<std::string> overrides) const {
    std::filesystem::remove_all(folder_ / "run");
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> out(std::tmpfile(), std::fclose);
    return train(config(std::move(overrides)), out.get(), Verbosity::quiet);
  }

  std::string file(const std::string& name) const { return (folder_ / name).string(); }

  test::Folder folder_;
  std::vector<std::int32_t> ids_;
};

TEST_F(Data, TheFormatOfTheFileChangesNothing) {
  const RunSummary nano = run({"--data.path=" + file("nano.bin"), "--data.validation=0.1"});
  ASSERT_TRUE(nano.validation_loss);
  for (const char* name : {"llmc.bin", "megatron", "mega*.bin"}) {
    const RunSummary other = run({"--data.path=" + file(name), "--data.validation=0.1"});
    EXPECT_EQ(other.parameters, nano.parameters) << name;
    EXPECT_EQ(other.validation_loss, nano.validation_loss) << name;
  }
}

TEST_F(Data, AMixtureTrains) {
  const std::string mixture = "--data.mixture=[{path=\"" + file("nano.bin") + "\", weight=0.9}, {path=\"" +
                              file("llmc.bin") + "\", weight=0.1}]";
  EXPECT_THAT(check_run(config({mixture})),
              AllOf(HasSubstr("data     90% "), HasSubstr("; 10% "), HasSubstr("; 6000 tokens to train on")));
  EXPECT_EQ(run({mixture, "--train.microbatches=2"}).parameters,
            run({mixture, "--train.microbatches=2", "--parallel.pipe=2"}).parameters);
}

TEST_F(Data, DocumentsChangeWhatIsLearnedAndNotWhoDoesIt) {
  TokenFileWriter out(folder_ / "documents.bin", TokenFormat::megatron, 97);
  for (std::size_t i = 0; i < ids_.size(); i += 6) {
    out.write(std::span(ids_).subspan(i, std::min<std::size_t>(6, ids_.size() - i)));
    out.end_document();
  }
  out.commit();
  const std::vector<std::string> plain{"--data.path=" + file("documents.bin"), "--train.microbatches=2",
                                       "--data.validation=0.1"};
  std::vector<std::string> apart = plain, piped;
  apart.push_back("--data.documents=true");
  piped = apart;
  piped.push_back("--parallel.pipe=2");
  const RunSummary serial = run(apart), parallel = run(piped);
  EXPECT_EQ(serial.parameters, parallel.parameters);
  EXPECT_EQ(serial.validation_loss, parallel.validation_loss);
  EXPECT_NE(serial.parameters, run(plain).parameters);
}

TEST_F(Data, MistakesAreNamedBeforeAnythingIsWritten) {
  try {
    run({"--data.path=" + file("llmc.bin"), "--model.vocab=90"});
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), AllOf(HasSubstr("[" + file("llmc.bin") + "] token "), HasSubstr("the vocabulary is 90")));
    EXPECT_EQ(e.exit_code(), 1);
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run"));
}

}  // namespace
}  // namespace stretto
