#include <gmock/gmock.h>

#include "stretto/formats/fields.h"
#include "support/message.h"

namespace stretto {
namespace {

using testing::HasSubstr;

enum class Color { red, green };
struct Settings {
  i64 steps = 100;
  int batch = 8;
  double lr = 1e-3;
  bool tied = true;
  std::string name = "adamw";
  std::vector<std::string> paths;
  std::vector<double> betas{0.9, 0.95};
  std::vector<i64> stages;
  Color color = Color::red;
  std::optional<int> heads;
};

Settings settings_of(const Field& config) {
  Settings run;
  FieldReader reader(config);
  FieldReader train = reader.section("train");
  train.read("steps", run.steps, at_least(0));
  train.read("batch", run.batch, at_least(1));
  FieldReader optimizer = reader.section("optimizer");
  optimizer.read("lr", run.lr, above(0));
  optimizer.read("betas", run.betas, between(0, 1));
  optimizer.read("name", run.name);
  FieldReader model = reader.section("model");
  model.read("tied", run.tied);
  model.read("heads", run.heads, at_least(1));
  model.read("stages", run.stages, at_least(0));
  model.choose("color", run.color, {{"red", Color::red}, {"green", Color::green}});
  reader.section("data").read("path", run.paths);
  reader.finish();
  return run;
}
Settings read(std::string_view toml) { return settings_of(read_toml(toml, "run.toml")); }
std::string refusal(std::string_view toml) {
  return refusal_of([&] { read(toml); });
}

TEST(FieldReader, DefaultsStayAndValuesArrive) {
  const Settings none = read("");
  EXPECT_EQ(none.steps, 100);
  EXPECT_FALSE(none.heads);
  const Settings run = read(
      "train = {steps = 1e4, batch = 64}\n[optimizer]\nlr = 1\nbetas = [0, 0.5]\nname = 'lion'\n"
      "[model]\ntied = false\nheads = 4\ncolor = 'green'\nstages = [1, 2e3]\n[data]\npath = 'a.txt'");
  EXPECT_EQ(run.steps, 10'000);
  EXPECT_EQ(run.batch, 64);
  EXPECT_EQ(run.lr, 1.0);
  EXPECT_EQ(run.betas, (std::vector<double>{0, 0.5}));
  EXPECT_EQ(run.name, "lion");
  EXPECT_FALSE(run.tied);
  EXPECT_EQ(run.heads, 4);
  EXPECT_EQ(run.color, Color::green);
  EXPECT_EQ(run.stages, (std::vector<i64>{1, 2000}));
  EXPECT_EQ(run.paths, std::vector<std::string>{"a.txt"});
  EXPECT_EQ(read("data.path = ['a', 'b']").paths, (std::vector<std::string>{"a", "b"}));
}

TEST(FieldReader, UnknownKeysAreNamedWithTheNearest) {
  EXPECT_EQ(refusal("[train]\nbtach = 3"),
            "[run.toml:2] key 'train.btach' is unknown; hint: did you mean 'train.batch'?");
  EXPECT_EQ(refusal("[trian]\nbatch = 3"), "[run.toml:1] key 'trian' is unknown; hint: did you mean 'train'?");
  EXPECT_EQ(refusal("[model]\nbatch = 3"),
            "[run.toml:2] key 'model.batch' is unknown; hint: did you mean 'train.batch'?");
  EXPECT_EQ(refusal("lr = 3"), "[run.toml:1] key 'lr' is unknown; hint: did you mean 'optimizer.lr'?");
  EXPECT_EQ(refusal("[train]\nxylophone = 3"),
            "[run.toml:2] key 'train.xylophone' is unknown; hint: known keys of 'train': batch, steps");
}

TEST(FieldReader, WrongTypesAndImpossibleValuesAreNamed) {
  EXPECT_EQ(refusal("[train]\n\nbatch = 'many'"),
            "[run.toml:3] key 'train.batch' is \"many\" but must be a whole number from 1 to 2147483647");
  EXPECT_EQ(refusal("train.steps = 2.5"),
            "[run.toml:1] key 'train.steps' is 2.5 but must be a whole number of at least 0");
  EXPECT_EQ(refusal("train.steps = -1"),
            "[run.toml:1] key 'train.steps' is -1 but must be a whole number of at least 0");
  EXPECT_EQ(refusal("train.batch = 5_000_000_000"),
            "[run.toml:1] key 'train.batch' is 5000000000 but must be a whole number from 1 to 2147483647");
  EXPECT_EQ(refusal("optimizer.lr = 0"), "[run.toml:1] key 'optimizer.lr' is 0 but must be a number above 0");
  EXPECT_EQ(refusal("optimizer.lr = nan"), "[run.toml:1] key 'optimizer.lr' is nan but must be a number above 0");
  EXPECT_EQ(refusal("optimizer.betas = [0.9,\n1.5]"),
            "[run.toml:2] key 'optimizer.betas[1]' is 1.5 but must be a number from 0 to 1");
  EXPECT_EQ(refusal("optimizer.betas = 0.9"),
            "[run.toml:1] key 'optimizer.betas' is 0.9 but must be a list of numbers");
  EXPECT_EQ(refusal("optimizer.name = 3"), "[run.toml:1] key 'optimizer.name' is 3 but must be a string");
  EXPECT_EQ(refusal("model.tied = 1"), "[run.toml:1] key 'model.tied' is 1 but must be true or false");
  EXPECT_EQ(refusal("model.tied = 'True'"),
            "[run.toml:1] key 'model.tied' is \"True\" but must be true or false; hint: write it in small letters");
  EXPECT_EQ(refusal("model.color = 'gren'"),
            "[run.toml:1] key 'model.color' is \"gren\" but must be one of red, green; hint: did you mean \"green\"?");
  EXPECT_EQ(refusal("data.path = [1]"),
            "[run.toml:1] key 'data.path' is [1] but must be a string or a list of strings");
  EXPECT_EQ(refusal("train = 3"), "[run.toml:1] key 'train' is 3 but must be a table");
}

TEST(FieldReader, AllFaultsComeTogether) {
  try {
    read("[train]\nbatch = 0\nstep = 4\n[optimizer]\nlr = -1");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.faults().size(), 3u);
    EXPECT_EQ(error.exit_code(), 1);
  }
}

TEST(FieldReader, NeedFailAndIgnore) {
  const Field config = read_toml("[a]\nx = 3\nold = 1", "f");
  FieldReader reader(config);
  FieldReader a = reader.section("a");
  int x = 0;
  EXPECT_TRUE(a.read("x", x));
  a.need("y");
  a.ignore({"old"});
  a.fail("x", "does not divide width {}", 8);
  const auto faults = reader.faults();
  ASSERT_EQ(faults.size(), 2u);
  EXPECT_EQ(faults[0].str(), "[f:1] key 'a.y' is missing");
  EXPECT_EQ(faults[1].str(), "[f:2] key 'a.x' is 3 but does not divide width 8");
}

TEST(FieldReader, NullIsAbsent) {
  const Field config = read_json(R"({"head_dim": null, "n": 3})", "config.json");
  FieldReader reader(config);
  int head = 7;
  EXPECT_FALSE(reader.read("head_dim", head));
  EXPECT_EQ(head, 7);
  EXPECT_FALSE(reader.has("head_dim"));
  EXPECT_TRUE(reader.has("n"));
  EXPECT_EQ(refusal_of([&] { reader.finish(); }), "[config.json:1] key 'n' is unknown; hint: known keys: head_dim");
}

TEST(FieldReader, ListsOfTables) {
  const Field config = read_toml("[[source]]\npath = 'a'\n[[source]]\npath = 'b'\nwieght = 2", "f");
  FieldReader reader(config);
  std::vector<std::string> paths;
  double weight = 1;
  for (FieldReader& source : reader.sections("source")) {
    source.read("path", paths.emplace_back());
    source.read("weight", weight);
  }
  EXPECT_EQ(paths, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(refusal_of([&] { reader.finish(); }),
            "[f:5] key 'source[1].wieght' is unknown; hint: did you mean 'source[1].weight'?");
}

TEST(Override, ValuesAreTomlElseText) {
  Field config = read_toml("[train]\nbatch = 8\n[optimizer]\nlr = 0.1", "run.toml");
  for (const char* argument : {"--train.batch=64", "train.steps=1e3", "--optimizer.name=lion",
                               "--data.path=[\"a\", \"b\"]", "--model.tied=false", "--log.dir=runs/2024-01-01",
                               "--log.day=2024-01-01", "--log.empty=", "--log.text=\"12\"", "--log.eq=a=b"})
    override_field(config, argument);
  EXPECT_EQ(
      write_json(config),
      R"({"train":{"batch":64,"steps":1000},"optimizer":{"lr":0.1,"name":"lion"},"data":{"path":["a","b"]},)"
      R"("model":{"tied":false},"log":{"dir":"runs/2024-01-01","day":"2024-01-01","empty":"","text":"12","eq":"a=b"}})");
  EXPECT_EQ(config.find("train")->find("batch")->source.str(), "command line");
}

TEST(Override, FaultsNameTheCommandLine) {
  Field config;
  override_field(config, "--train.batch=none");
  EXPECT_EQ(refusal_of([&] { settings_of(config); }),
            "[command line] key 'train.batch' is \"none\" but must be a whole number from 1 to 2147483647");
  Field other;
  override_field(other, "--train.btach=3");
  EXPECT_EQ(refusal_of([&] { settings_of(other); }),
            "[command line] key 'train.btach' is unknown; hint: did you mean 'train.batch'?");
}

TEST(Override, RefusesWhatIsNoAssignment) {
  Field config = read_toml("[train]\nbatch = 8", "run.toml");
  const auto refused = [&](const char* argument) { return refusal_of([&] { override_field(config, argument); }); };
  EXPECT_EQ(refused("--train.batch"), "[command line] '--train.batch' has no value; hint: write --section.key=value");
  EXPECT_THAT(refused("--=3"), HasSubstr("'--=3' is no key"));
  EXPECT_THAT(refused("--a b=3"), HasSubstr("'--a b=3' is no key"));
  EXPECT_EQ(refused("--train.batch.x=3"),
            "[command line] '--train.batch.x=3': key 'train.batch' is 8 (run.toml:2), not a table");
  EXPECT_EQ(refused("--train=3"),
            "[command line] '--train=3': 'train' is a section, not a key; hint: write --train.key=value");
  EXPECT_THAT(refused("--train.name=\xff"), HasSubstr("is not UTF-8"));
  EXPECT_EQ(write_json(config), R"({"train":{"batch":8}})");
}

TEST(Field, SetMakesTablesOnTheWay) {
  Field config;
  config.set("train.batch", 8);
  config.set("train.lr", 0.001);
  config.set("steps", i64(3));
  config.set("train.batch", 16);
  EXPECT_EQ(write_toml(config), "steps = 3\n\n[train]\nbatch = 16\nlr = 0.001\n");
  EXPECT_THAT(refusal_of([&] { config.set("steps.x", 1); }), HasSubstr("'x' cannot be set below 3"));
}

}  // namespace
}  // namespace stretto
