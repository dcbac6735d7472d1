// Mistakes on the command line end with code 2 and say what is wrong in the form of all other messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "support/command.h"
#include "support/files.h"

namespace stretto::test {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string said(const std::string& arguments) {
  const Result r = stretto(arguments, STRETTO_SOURCE);
  EXPECT_EQ(r.code, 2) << arguments << "\n" << r.out << r.error;
  EXPECT_EQ(r.out, "") << arguments;
  return r.error;
}

TEST(Usage, AValueThatIsNone) {
  EXPECT_EQ(said("check --schedule 1f1b --actors 0"),
            "[check] --actors: '0' is not a whole number of at least 1; hint: see stretto check --help\n");
  EXPECT_THAT(said("check --schedule 1f1b --actors abc"), HasSubstr("'abc' is not a whole number of at least 1"));
  EXPECT_THAT(said("check --schedule 1f1b --actors 100000000000"), HasSubstr("from 1 to 2147483647"));
  EXPECT_THAT(said("check --schedule 1f1b --capacity -1"), HasSubstr("'-1' is not a whole number of at least 0"));
  EXPECT_THAT(said("check --schedule 1f1b --memory nan"), HasSubstr("--memory: 'nan' is not a number above 0"));
  EXPECT_THAT(said("verify --tolerance -1"), StartsWith("[verify] --tolerance: '-1' is not a number of at least 0"));
  EXPECT_THAT(said("train --rank x"), StartsWith("[train] --rank: 'x' is not a whole number"));
  EXPECT_THAT(said("launch -n 0 -- train"), StartsWith("[launch] --ranks: '0' is not a whole number from 1 to 4096"));
}

TEST(Usage, AWordThatIsNone) {
  EXPECT_EQ(said("check --schedule a.csv --dialect new"),
            "[check] --dialect: 'new' is none of now, old (did you mean 'now'?); hint: see stretto check --help\n");
  EXPECT_THAT(said("launch -n 2 --console=some -- train"), HasSubstr("--console: 'some' is none of first, all"));
  EXPECT_THAT(said("data tokenize a --tokenizer bytes --out b --format nanogtp"),
              StartsWith("[data tokenize] --format: 'nanogtp' is none of nanogpt, "));
}

TEST(Usage, SomethingIsMissing) {
  EXPECT_THAT(said(""), StartsWith("[stretto] no command is given; hint: there are bench, calibrate, check"));
  EXPECT_EQ(said("bench"), "[bench] no command is given; hint: there are comm, device; see stretto bench --help\n");
  EXPECT_EQ(said("generate"), "[generate] DIR is missing; hint: see stretto generate --help\n");
  EXPECT_EQ(said("eval runs/a --dat a.txt"),
            "[eval] unexpected argument '--dat'; hint: did you mean '--data'?; see stretto eval --help\n");
  EXPECT_EQ(said("check --schedule"), "[check] --schedule has no value; hint: see stretto check --help\n");
}

TEST(Usage, TooMuch) {
  EXPECT_THAT(said("train --quiet --verbose"), StartsWith("[train] --quiet and --verbose exclude each other; hint: "));
  EXPECT_THAT(said("check --schedule 1f1b --schedule gpipe"), StartsWith("[check] --schedule is given twice; hint: "));
  EXPECT_EQ(said("train --resum"),
            "[train] unexpected argument '--resum'; hint: did you mean '--resume'?; see "
            "stretto train --help\n");
  EXPECT_THAT(said("train examples/quickstart.toml --train.steps 5"),
              StartsWith("[train] unexpected argument '--train.steps'; hint: write its value after it: "
                         "--train.steps=VALUE"));
  EXPECT_THAT(said("train examples/quickstart.toml --resume runs/a"),
              HasSubstr("hint: did you mean --resume=runs/a?"));
  EXPECT_THAT(said("generate runs/a --chat chat.json"), HasSubstr("hint: did you mean --chat=chat.json?"));
}

TEST(Usage, SettingsWithoutTheirSection) {
  EXPECT_EQ(
      said("train --pipe=2"),
      "[train] unexpected argument '--pipe=2'; hint: did you mean --parallel.pipe=2?; see stretto train --help\n");
  EXPECT_THAT(said("train --lr 3e-4"), StartsWith("[train] unexpected argument '--lr'; hint: did you mean "
                                                  "--optimizer.lr=VALUE?"));
  EXPECT_THAT(said("train --schedule=zb-v"), HasSubstr("--optimizer.schedule or --parallel.schedule=zb-v?"));
  EXPECT_THAT(said("train --micro-batch-size=4"),
              HasSubstr("did you mean --train.microbatches=VALUE, how many there are, not how large they are?"));
  EXPECT_THAT(said("train --bf16=true"), HasSubstr("did you mean --train.dtype=VALUE, whose value is the type: bf16?"));
  EXPECT_THAT(said("train --num_train_epochs=3"), HasSubstr("--train.steps=VALUE, which counts steps, not passes"));
  EXPECT_THAT(said("train --lora_r=8"), HasSubstr("did you mean --finetune.lora.rank=8?"));
  EXPECT_THAT(said("launch --pipe=2 -- train"), Not(HasSubstr("--parallel.pipe")));
}

// What is launched has options of its own, with and without the mark before it.
TEST(Usage, OptionsOfWhatIsLaunched) {
  EXPECT_EQ(said("launch -n 2 --logs logs --pip=2 train"),
            "[launch] unexpected argument '--pip=2'; hint: settings are given as --section.key=value, e.g. "
            "--train.steps=10; see stretto launch --help\n");
  const test::Folder folder;
  for (const char* words : {"train none.toml --quiet", "-- train none.toml --quiet", "stretto train none.toml --quiet",
                            "--logs train train none.toml --quiet"})
    EXPECT_THAT(stretto(std::string("launch -n 1 ") + words, folder.str()).error,
                HasSubstr("[none.toml] cannot be opened: No such file or directory"))
        << words;
}

TEST(Usage, AnUnknownOptionsValueIsNotTakenForARun) {
  EXPECT_EQ(said("simulate --schedule 1f1b --pips 2"),
            "[simulate] unexpected argument '--pips'; hint: did you mean '--pipes'?; see stretto simulate --help\n");
}

TEST(Usage, OptionsOfASchedule) {
  EXPECT_EQ(said("check examples/quickstart.toml --actors=4 --tagged"),
            "[check] --actors, --tagged are options of a schedule that is given by --schedule, not of a run; hint: a "
            "run is changed by its settings, e.g. --parallel.pipe=4 --train.microbatches=8\n");
  EXPECT_THAT(said("show examples/quickstart.toml stages --times=F=2"), HasSubstr("--times is an option of a"));
  EXPECT_EQ(stretto("show examples/quickstart.toml schedule --times=F=2", STRETTO_SOURCE).code, 0);
  EXPECT_THAT(said("simulate examples/quickstart.toml --dialect=old"), HasSubstr("--dialect is an option of a"));
}

TEST(Usage, EveryKeyIsExplained) {
  const Result r = stretto("train --help-keys", STRETTO_SOURCE);
  EXPECT_EQ(r.code, 0) << r.error;
  EXPECT_THAT(r.out, HasSubstr("\n[train]\n  --train.steps = 300\n"));
  EXPECT_THAT(said("train --help-keys=latex"), HasSubstr("'latex' is none of text, markdown"));
}

TEST(Usage, MessagesStayShort) {
  const std::string name(100000, 'n');
  EXPECT_LT(said("train --" + name).size(), 2000u);
  EXPECT_LT(said("check --schedule 1f1b --actors " + name).size(), 2000u);
  const Result r = stretto("check '--checkpoint.export=\"\\u0000\"'", STRETTO_SOURCE);
  EXPECT_EQ(r.code, 1);
  EXPECT_THAT(r.error, StartsWith("[command line] key 'checkpoint.export' holds a NUL"));
}

TEST(Usage, HelpIsNoMistake) {
  for (const char* command : {"", "train ", "bench comm ", "data tokenize "}) {
    const Result r = stretto(std::string(command) + "--help", STRETTO_SOURCE);
    EXPECT_EQ(r.code, 0);
    EXPECT_EQ(r.error, "");
    EXPECT_THAT(r.out, HasSubstr("Usage: "));
  }
}

TEST(Usage, TheVersionIsSaid) {
  const Result r = stretto("--version", STRETTO_SOURCE);
  EXPECT_EQ(r.code, 0) << r.error;
  EXPECT_THAT(r.out, testing::MatchesRegex("stretto [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

TEST(Usage, ALauncherThatIsNotThereLeavesNothing) {
  const Folder folder;
  const Result r = stretto("launch -n 2 --mpirun /none/mpirun --logs=logs -- train", folder.str());
  EXPECT_EQ(r.code, 1);
  EXPECT_THAT(r.error, StartsWith("[launch] '/none/mpirun' is not there; hint: "));
  EXPECT_FALSE(std::filesystem::exists(folder / "logs"));
}

TEST(Usage, VariablesOfAnotherLauncherDoNotReachTheRanks) {
  const Folder folder;
  const Result r = shell("RANK=3 '" + binaries() + "/stretto' launch -n 1 --logs=logs -- show config", folder.str());
  EXPECT_EQ(r.code, 0) << r.error;
}

TEST(Usage, APlaceThatCannotBeWrittenIsSaidBeforeMeasuring) {
  const Result r = stretto("bench comm --parallel.data=2 -o /none/links.toml", STRETTO_SOURCE);
  EXPECT_EQ(r.code, 1);
  EXPECT_EQ(r.out, "");
  EXPECT_THAT(r.error, HasSubstr("[/none/links.toml] cannot be created: there is no directory '/none'; hint: make it"));
  EXPECT_THAT(stretto("show --schedule 1f1b --actors 2 --microbatches 4 -o /none/x.svg", STRETTO_SOURCE).error,
              HasSubstr("there is no directory '/none'; hint: make it, or choose another place"));
}

}  // namespace
}  // namespace stretto::test
