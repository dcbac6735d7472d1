#include "stretto/runtime/in_flight.h"

#include <gtest/gtest.h>

#include <set>

namespace stretto {
namespace {

// Says of every ticket whether it is complete as it is told to.
class Told : public CollectiveGroup {
 public:
  std::uint32_t prepare(const CollectiveShape&) override { return 0; }
  u64 start(int, std::uint32_t, const void*, void*, const std::int32_t*) override { return 0; }
  bool progress(int, u64 ticket) override {
    asked.push_back(ticket);
    return complete.contains(ticket);
  }
  double wait(int, u64) override { return 0; }
  void stop() noexcept override {}
  std::set<u64> complete;
  std::vector<u64> asked;
};

struct Flights : testing::Test {
  Flights() {
    flights.reserve(2, 2);
    start(CollectiveId(1), RecordId(7), {1, 2});
    start(CollectiveId(0), RecordId(8), {3});
  }
  void start(CollectiveId c, std::optional<RecordId> record, std::initializer_list<u64> tickets) {
    flights.start(c, record);
    for (u64 t : tickets) flights.add(c, {{&group, 0}, t});
  }
  std::vector<RecordId> help_along() {
    std::vector<RecordId> ended;
    flights.help_along([&](RecordId r) { ended.push_back(r); });
    return ended;
  }
  Told group;
  InFlight flights;
};

TEST_F(Flights, EndsOnceWhenAllOfItsCallsAreComplete) {
  group.complete = {1};
  EXPECT_TRUE(help_along().empty());
  group.complete = {1, 2};
  group.asked.clear();
  EXPECT_EQ(help_along(), std::vector{RecordId(7)});
  EXPECT_EQ(group.asked, (std::vector<u64>{2, 3}));  // 1 was complete
  EXPECT_TRUE(help_along().empty());
}

TEST_F(Flights, AwaitsWhatIsNotCompleteAndEndsTheRecord) {
  group.complete = {2};
  help_along();
  std::vector<u64> waited;
  const auto wait = [&](const InFlight::Ticket& t) { waited.push_back(t.number); };
  EXPECT_EQ(flights.await(CollectiveId(1), wait), RecordId(7));
  EXPECT_EQ(waited, std::vector<u64>{1});
  group.asked.clear();
  help_along();
  EXPECT_EQ(group.asked, std::vector<u64>{3});  // the awaited one is no longer under way
}

TEST_F(Flights, RecordThatEndedBeforeItsAwaitIsNotEndedAgain) {
  group.complete = {1, 2, 3};
  EXPECT_EQ(help_along(), (std::vector{RecordId(7), RecordId(8)}));
  EXPECT_FALSE(flights.await(CollectiveId(0), [](const InFlight::Ticket&) { FAIL(); }));
}

TEST_F(Flights, NumberIsUsedAgain) {
  flights.await(CollectiveId(0), [](const InFlight::Ticket&) {});
  start(CollectiveId(0), std::nullopt, {4});
  std::vector<u64> waited;
  EXPECT_FALSE(flights.await(CollectiveId(0), [&](const InFlight::Ticket& t) { waited.push_back(t.number); }));
  EXPECT_EQ(waited, std::vector<u64>{4});
}

}  // namespace
}  // namespace stretto
