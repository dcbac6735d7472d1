// What is kept of frozen weights, counted by hand.
#include "stretto/compile/copies.h"

#include <gtest/gtest.h>

#include "stretto/stretto.h"

namespace stretto {
namespace {

// Three products, of which the second one's weight is frozen: its gradient of inputs needs it in bf16.
KeptCopies copies_of(const Parallel& parallel, Training training) {
  const Model model = [](Trace& t) {
    const Dim batch = t.batch("batch", 16), in{"in", 8}, hidden{"hidden", 32}, middle{"middle", 64}, out{"out", 8};
    const Tensor x = boundary(contract(t.input("x", {batch, in}), t.param("first", {in, hidden}), in));
    const Tensor y = boundary(contract(x, t.param("second", {hidden, middle}), hidden));
    return mean_of(square(contract(y, t.param("third", {middle, out}), middle)));
  };
  training.dtype = bf16;
  return kept_copies(*compile(model, sgd(), training, parallel).program);
}

constexpr u64 second = 2 * 32 * 64;

TEST(KeptCopies, OfFrozenWeightsPerMicrobatchUnderWay) {
  const Training frozen{.microbatches = 4, .frozen = {"second"}};
  const KeptCopies serial = copies_of({}, frozen);
  EXPECT_EQ(serial.most, second);
  EXPECT_EQ(serial.all, second);
  EXPECT_EQ(copies_of({.mesh = {{"pipe", 3}}, .schedule = "gpipe"}, frozen).most, 4 * second);
  const KeptCopies cut = copies_of({.names = {.data = 2, .zero = 3}}, frozen);
  EXPECT_EQ(cut.most, second) << "as if nothing were cut";
  EXPECT_EQ(cut.all, 2 * second);
  const Layout split{{"middle", "x"}};
  EXPECT_EQ(copies_of({.mesh = {{"x", 2}}, .layout = split}, frozen).all, second);
}

TEST(KeptCopies, NoneOfWhatIsTrainedOrRecomputed) {
  EXPECT_EQ(copies_of({}, {.microbatches = 4}).all, 0u);
  EXPECT_EQ(copies_of({.recompute = {Recompute::full}}, {.microbatches = 4, .frozen = {"second"}}).all, 0u);
}

}  // namespace
}  // namespace stretto
