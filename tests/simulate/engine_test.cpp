#include "stretto/simulate/engine.h"

#include <gtest/gtest.h>

namespace stretto {
namespace {

TEST(Engine, PlaysNodesWhenActorAndMessagesAreThere) {
  Tape tape;
  tape.rows = {0, 2, 3};
  tape.durations = {1, 1, 2};
  tape.edges = {{.to = 2, .link = 0, .delay = 0.5}};
  tape.first_edge = {0, 1, 1, 1};
  tape.links = 1;
  Player player(tape);
  ASSERT_TRUE(player.stuck().empty());
  player.play({0, 0});
  EXPECT_EQ(player.start(2), 1.5);
  EXPECT_EQ(player.end(2), 3.5);
  EXPECT_EQ(player.sender(2), 0u);
  EXPECT_EQ(player.sender(1), std::nullopt);
  player.play({0, 10});
  EXPECT_EQ(player.start(2), 10) << "the actor starts later than its message arrives";
  EXPECT_EQ(player.ends(), (std::vector<double>{2, 12}));
}

TEST(Engine, NamesTheNodesThatCanNeverStart) {
  Tape tape;  // node 1 needs 3, node 2 needs 1
  tape.rows = {0, 2, 4, 5};
  tape.durations = {1, 1, 1, 1, 1};
  tape.edges = {{.to = 2}, {.to = 1}};
  tape.first_edge = {0, 0, 1, 1, 2, 2};
  tape.links = 1;
  EXPECT_EQ(Player(tape).stuck(), (std::vector<std::optional<std::uint32_t>>{1, 2, std::nullopt}));
}

}  // namespace
}  // namespace stretto
