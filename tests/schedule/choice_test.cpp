#include "stretto/schedule/choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "stretto/schedule/builders.h"

namespace stretto {
namespace {

using testing::HasSubstr;

std::string written(const std::string& text) {
  const std::string path = testing::TempDir() + "/choice_test.csv";
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

template <class F>
Error refused(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e;
  }
  return Error("", "no error");
}

TEST(Choice, ByNameFileScheduleOrFunction) {
  const Request r{.actors = 4, .microbatches = 8};
  const Schedule s = build_schedule("zb-v", r);
  EXPECT_EQ(choose_schedule("zb-v", r), s);
  EXPECT_EQ(choose_schedule(s, r), s);
  EXPECT_EQ(choose_schedule([](const Request& q) { return build_schedule("zb-v", q); }, r), s);
  const std::string path = written(write_csv(s));
  EXPECT_EQ(choose_schedule(path, r), s);
  EXPECT_EQ(choose_schedule(path, {.actors = 0, .microbatches = 0}), s);
  EXPECT_EQ(choose_schedule(path, r).name, "choice_test");
}

TEST(Choice, EveryBuildersScheduleSurvivesItsFile) {
  for (const BuilderEntry& e : schedule_builders()) {
    const Schedule s = e.build({.actors = 4, .microbatches = 8, .segments = e.name == "seq-1f1b" ? 2 : 1});
    const std::string path = written(write_csv(s));
    EXPECT_EQ(choose_schedule(path, {.actors = 0, .microbatches = 0}), s) << e.name;
    const CheckedSchedule c = check_schedule(path, {.actors = 4, .microbatches = 8});
    EXPECT_TRUE(c.validation.ok()) << e.name << "\n" << c.validation.str();
    EXPECT_EQ(c.validation.str().find("read as bidirectional") != std::string::npos, s.pipes() > 1) << e.name;
  }
}

TEST(Choice, RefusesWhatIsNoSchedule) {
  EXPECT_THAT(refused([] { choose_schedule("zbv", {.actors = 0, .microbatches = 0}); }).what(),
              HasSubstr("did you mean 'zb-v'"));
  const Error numbers = refused([] { choose_schedule("zb-v", {.actors = 4, .microbatches = 0}); });
  EXPECT_THAT(numbers.what(), HasSubstr("--microbatches"));
  EXPECT_EQ(numbers.exit_code(), 2);
  EXPECT_THAT(refused([] { choose_schedule("nowhere/mine.csv", {}); }).what(),
              HasSubstr("[nowhere/mine.csv] cannot be read: No such file"));
  EXPECT_THAT(refused([] { choose_schedule(testing::TempDir() + "/", {}); }).what(), HasSubstr("is a directory"));
  const std::string path = written("0F0,0X0\n");
  EXPECT_THAT(refused([&] { choose_schedule(path, {}); }).what(), HasSubstr(path + ", line 1, column 5, cell '0X0'"));
}

TEST(Choice, ChecksAFileAgainstTheRequest) {
  const std::string path = written("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1F0,1B1\n");
  const std::string faults = check_schedule(path, {.actors = 3, .microbatches = 2, .memory = 1}).validation.str();
  EXPECT_THAT(faults, HasSubstr("[rows] 2 rows for 3 actors"));
  EXPECT_THAT(faults, HasSubstr("[actor 1, position 3, 1F0 (" + path + ":2:13)] the action stands twice"));
  EXPECT_THAT(faults, HasSubstr("[actor 0, position 1, 0F1 (" + path + ":1:5)] 2 full-stage activations"));
  EXPECT_THAT(check_schedule(path, {.actors = 2, .microbatches = 3}).validation.str(), HasSubstr("0F2 is missing"));
  EXPECT_THAT(check_schedule(path, {.actors = 2, .microbatches = 2, .chunks = 2}).validation.str(),
              HasSubstr("[stage 2] no row has actions"));
  EXPECT_THAT(refused([&] { check_schedule(path, {.actors = 70000, .microbatches = 2, .chunks = 70000}); }).what(),
              HasSubstr("65536"));
}

TEST(Choice, CommunicationCellsAreChecked) {
  const std::string path = written("0F0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n");
  EXPECT_THAT(check_schedule(path, {.actors = 2, .microbatches = 1}).validation.str(),
              HasSubstr("0SEND_F0 is missing"));
  EXPECT_THAT(refused([&] { choose_schedule(path, {.actors = 2, .microbatches = 1}); }).what(),
              HasSubstr("0RECV_B0 is missing"));
}

TEST(Choice, OptionsOfTheFile) {
  EXPECT_EQ(choose_schedule(written("0F0,0BW0\n"), {.actors = 1}, {.dialect = CsvDialect::old}).rows[0],
            (Row{}.F(0, 0).B(0, 0)));
  const std::string logical = std::string(STRETTO_TEST_DATA) + "/schedules/chimera_p4_m4.csv";
  EXPECT_EQ(choose_schedule(logical, {.actors = 4, .microbatches = 4}, {.pipes = CsvPipes::logical}),
            build_schedule("chimera", {.actors = 4, .microbatches = 4}));
}

}  // namespace
}  // namespace stretto
