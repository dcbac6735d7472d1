#include "stretto/schedule/builders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <thread>

#include "stretto/base/error.h"
#include "stretto/schedule/choice.h"
#include "stretto/schedule/csv.h"
#include "stretto/schedule/validate.h"
#include "support/files.h"
#include "support/message.h"

namespace stretto {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

Schedule from_file(const std::string& name, CsvPipes pipes = CsvPipes::one) {
  std::ifstream in(std::string(STRETTO_TEST_DATA) + "/schedules/" + name, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return read_csv(text.str(), name, {.pipes = pipes});
}

std::string refusal(std::string_view name, const Request& r) {
  return refusal_of([&] { build_schedule(name, r); });
}

bool defined_for(std::string_view name, int p, int m) {
  if (name == "dualpipe") return p % 2 == 0 && m % 2 == 0 && m >= 2 * p;
  if (name == "dualpipe-v") return m >= 2 * p;
  if (name == "chimera") return p % 2 == 0;
  if (name == "interleaved-1f1b" || name == "kimi-k2" || name == "interleaved-zb") return m % std::max(1, m / p) == 0;
  return true;
}

// Plays the rows with nothing but sets: every actor runs its next action as soon as what it needs has run.
::testing::AssertionResult runs_to_the_end(const Schedule& s) {
  std::set<std::tuple<char, int, int, int, int>>
      done;  // letter (B counts as I and W), pipe, stage, microbatch, segment
  std::vector<std::size_t> at(s.rows.size());
  const auto can_run = [&](const Action& a) {
    const int stage = a.stage.value;
    const auto has = [&](char l, int stage, int segment) {
      return done.contains({l, a.pipe.value, stage, int(a.microbatch.value), segment});
    };
    switch (a.phase) {
      case Phase::F:
        return (stage == 0 || has('F', stage - 1, a.segment)) && (a.segment == 0 || has('F', stage, a.segment - 1));
      case Phase::B:
      case Phase::I:
        return has('F', stage, a.segment) && (stage + 1 == s.stages || has('I', stage + 1, a.segment)) &&
               (a.segment + 1 == s.segments || has('I', stage, a.segment + 1));
      case Phase::W:
        return has('I', stage, a.segment);
      case Phase::R:
        return has('F', stage, a.segment);
    }
    return false;
  };
  const auto record = [&](char l, const Action& a) {
    return done.insert({l, a.pipe.value, a.stage.value, int(a.microbatch.value), a.segment}).second;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t actor = 0; actor < s.rows.size(); ++actor) {
      const Row& row = s.rows[actor];
      while (at[actor] < row.size()) {
        std::size_t end = at[actor] + 1;
        while (end < row.size() && row[end].overlap && row[end].overlap == row[at[actor]].overlap) ++end;
        if (!std::all_of(row.begin() + long(at[actor]), row.begin() + long(end), can_run)) break;
        for (; at[actor] < end; ++at[actor]) {
          const Action& a = row[at[actor]];
          if (s.actor_of[a.pipe][a.stage] != ActorId(actor)) return ::testing::AssertionFailure() << "wrong actor";
          const bool once = a.phase == Phase::B ? record('I', a) && record('W', a) : record(letter(a.phase), a);
          if (!once) return ::testing::AssertionFailure() << cell(a, s.stages) << " runs twice";
        }
        moved = true;
      }
    }
  }
  for (std::size_t actor = 0; actor < s.rows.size(); ++actor) {
    if (at[actor] < s.rows[actor].size()) {
      return ::testing::AssertionFailure()
             << "actor " << actor << " never gets past " << cell(s.rows[actor][at[actor]], s.stages);
    }
  }
  // F, I and W of every stage for every microbatch, in the one pipe that takes it.
  const std::size_t expected = 3 * std::size_t(s.stages) * std::size_t(s.microbatches) * std::size_t(s.segments);
  if (done.size() != expected) return ::testing::AssertionFailure() << done.size() << " of " << expected << " actions";
  for (const auto& [l, pipe, stage, microbatch, segment] : done) {
    if (s.pipes() == 2 && pipe != (microbatch >= s.microbatches / 2)) {
      return ::testing::AssertionFailure() << "microbatch " << microbatch << " is in pipe " << pipe;
    }
  }
  return ::testing::AssertionSuccess();
}

bool ascending(const Schedule& s) {
  std::map<std::pair<PipeId, StageId>, MicrobatchId> last;
  for (const Row& row : s.rows) {
    for (const Action& a : row) {
      if (a.phase != Phase::B && a.phase != Phase::W) continue;
      auto [it, fresh] = last.try_emplace({a.pipe, a.stage}, a.microbatch);
      if (!fresh && a.microbatch < it->second) return false;
      it->second = a.microbatch;
    }
  }
  return true;
}

// Most activations (in full stages) a row holds; in-order rows need no times for that.
double peak(const Schedule& s, int actor) {
  double live = 0, most = 0;
  for (const Action& a : s.rows[actor]) {
    if (a.phase == Phase::F) most = std::max(most, ++live);
    if (a.phase == Phase::B || a.phase == Phase::W) --live;
  }
  return most * s.actors() / (double(s.stages) * s.segments);
}

// What each definition promises for actor r.
double memory_bound(std::string_view name, int p, int m, int v, int r) {
  const double g = double(m) / std::max(1, m / p), all = m;
  if (name == "1f1b" || name == "seq-1f1b") return std::min<double>(p - r, m);
  if (name == "eager-1f1b") return std::min<double>(2 * (p - r) - 1, m);
  if (name == "interleaved-1f1b") return std::min(all, ((v - 1) * g + 2 * (p - 1 - r) + 1) / v);
  if (name == "kimi-k2") return std::min(all, ((v - 1) * g + 2 * (p - 1 - r) + 2) / v);
  if (name == "interleaved-zb") return std::min(all, ((v - 1) * g + p) / v);
  if (name == "zb-h1" || name == "zb-v" || name == "zb-auto" || name == "chimera") return std::min<double>(p, m);
  if (name == "zb-h2") return std::min<double>(2 * p - 1, m);
  if (name == "v-half") return std::min<double>(p / 2 + 1, m);
  if (name == "v-min") return std::min<double>((p + 4) / 3, m);
  if (name == "dualpipe") return p + 1;
  if (name == "dualpipe-v") return p + 0.5;
  return all;
}

class EveryBuilder : public testing::TestWithParam<BuilderEntry> {};

TEST_P(EveryBuilder, WorksWhereItIsDefinedAndRefusesElsewhere) {
  const BuilderEntry& e = GetParam();
  for (int p = 1; p <= 9; ++p) {
    for (const int m : {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 18, 20, 25}) {
      for (const int v : {0, 1, 2, 3}) {
        if (v > 0 && v != e.default_chunks() && e.chunks == 2) continue;
        if (v > 1 && e.chunks == 1) continue;
        const Request r{.actors = p, .microbatches = m, .chunks = v};
        SCOPED_TRACE(fmt::format("{} p={} m={} v={}", e.name, p, m, v));
        ASSERT_EQ(e.limits.hold(p, m), defined_for(e.name, p, m));
        if (!defined_for(e.name, p, m)) {
          EXPECT_THAT(refusal(e.name, r), HasSubstr("hint: use "));
          continue;
        }
        const Schedule s = e.build(r);
        ASSERT_EQ(s.name, e.name);
        ASSERT_EQ(s.actors(), p);
        ASSERT_EQ(s.microbatches, m);
        ASSERT_EQ(s.stages, p * (v == 0 ? e.default_chunks() : v));
        ASSERT_TRUE(runs_to_the_end(s));
        ASSERT_TRUE(validate(s).ok()) << validate(s).str();
        ASSERT_TRUE(!e.ascending || ascending(s));
        for (int a = 0; a < p; ++a) {
          ASSERT_LE(peak(s, a), memory_bound(e.name, p, m, s.stages / p, a) + 1e-9) << "actor " << a << "\n" << s.str();
        }
      }
    }
  }
}

TEST_P(EveryBuilder, RefusesWhatMakesNoSense) {
  const BuilderEntry& e = GetParam();
  EXPECT_THAT(refusal(e.name, {.actors = 0, .microbatches = 8}), HasSubstr("hint"));
  EXPECT_THAT(refusal(e.name, {.actors = -4, .microbatches = 8}), HasSubstr("hint"));
  EXPECT_THAT(refusal(e.name, {.actors = 4, .microbatches = 0}), HasSubstr("hint"));
  EXPECT_THAT(refusal(e.name, {.actors = 4, .microbatches = 8, .chunks = -1}), HasSubstr("hint"));
  EXPECT_THAT(refusal(e.name, {.actors = 4, .microbatches = 8, .segments = 0}), HasSubstr("hint"));
  EXPECT_THAT(refusal(e.name, {.actors = 2000000000, .microbatches = 2000000000}), HasSubstr("hint"));
  if (!e.segments) {
    EXPECT_THAT(refusal(e.name, {.actors = 4, .microbatches = 8, .segments = 2}), HasSubstr("seq-1f1b"));
  }
  if (e.name != "gpipe" && e.name != "looped-bfs") {
    EXPECT_THAT(refusal(e.name, {.actors = 4, .microbatches = 8, .descending = true}), HasSubstr("gpipe"));
  }
  if (e.chunks == 1) {
    EXPECT_THAT(refusal(e.name, {.actors = 4, .microbatches = 8, .chunks = 2}), HasSubstr("use 1 chunk"));
  }
}

INSTANTIATE_TEST_SUITE_P(Table, EveryBuilder, testing::ValuesIn(schedule_builders().begin(), schedule_builders().end()),
                         [](const auto& info) {
                           std::string name;
                           for (const char c : info.param.name) name += c == '-' ? '_' : c;
                           return name;
                         });

// A builder is a file of builders/ named after its function; what several share has a header.
TEST(Builders, EveryFileHasItsLineInTheTable) {
  const std::filesystem::path folder = STRETTO_SOURCE "/stretto/schedule";
  std::set<std::string> files, functions;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "builders")) {
    std::filesystem::path header = entry.path();
    if (entry.path().extension() == ".cpp" && !exists(header.replace_extension(".h")))
      files.insert(entry.path().stem());
  }
  const std::string table = test::text_of(folder / "builders.def");
  static const std::regex line(R"re(STRETTO_SCHEDULE\((\w+), \.name = "([^"]+)",)re");
  std::vector<std::string> names, built;
  for (std::sregex_iterator i(table.begin(), table.end(), line); i != std::sregex_iterator(); ++i) {
    names.push_back((*i)[2]);
    functions.insert((*i)[1]);
  }
  for (const BuilderEntry& e : schedule_builders()) built.emplace_back(e.name);
  EXPECT_EQ(files, functions);
  EXPECT_EQ(names, built);
}

TEST(Builders, OrdersAreThePublishedOnes) {
  EXPECT_EQ(build_schedule("zb-v", {.actors = 4, .microbatches = 8}), from_file("zb-v_p4_m8.csv"));
  EXPECT_EQ(build_schedule("dualpipe", {.actors = 4, .microbatches = 8}),
            from_file("dualpipe_p4_m8.csv", CsvPipes::logical));
  EXPECT_EQ(build_schedule("chimera", {.actors = 4, .microbatches = 4}),
            from_file("chimera_p4_m4.csv", CsvPipes::logical));
  EXPECT_EQ(build_schedule("dualpipe-v", {.actors = 4, .microbatches = 10}), from_file("dualpipev_4rank_10mb.csv"));
  EXPECT_EQ(build_schedule("interleaved-zb", {.actors = 2, .microbatches = 8}),
            from_file("zb1p_2rank_2stagep_compute.csv"));
}

TEST(Builders, SmallOrdersByHand) {
  EXPECT_EQ(build_schedule("gpipe", {.actors = 1, .microbatches = 2}).str(), "0F0,0F1,0B0,0B1\n");
  EXPECT_EQ(build_schedule("gpipe", {.actors = 1, .microbatches = 2, .descending = true}).str(), "0F0,0F1,0B1,0B0\n");
  EXPECT_EQ(build_schedule("1f1b", {.actors = 2, .microbatches = 2}).str(), "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  EXPECT_EQ(build_schedule("looped-bfs", {.actors = 1, .microbatches = 2, .chunks = 2, .descending = true}).str(),
            "0F0,0F1,1F0,1F1,1B1,1B0,0B1,0B0\n");
  EXPECT_EQ(build_schedule("interleaved-1f1b", {.actors = 2, .microbatches = 2, .chunks = 2}).str(),
            "0F0,0F1,2F0,2F1,2B0,2B1,0B0,0B1\n1F0,1F1,3F0,3B0,3F1,3B1,1B0,1B1\n");
  EXPECT_EQ(build_schedule("zb-h1", {.actors = 2, .microbatches = 3}).str(),
            "0F0,0F1,0I0,0W0,0F2,0I1,0W1,0I2,0W2\n1F0,1I0,1F1,1I1,1W0,1F2,1I2,1W1,1W2\n");
  EXPECT_EQ(build_schedule("seq-1f1b", {.actors = 2, .microbatches = 1, .segments = 2}).str(),
            "0F0,0F0.1,0B0.1,0B0\n1F0,1F0.1,1B0.1,1B0\n");
}

TEST(Builders, HintsNameTheNearestWorkableValues) {
  EXPECT_EQ(
      refusal("interleaved-1f1b", {.actors = 4, .microbatches = 9}),
      "[interleaved-1f1b] 9 microbatches do not fall into 2 equal groups on 4 actors; hint: use 8 or 10 microbatches");
  EXPECT_THAT(refusal("dualpipe", {.actors = 3, .microbatches = 8}), HasSubstr("use 2 or 4 actors"));
  EXPECT_THAT(refusal("dualpipe", {.actors = 4, .microbatches = 7}), HasSubstr("use 8 microbatches"));
  EXPECT_THAT(refusal("dualpipe", {.actors = 4, .microbatches = 9}), HasSubstr("use 8 or 10 microbatches"));
  EXPECT_THAT(refusal("dualpipe-v", {.actors = 4, .microbatches = 7}), HasSubstr("use 8 microbatches"));
  EXPECT_THAT(refusal("chimera", {.actors = 1, .microbatches = 7}), HasSubstr("use 2 actors"));
  EXPECT_THAT(refusal("v-half", {.actors = 4, .microbatches = 8, .chunks = 1}), HasSubstr("use 2 chunks"));
  EXPECT_THAT(refusal("zb-auto", {.actors = 4, .microbatches = 8, .memory = 0.5}), HasSubstr("use at least 1"));
  EXPECT_THAT(refusal("zb-auto", {.actors = 4, .microbatches = 8, .memory = -1}), HasSubstr("use at least 1"));
  EXPECT_THAT(refusal("zb-auto", {.actors = 4, .microbatches = 8, .memory = NAN}), HasSubstr("use at least 1"));
  EXPECT_THAT(refusal("zb-auto", {.actors = 4, .microbatches = 8, .times = {.F = -1}}), HasSubstr("not negative"));
  EXPECT_THAT(refusal("zb-auto", {.actors = 4, .microbatches = 8, .freed_by_i = 2}), HasSubstr("0 to 1"));
  EXPECT_THAT(refusal("zb-h3", {.actors = 4, .microbatches = 8}), HasSubstr("did you mean 'zb-h"));
}

TEST(Builders, SegmentsOfMicrobatches) {
  for (const BuilderEntry& e : schedule_builders())
    for (const int k : {1, 2, 3, 5})
      for (const int m : {1, 2, 7})
        for (const int p : {1, 2, 4, 5}) {
          if (!e.segments) continue;
          const Schedule s = e.build({.actors = p, .microbatches = m, .segments = k});
          EXPECT_EQ(s.segments, k);
          EXPECT_TRUE(runs_to_the_end(s)) << s.str();
          EXPECT_TRUE(validate(s).ok()) << s.str() << validate(s).str();
          EXPECT_TRUE(validate(s).notes.empty()) << e.name << validate(s).str();
          if (e.name == "seq-1f1b" || e.name == "zb-h1") {
            EXPECT_LE(peak(s, 0), std::min<double>(m, double(p + k - 1) / k)) << e.name;
          }
        }
  // The shortest step and the least memory of all, once there are as many segments as actors.
  const Schedule s = build_schedule("seq-1f1b", {.actors = 8, .microbatches = 8, .segments = 8});
  EXPECT_EQ(peak(s, 0), 1.875);
  EXPECT_EQ(build_schedule("seq-1f1b", {.actors = 4, .microbatches = 8}),
            build_schedule("1f1b", {.actors = 4, .microbatches = 8}));
}

TEST(Builders, AutomaticKeepsItsCapWhateverTheTimes) {
  EXPECT_TRUE(rc::check([] {
    const auto time = [] { return *rc::gen::inRange(0, 40) / 8.0; };
    Request r{.actors = *rc::gen::inRange(1, 9), .microbatches = *rc::gen::inRange(1, 25)};
    r.times = {.F = time(), .I = time(), .W = time(), .message = time() / 4};
    r.memory = *rc::gen::inRange(2, 40) / 2.0;
    r.freed_by_i = *rc::gen::element(0.0, 0.25, 0.5, 1.0);
    const Schedule s = build_schedule("zb-auto", r);
    RC_ASSERT(runs_to_the_end(s));
    RC_ASSERT(ascending(s));
    for (const Row& row : s.rows) {
      double live = 0;
      for (const Action& a : row) {
        live += a.phase == Phase::F ? 1 : a.phase == Phase::I ? -r.freed_by_i : r.freed_by_i - 1;
        RC_ASSERT(live <= r.memory + 1e-6);
      }
    }
  }));
}

TEST(Builders, AutomaticKeepsTheCapThatTheValidatorCounts) {
  for (const int p : {2, 3, 4, 8, 12})
    for (const int m : {p, 2 * p, 3 * p, 40})
      for (const double memory : {1.0, p / 2.0, 1.0 * p, 1.5 * p, 2.0 * p})
        for (const double w : {0.25, 0.7, 1.0, 1.5})
          for (const double freed : {0.0, 0.5}) {
            const Request r{.actors = p,
                            .microbatches = m,
                            .times = {.F = 1, .I = 1, .W = w, .message = 0.1},
                            .memory = std::max(1.0, memory),
                            .freed_by_i = freed};
            EXPECT_EQ(check_schedule("zb-auto", r).validation.str(), "")
                << p << " actors, " << m << " microbatches, cap " << r.memory << ", W " << w << ", freed " << freed;
          }
  EXPECT_FALSE(Request{}.freed_by_i > 0);  // what a user gets who says nothing about it
}

TEST(Builders, AnyRequestIsBuiltOrRefused) {
  EXPECT_TRUE(rc::check([] {
    const BuilderEntry e =
        *rc::gen::elementOf(std::vector<BuilderEntry>(schedule_builders().begin(), schedule_builders().end()));
    const Request r{.actors = *rc::gen::inRange(-1, 24),
                    .microbatches = *rc::gen::inRange(-1, 40),
                    .chunks = *rc::gen::inRange(-1, 5),
                    .segments = *rc::gen::weightedElement<int>({{8, 1}, {1, 0}, {2, 3}})};
    try {
      const Schedule s = build_schedule(e.name, r);
      RC_ASSERT(runs_to_the_end(s));
      RC_ASSERT(validate(s).ok());
    } catch (const Error& error) {
      RC_ASSERT(!error.faults().empty());
      RC_ASSERT(!error.faults()[0].hint.empty());
      RC_ASSERT(error.kind() == Error::Kind::input);
    }
  }));
}

TEST(Register, OwnSchedulesAreFoundByName) {
  const auto mine = [](const Request& r) {
    Schedule s = looped(r);
    for (int a = 0; a < r.actors; ++a) {
      for (int m = 0; m < r.microbatches; ++m) s.rows[a].F(a, m);
      for (int m = 0; m < r.microbatches; ++m) s.rows[a].B(a, m);
    }
    return s;
  };
  register_schedule("mine", mine);
  const Schedule s = build_schedule("mine", {.actors = 3, .microbatches = 4});
  EXPECT_EQ(s, build_schedule("gpipe", {.actors = 3, .microbatches = 4}));
  EXPECT_EQ(s.name, "mine");
  EXPECT_THAT(schedule_names(), testing::Contains("mine"));
  EXPECT_THAT(refusal("mina", {}), HasSubstr("did you mean 'mine'"));
  EXPECT_THROW(register_schedule("mine", mine), Error);
  EXPECT_THROW(register_schedule("1f1b", mine), Error);
  EXPECT_THROW(register_schedule("", mine), Error);
  EXPECT_THROW(register_schedule("nothing", nullptr), Error);
  register_schedule("careless", [](const Request&) { return looped({.actors = 2, .microbatches = 2}); });
  EXPECT_THAT(refusal("careless", {.actors = 3, .microbatches = 4}), HasSubstr("2 actors and 2 microbatches"));
}

TEST(Register, ManyThreadsMayRegisterAndBuild) {
  std::vector<std::thread> threads;
  std::atomic<int> built = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t, &built] {
      for (int k = 0; k < 50; ++k) {
        const std::string name = fmt::format("thread-{}-{}", t, k);
        register_schedule(name, [](const Request& r) { return build_schedule("1f1b", r); });
        built += build_schedule(name, {.actors = 2, .microbatches = 2}).actors() == 2;
        built += !schedule_names().empty();
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(built, 400);
}

}  // namespace
}  // namespace stretto
