// Whatever layout is not refused trains to the serial run's numbers.
#include <rapidcheck.h>

#include <memory>
#include <optional>

#include "layouts/compare.h"
#include "support/property.h"

namespace stretto {
namespace {

struct RandomLayout {
  std::string family;
  Parallel parallel;
};

RandomLayout random_layout(const std::vector<Dim>& dims, std::string family) {
  RandomLayout r{.family = std::move(family), .parallel = {}};
  const bool pipe = *rc::gen::arbitrary<bool>();
  if (pipe) r.parallel.mesh.push_back({"pipe", 2});
  if (pipe)
    r.parallel.schedule = *rc::gen::element<std::string>("1f1b", "zb-h1", "zb-v", "interleaved-1f1b", "dualpipe-v");
  const int axes = *rc::gen::inRange(1, pipe ? 3 : 4);
  std::vector<std::string> names;
  for (const Dim& d : dims)
    if (!d.is_whole && d.name != "three") names.push_back(d.name);
  for (int a = 0; a < axes; ++a) {  // every axis takes one to three dims, of which no tensor may have two
    const std::string axis(1, char('a' + a));
    r.parallel.mesh.push_back({axis, 2});
    const int count = *rc::gen::inRange(1, 4);
    for (int k = 0; k < count; ++k) {
      const std::string name = *rc::gen::elementOf(names);
      Layout& layout = r.parallel.layout;
      const auto it = std::find_if(layout.begin(), layout.end(), [&](const LayoutEntry& e) { return e.dim == name; });
      if (it == layout.end())
        layout.push_back({name, axis});
      else if (std::find(it->axes.begin(), it->axes.end(), axis) == it->axes.end())
        it->axes.push_back(axis);
    }
  }
  const int zero = *rc::gen::inRange(0, 4);
  if (zero > 0) r.parallel.storage.state = {"a"};
  if (zero > 1) r.parallel.storage.gradients = {"a"};
  if (zero > 2) r.parallel.storage.params = {"a"};
  r.parallel.regather = *rc::gen::arbitrary<bool>();
  return r;
}

// The first legal one of a few tries; refusals are mistakes of the layout, never of the program.
std::optional<Compiled> legal_layout(const Reference& serial, const std::vector<Dim>& dims, const std::string& family) {
  for (int i = 0; i < 40; ++i) {
    try {
      return serial.compiled(random_layout(dims, family).parallel);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), Error::Kind::input) << e.what();
    }
  }
  return std::nullopt;
}

TEST(RandomLayouts, TrainToTheSerialNumbers) {
  std::map<std::string, std::unique_ptr<Reference>> known;
  std::map<std::string, std::vector<Dim>> dims;
  int cases = 0, legal = 0;
  EXPECT_TRUE(holds("any legal layout trains to the same numbers", test::in_processes() ? 20 : 150, [&] {
    const std::string family = *rc::gen::element<std::string>("gpt2", "llama", "mixtral");
    if (!known[family]) {
      Setting s{.config = small(family), .steps = 2};
      s.config.dropout = 0.1;
      known[family] = std::make_unique<Reference>(s);
      dims[family] = known[family]->compiled({}).graph.dims;
    }
    ++cases;
    std::optional<Compiled> c = legal_layout(*known[family], dims[family], family);
    if (!c) return;
    ++legal;
    known[family]->equals(std::move(*c));
    RC_ASSERT(!testing::Test::HasFailure());
  }));
  EXPECT_GT(legal, cases * 9 / 10) << "of " << cases;
}

}  // namespace
}  // namespace stretto
