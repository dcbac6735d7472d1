#include "stretto/launch/inner/judge.h"

#include <gmock/gmock.h>
#include <signal.h>

#include "support/files.h"

namespace stretto {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr int exited(int code) { return code << 8; }  // as waitpid gives it
constexpr int killed(int signal) { return signal; }

RankCourse ended(int status, double time = 1, bool told = false) {
  return {.begun = true, .end = RankEnd{.status = status, .time = time, .told = told, .last_line = "last line"}};
}
RankCourse said(RankCourse r, int code) {
  r.said = LastWord{.code = code, .why = "[model] why"};
  return r;
}
const RankCourse well = ended(0), never{}, held{.begun = true}, taken_along = ended(killed(SIGKILL), 2, true);

LaunchResult of(const Course& c) {
  return judge(c, {.ranks = int(c.ranks.size()), .program = "", .arguments = {}, .logs = "/nowhere"});
}

TEST(Judge, AllIsWellWhenAllRanksAre) {
  EXPECT_EQ(of({.ranks = {well, well}}).code, 0);
  EXPECT_EQ(of({.ranks = {well, well}, .mpirun = killed(SIGKILL), .killed_mpirun = true}).code, 0);
  const LaunchResult asked = of({.ranks = {well, well}, .signals = {SIGINT}});
  EXPECT_EQ(asked.code, 0);
  EXPECT_TRUE(asked.stopped);
}

// MPI's library and mpirun have exit codes of their own, 1 above all, which here would mean that the input is wrong.
TEST(Judge, ACodeCountsWhenTheRankHasSaidIt) {
  const LaunchResult r = of({.ranks = {taken_along, said(ended(exited(1)), 1)}, .mpirun = exited(1)});
  EXPECT_EQ(r.code, 1);
  EXPECT_EQ(r.rank, 1);
  EXPECT_TRUE(r.explained);
  EXPECT_THAT(r.message, HasSubstr("rank 1 ended with code 1; its log is /nowhere/rank-1.log\n[model] why"));
  const LaunchResult silent = of({.ranks = {taken_along, ended(exited(1))}, .mpirun = exited(1)});
  EXPECT_EQ(silent.code, 3);
  EXPECT_FALSE(silent.explained);
  EXPECT_THAT(silent.message, HasSubstr("rank 1 ended with code 1 and did not say why"));
  EXPECT_THAT(silent.message, HasSubstr("\nlast line"));
  // MPI ended it before it could end itself.
  EXPECT_EQ(of({.ranks = {said(taken_along, 2), taken_along}, .mpirun = exited(9)}).code, 2);
}

TEST(Judge, TheFirstWhoWasKilledOrSaysWhyIsNamed) {
  EXPECT_EQ(of({.ranks = {ended(exited(1), 1), ended(killed(SIGSEGV), 2), ended(killed(SIGKILL), 3)}}).code,
            128 + SIGSEGV);
  EXPECT_EQ(of({.ranks = {said(ended(exited(3), 5), 3), ended(killed(SIGKILL), 4)}}).rank, 1);
  // The launch has heard of both at the same time: the one that speaks may speak about the other.
  EXPECT_EQ(of({.ranks = {said(ended(exited(3), 4), 3), ended(killed(SIGKILL), 4)}}).rank, 1);
  EXPECT_EQ(of({.ranks = {held, ended(exited(1))}}).rank, 1);
  EXPECT_THAT(of({.ranks = {well, held}, .mpirun = exited(137)}).message,
              HasSubstr("rank 1 was killed and does not end"));
}

TEST(Judge, MpirunIsNamedWhenItFailedByItself) {
  const LaunchResult r = of({.ranks = {ended(exited(1)), taken_along}, .mpirun = killed(SIGKILL)});
  EXPECT_EQ(r.code, 3);
  EXPECT_FALSE(r.rank);
  EXPECT_THAT(r.message, HasSubstr("mpirun was killed by signal 9 (Killed)"));
  EXPECT_THAT(of({.ranks = {taken_along, taken_along}, .mpirun = exited(1)}).message,
              AllOf(HasSubstr("mpirun ended with code 1, and no rank had failed before"),
                    HasSubstr("rank 0 said at last: last line; its log is /nowhere/rank-0.log")));
  for (const int status : {0, 1}) {
    const LaunchResult none = of({.ranks = {well, never}, .mpirun = exited(status)});
    EXPECT_EQ(none.code, 3);
    EXPECT_THAT(none.message, HasSubstr("and had started 1 of 2 ranks"));
  }
  EXPECT_THAT(of({.ranks = {taken_along, taken_along}, .mpirun = exited(1), .killed_mpirun = true}).message,
              HasSubstr("the processes with which mpirun had started the ranks have ended"));
  EXPECT_THAT(of({.ranks = {taken_along, never}, .killed_mpirun = true, .too_late = true}).message,
              HasSubstr("mpirun has started 1 of 2 ranks, and in 60 s no other; hint: "));
}

TEST(Judge, WhatMpirunSaidIsShown) {
  const test::Folder logs;
  logs.write("mpirun.log", "-----\nThe system limit on number of pipes\n-----\n");
  const LaunchOptions o{.ranks = 2, .program = "", .arguments = {}, .logs = logs.str()};
  EXPECT_THAT(judge({.ranks = {never, never}, .mpirun = exited(1)}, o).message,
              AllOf(HasSubstr("mpirun.log says\nThe system limit on number of pipes"), Not(HasSubstr("---"))));
}

TEST(Judge, OurOwnSignalsAreNobodysFault) {
  for (const int signal : {SIGINT, SIGTERM}) {
    // No step to end after; asked twice; while ranks are being started.
    for (const Course& c :
         {Course{.ranks = {ended(killed(SIGTERM)), taken_along}, .signals = {signal}},
          Course{.ranks = {taken_along, taken_along}, .mpirun = exited(1), .signals = {signal, SIGINT}},
          Course{.ranks = {taken_along, never}, .mpirun = killed(SIGTERM), .signals = {signal}}}) {
      const LaunchResult r = of(c);
      EXPECT_EQ(r.code, 128 + signal);
      EXPECT_TRUE(r.stopped);
      EXPECT_THAT(r.message, HasSubstr("ended by signal " + std::to_string(signal)));
    }
    // It failed while it ended.
    EXPECT_EQ(of({.ranks = {said(ended(exited(3)), 3), taken_along}, .mpirun = exited(3), .signals = {signal}}).code,
              3);
  }
}

}  // namespace
}  // namespace stretto
