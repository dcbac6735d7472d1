#include "stretto/schedule/in_order.h"

#include <gmock/gmock.h>

namespace stretto {
namespace {

using testing::ElementsAre;

// What an actor does: bring something about, or wait for it.
struct Deed {
  bool waits;
  std::uint32_t what;
};
constexpr Deed makes(std::uint32_t what) { return {false, what}; }
constexpr Deed needs(std::uint32_t what) { return {true, what}; }

class Actors {
 public:
  explicit Actors(std::vector<std::vector<Deed>> rows)
      : rows_(std::move(rows)), at_(rows_.size()), order(rows_.size(), 8) {}

  void run() {
    order.run([&](ActorId a) -> std::optional<std::uint32_t> {
      for (std::size_t& at = at_[a.value]; at < rows_[a.value].size(); ++at) {
        const Deed& d = rows_[a.value][at];
        if (d.waits && !happened_[d.what]) return d.what;
        if (d.waits) continue;
        happened_[d.what] = true;
        done.push_back(d.what);
        order.happened(d.what);
      }
      return std::nullopt;
    });
  }
  std::vector<std::vector<ActorId>> circles() const {
    std::vector<std::vector<ActorId>> all;
    order.circles([&](ActorId a) { return maker(*order.waits(a)); }, [&](const auto& c) { all.push_back(c); });
    return all;
  }

 private:
  ActorId maker(std::uint32_t what) const {
    for (std::size_t a = 0; a < rows_.size(); ++a)
      for (const Deed& d : rows_[a])
        if (!d.waits && d.what == what) return ActorId(a);
    return ActorId(rows_.size());
  }
  std::vector<std::vector<Deed>> rows_;
  std::vector<std::size_t> at_;
  bool happened_[8] = {};

 public:
  InOrder<std::uint32_t> order;
  std::vector<std::uint32_t> done;
};

TEST(InOrder, ActorsGoOnWhenWhatTheyWaitForHasHappened) {
  Actors a({{needs(1), makes(0)}, {needs(2), makes(1)}, {makes(2), needs(0), makes(3)}});
  a.run();
  EXPECT_TRUE(a.order.finished());
  EXPECT_THAT(a.done, ElementsAre(2, 1, 0, 3));
}

TEST(InOrder, AllWhoWaitForOneThingGoOn) {
  Actors a({{needs(0), makes(1)}, {needs(0), makes(2)}, {needs(0), makes(3)}, {makes(0)}});
  a.run();
  EXPECT_TRUE(a.order.finished());
  EXPECT_THAT(a.done, testing::UnorderedElementsAre(0, 1, 2, 3));
}

TEST(InOrder, WhoWaitsForeverIsInACircleOrBehindOne) {
  Actors a({{needs(1), makes(0)}, {needs(2), makes(1)}, {needs(1), makes(2)}, {makes(3)}});
  a.run();
  EXPECT_FALSE(a.order.finished());
  EXPECT_EQ(a.order.waits(ActorId(0)), 1u);
  EXPECT_EQ(a.order.waits(ActorId(3)), std::nullopt);
  EXPECT_THAT(a.circles(), ElementsAre(ElementsAre(ActorId(1), ActorId(2))));
}

TEST(InOrder, OneThatIsReleasedNoLongerWaits) {
  Actors a({{needs(0)}, {needs(0)}, {needs(0)}});
  a.run();
  for (const int n : {1, 0, 2}) {
    EXPECT_EQ(a.order.waits(ActorId(n)), 0u);
    a.order.release(ActorId(n));
    EXPECT_EQ(a.order.waits(ActorId(n)), std::nullopt);
  }
}

}  // namespace
}  // namespace stretto
