// Reading of TOML: the rules of TOML 1.0, messages, and agreement with an independent parser.
#include <gmock/gmock.h>
#include <rapidcheck.h>

#include <cmath>

#include "formats/random_fields.h"
#include "stretto/formats/fields.h"

#undef TOML_SHARED_LIB
#undef TOML_HEADER_ONLY
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#define TOML_ASSERT(condition) \
  static_cast<void>(0)  // some of them fail on bad input, where parsing goes on all the same
#include <toml++/toml.h>
#include "support/message.h"

namespace stretto {
namespace {

using testing::HasSubstr;

std::string json_of(std::string_view toml) { return write_json(read_toml(toml, "f")); }
std::string toml_refusal(std::string_view toml) {
  return refusal_of([&] { read_toml(toml, "f"); });
}

TEST(Toml, Values) {
  EXPECT_EQ(json_of("a = 1\nb = -17\nc = +3\nd = 1_000\ne = 0xDEAD_beef\nf = 0o755\ng = 0b1101\nh = -0"),
            R"({"a":1,"b":-17,"c":3,"d":1000,"e":3735928559,"f":493,"g":13,"h":0})");
  EXPECT_EQ(json_of("a = 1.5\nb = -0.01\nc = 5e+22\nd = 1e06\ne = -2E-2\nf = 6.626e-34\ng = 9_2.5_0"),
            R"({"a":1.5,"b":-0.01,"c":5e+22,"d":1000000,"e":-0.02,"f":6.626e-34,"g":92.5})");
  EXPECT_EQ(json_of("a = true\nb = false"), R"({"a":true,"b":false})");
  EXPECT_EQ(json_of("a = 9223372036854775807\nb = -9223372036854775808"),
            R"({"a":9223372036854775807,"b":-9223372036854775808})");
  const Field special = read_toml("a = inf\nb = -inf\nc = nan\nd = +inf\ne = -nan", "f");
  EXPECT_EQ(std::get<double>(special.find("b")->value), -INFINITY);
  EXPECT_EQ(std::get<double>(special.find("d")->value), INFINITY);
  EXPECT_TRUE(std::isnan(std::get<double>(special.find("c")->value)));
}

TEST(Toml, Strings) {
  EXPECT_EQ(json_of(R"(a = "x\ty\n\"\\ \u00e9 \U0001F600")"), R"({"a":"x\ty\n\"\\ é 😀"})");
  EXPECT_EQ(json_of(R"(a = 'C:\x "q"')"), R"({"a":"C:\\x \"q\""})");
  EXPECT_EQ(json_of("a = \"\"\"\none\r\ntwo\"\"\""), R"({"a":"one\ntwo"})");
  EXPECT_EQ(json_of("a = \"\"\"one \\\n\n   two\"\"\""), R"({"a":"one two"})");
  EXPECT_EQ(json_of("a = '''\nit's ''two'' \\n'''"), R"({"a":"it's ''two'' \\n"})");
  EXPECT_EQ(json_of("a = \"\"\"\"q\"\"\"\"\""), R"({"a":"\"q\"\""})");
  EXPECT_EQ(json_of("a = \"\"\nb = ''\nc = \"\"\"\"\"\""), R"({"a":"","b":"","c":""})");
}

TEST(Toml, TablesArraysAndKeys) {
  EXPECT_EQ(json_of("# c\n\n[a.b]  # c\nx = 1\r\n[a]\ny = 2\n[ 'q r' . \"s\" ]\n"),
            R"({"a":{"b":{"x":1},"y":2},"q r":{"s":{}}})");
  EXPECT_EQ(json_of("a.b.c = 1\na.b.d = 2\na . e = 3\n3.14 = 4"), R"({"a":{"b":{"c":1,"d":2},"e":3},"3":{"14":4}})");
  EXPECT_EQ(json_of("a = [1, [2, 'x'], # c\n  3.5,\n]\nb = []"), R"({"a":[1,[2,"x"],3.5],"b":[]})");
  EXPECT_EQ(json_of("a = { x = 1, y.z = 2, w = {} }"), R"({"a":{"x":1,"y":{"z":2},"w":{}}})");
  EXPECT_EQ(json_of("[[a]]\nx = 1\n[a.b]\ny = 2\n[[a]]\n[[a.c]]\nz = 3"),
            R"({"a":[{"x":1,"b":{"y":2}},{"c":[{"z":3}]}]})");
  EXPECT_EQ(json_of("[f]\na.c = 1\na.t.s = true\n[f.a.n]\nx = 1"), R"({"f":{"a":{"c":1,"t":{"s":true},"n":{"x":1}}}})");
  EXPECT_EQ(json_of("\xEF\xBB\xBF"
                    "a = 1"),
            R"({"a":1})");
  EXPECT_EQ(json_of(""), "{}");
}

TEST(Toml, PositionsAreKept) {
  const Field f = read_toml("a = 1\n\n[s]\nb = [\n 1,\n 2]\nc = '''\n\n'''\nd = 2", "dir/run.toml");
  EXPECT_EQ(f.find("a")->source.str(), "dir/run.toml:1");
  EXPECT_EQ(f.find("s")->source.line, 3);
  EXPECT_EQ(f.find("s")->find("b")->source.line, 4);
  EXPECT_EQ((*f.find("s")->find("b")->array())[1].source.line, 6);
  EXPECT_EQ(f.find("s")->find("d")->source.line, 10);
}

TEST(Toml, MessagesNameLineAndColumn) {
  EXPECT_EQ(toml_refusal("a = 1\nb 2"), "[f:2] column 3: '=' is expected after 'b', not '2'");
  EXPECT_EQ(toml_refusal("a = "), "[f:1] column 5: a value is expected, not the end");
  EXPECT_EQ(toml_refusal("a = \nb = 1"), "[f:1] column 5: a value is expected, not the end of the line");
  EXPECT_EQ(toml_refusal("a = adamw"), "[f:1] column 5: 'adamw' is no value");
  EXPECT_EQ(toml_refusal("a = 1 2"), "[f:1] column 7: '2' follows on the same line");
  EXPECT_EQ(toml_refusal("a = 1\n\na = 2"), "[f:3] key 'a' stands twice; it was first given in line 1");
  EXPECT_EQ(toml_refusal("[t]\n[u]\n[t]"), "[f:3] key 't' stands twice; it was first given in line 1");
  EXPECT_EQ(toml_refusal("a = 1\n[a.b]"), "[f:2] 'a' is an integer since line 1 and cannot be opened as a table");
  EXPECT_EQ(toml_refusal("a = \"x"), "[f:1] column 7: a string has no end: the end where '\"' is expected");
  EXPECT_EQ(toml_refusal("\na = '''x\n\n"), "[f:4] the string that begins in line 2 has no end");
  EXPECT_EQ(toml_refusal("a = \"\\q\""), "[f:1] column 7: '\\' before 'q' means nothing");
  EXPECT_EQ(toml_refusal("a = \"\\ud800\""), "[f:1] column 7: '\\ud800' is no character");
  EXPECT_EQ(toml_refusal("a = [1 2]"), "[f:1] column 8: ',' or ']' is expected, not '2'");
  EXPECT_EQ(toml_refusal("a = { b = 1"), "[f:1] column 12: ',' or '}' is expected, not the end");
  EXPECT_EQ(toml_refusal("a = 2024-01-01"), "[f:1] column 5: '2024-01-01' is a date or a time; put it in quotes");
  EXPECT_EQ(toml_refusal("a = 012"), "[f:1] column 5: '012' begins with a zero");
  EXPECT_EQ(toml_refusal("a = 9223372036854775808"), "[f:1] column 5: '9223372036854775808' does not fit 64 bits");
  EXPECT_EQ(toml_refusal("a = 1e999"), "[f:1] column 5: '1e999' does not fit a double");
  EXPECT_EQ(toml_refusal("ok = 1\nx = \"\xff\""), "[f:2] is not UTF-8: byte 12 is 0xff");
  EXPECT_EQ(toml_refusal("a = 1\rb = 2"), "[f:1] column 6: '\\x0d' follows on the same line");
}

TEST(Toml, RefusesWhatTomlRefuses) {
  for (const char* bad : {"a = 1__0",
                          "a = _1",
                          "a = 1_",
                          "a = 1.",
                          "a = .5",
                          "a = 1.e5",
                          "a = 0x",
                          "a = -0x1",
                          "a = 0b2",
                          "a = 1e",
                          "a = 1e_5",
                          "a = 1_.5",
                          "a = 00.5",
                          "a = +-1",
                          "a = Inf",
                          "a = True",
                          "= 1",
                          "a. = 1",
                          ".a = 1",
                          "a..b = 1",
                          "[a",
                          "[]",
                          "[[a]",
                          "[a]]",
                          "[a] b = 1",
                          "a = {b = 1,}",
                          "a = {b = 1\n}",
                          "a = {b = 1, b = 2}",
                          "a = {b = 1}\na.c = 2",
                          "a = {b = 1}\n[a.c]",
                          "a = [1]\n[[a]]",
                          "[a]\n[[a]]",
                          "[[a]]\n[a]",
                          "a.b = 1\na.b.c = 2",
                          "a.b = 1\n[a]",
                          "[a.b]\n[a]\nb.c = 1",
                          "[f]\na.c = 1\n[f.a]",
                          "\"\"\"k\"\"\" = 1",
                          "a = \"x\ny\"",
                          "a = 'x\ny'",
                          "a = \"\x01\"",
                          "# \x01",
                          "a = '''x''''''",
                          "a = [1,,2]",
                          "a = [,]",
                          "a b = 1",
                          "a = \"\"\"x\"\"\" \"",
                          "a = b = 1",
                          "é = 1",
                          "a = 1 [b]"})
    EXPECT_NE(toml_refusal(bad), "no error") << bad;
}

TEST(Toml, DepthIsLimitedEverywhere) {
  const auto times = [](const char* s, int n) {
    std::string all;
    while (n-- > 0) all += s;
    return all;
  };
  for (const std::string& deep :
       {times("a.", 200'000) + "a = 1", "[" + times("a.", 200'000) + "a]", "x = " + times("[", 200'000),
        "x = " + times("{a=", 200'000), "x = " + times("[{a.a=", 200'000), times("\"\".", 100'000) + "a = 1"})
    EXPECT_THAT(toml_refusal(deep), HasSubstr("nests deeper than 64 levels"));
  std::string headers;  // each header one level below the last, through arrays of tables
  for (int i = 1; i < 100; ++i) headers += "[[" + times("a.", i - 1) + "a]]\n";
  EXPECT_THAT(toml_refusal(headers), HasSubstr("nests deeper than 64 levels"));
  EXPECT_EQ(toml_refusal("x = " + times("[", 60) + times("]", 60)), "no error");
}

// ── against toml++ ──

template <class T>
bool is(const Field& field, const T& value) {
  const T* held = std::get_if<T>(&field.value);
  return held && *held == value;
}

bool same(const Field& ours, const toml::node& theirs) {
  if (const auto* table = theirs.as_table()) {
    if (!ours.table() || ours.table()->size() != table->size()) return false;
    for (const auto& [key, node] : *table) {
      const Field* found = ours.find(key.str());
      if (!found || !same(*found, node)) return false;
    }
    return true;
  }
  if (const auto* array = theirs.as_array()) {
    if (!ours.array() || ours.array()->size() != array->size()) return false;
    for (std::size_t i = 0; i < array->size(); ++i)
      if (!same((*ours.array())[i], *array->get(i))) return false;
    return true;
  }
  if (const auto* v = theirs.as_string()) return is<std::string>(ours, v->get());
  if (const auto* v = theirs.as_integer()) return is<i64>(ours, v->get());
  if (const auto* v = theirs.as_boolean()) return is<bool>(ours, v->get());
  if (const auto* v = theirs.as_floating_point()) {
    const auto* d = std::get_if<double>(&ours.value);
    return d && ((std::isnan(*d) && std::isnan(v->get())) || *d == v->get());
  }
  return false;
}

TEST(Toml, WhatWeWriteAnotherParserReadsEqual) {
  EXPECT_TRUE(rc::check([] {
    const Field tree = *test::random_table(3);
    const std::string text = write_toml(tree);
    RC_LOG() << text;
    RC_ASSERT(same(tree, toml::parse(text)));
    RC_ASSERT(write_json(read_toml(text, "f")) == write_json(test::in_toml_order(tree)));
  }));
}

// Texts of valid snippets, some spoiled: both parsers take or refuse the same ones, and read the same values.
TEST(Toml, AgreesWithAnotherParserOnSpoiledText) {
  static const std::vector<std::string> snippets{"a = 1\n",
                                                 "[t]\n",
                                                 "[t.u]\n",
                                                 "[[l]]\n",
                                                 "[[l.m]]\n",
                                                 "b.c = 2.5\n",
                                                 "b.d = \"x\\n\"\n",
                                                 "s = 'lit'\n",
                                                 "m = \"\"\"\nx\"\"\"\n",
                                                 "x = [1, 2,]\n",
                                                 "y = {k = 1, l.m = 2}\n",
                                                 "# c\n",
                                                 "z = 0x1F\n",
                                                 "\"q\" = -1e3\n",
                                                 "i = [[1], ['a', {b = 2}]]\n",
                                                 "n = inf\n",
                                                 "t.v = true\n",
                                                 "u = 1_000\n"};
  static const std::string letters = "[]{}=.,\"'#\n\t \\_-+:01eExatl";
  int both = 0;
  const bool ok = rc::check([&] {
    std::string text;
    for (const auto& s : *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(snippets))) text += s;
    const int edits = *rc::gen::inRange(0, 3);
    for (int i = 0; i < edits && !text.empty(); ++i) {
      const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
      const char letter = *rc::gen::elementOf(letters);
      switch (*rc::gen::inRange(0, 3)) {
        case 0:
          text[at] = letter;
          break;
        case 1:
          text.insert(at, 1, letter);
          break;
        default:
          text.erase(at, 1);
      }
    }
    RC_LOG() << text;
    std::optional<toml::table> theirs;
    try {
      theirs = toml::parse(text);
    } catch (const toml::parse_error& error) {
      RC_LOG() << error.description();
    }
    std::optional<Field> ours;
    const std::string message = refusal_of([&] { ours = read_toml(text, "f"); });
    RC_LOG() << message;
    if (message.find("is a date") != std::string::npos) return;
    RC_ASSERT(ours.has_value() == theirs.has_value());
    if (ours) RC_ASSERT(same(*ours, *theirs)), ++both;
  });
  EXPECT_TRUE(ok);
  EXPECT_GT(both, 5);
}

}  // namespace
}  // namespace stretto
