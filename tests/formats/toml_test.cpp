// Reading of TOML: the rules of TOML 1.0, order and positions, messages, limits.
#include <gmock/gmock.h>
#include <rapidcheck.h>

#include <cmath>

#include "formats/random_fields.h"
#include "stretto/formats/fields.h"

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
  EXPECT_EQ(toml_refusal("a = 1\nb 2"), "[f:2] column 3, key-value pair: expected '=', saw '2'; the line is 'b 2'");
  EXPECT_EQ(toml_refusal("a = "), "[f:1] column 5, key-value pair: encountered end-of-file; the line is 'a = '");
  EXPECT_EQ(toml_refusal("a = \nb = 1"),
            "[f:1] column 5, key-value pair: expected value, saw '\\n'; the line is 'a = '");
  EXPECT_EQ(toml_refusal("a = adamw"),
            "[f:1] column 5, value: could not determine value type; the line is 'a = adamw'");
  EXPECT_EQ(toml_refusal("a = 1 2"),
            "[f:1] column 7, key-value pair: expected a comment or whitespace, saw '2'; the line is 'a = 1 2'");
  EXPECT_EQ(toml_refusal("a = 1\n\na = 2"),
            "[f:3] column 5, key-value pair: cannot redefine existing integer 'a'; the line is 'a = 2'");
  EXPECT_EQ(toml_refusal("[t]\n[u]\n[t]"),
            "[f:3] column 1, table header: cannot redefine existing table 't'; the line is '[t]'");
  EXPECT_EQ(toml_refusal("a = 1\n[a.b]"),
            "[f:2] column 6, table header: cannot redefine existing integer 'a.b' as table; the line is '[a.b]'");
  EXPECT_EQ(toml_refusal("a = \"x"), "[f:1] column 7, string: encountered end-of-file; the line is 'a = \"x'");
  EXPECT_EQ(toml_refusal("\na = '''x\n\n"), "[f:3] column 2, literal string: encountered end-of-file; the line is ''");
  EXPECT_EQ(toml_refusal("a = \"\\q\""),
            "[f:1] column 7, string: unknown escape sequence '\\q'; the line is 'a = \"\\q\"'");
  EXPECT_EQ(toml_refusal("a = \"\\ud800\""),
            "[f:1] column 12, unicode scalar sequence: unicode surrogates (U+D800 - U+DFFF) are explicitly prohibited; "
            "the line is 'a = \"\\ud800\"'");
  EXPECT_EQ(toml_refusal("a = [1 2]"),
            "[f:1] column 8, array: expected comma or closing ']', saw '2'; the line is 'a = [1 2]'");
  EXPECT_EQ(toml_refusal("a = { b = 1"),
            "[f:1] column 12, inline table: encountered end-of-file; the line is 'a = { b = 1'");
  EXPECT_EQ(toml_refusal("a = 2024-01-01"), "[f:1] column 5: this is a date or a time; put it in quotes");
  EXPECT_EQ(toml_refusal("a = 012"),
            "[f:1] column 8, decimal integer: leading zeroes are prohibited; the line is 'a = 012'");
  EXPECT_EQ(toml_refusal("a = 9223372036854775808"),
            "[f:1] column 24, decimal integer: '9223372036854775808' is not representable in 64 bits; the line is 'a = "
            "9223372036854775808'");
  EXPECT_EQ(toml_refusal("a = 1e999"),
            "[f:1] column 10, floating-point: '1e999' could not be interpreted as a value; the line is 'a = 1e999'");
  EXPECT_EQ(toml_refusal("ok = 1\nx = \"\xff\""), "[f:2] is not UTF-8: byte 12 is 0xff");
  EXPECT_EQ(toml_refusal("a = 1\rb = 2"),
            "[f:1] column 7, key-value pair: expected '\\n' after '\\r', saw 'b'; the line is 'a = 1\\x0db = 2'");
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
       {times("a.", 100'000) + "a = 1", "[" + times("a.", 100'000) + "a]", "x = " + times("[", 100'000),
        "x = " + times("{a=", 100'000), "x = " + times("[{a.a=", 100'000), times("\"\".", 100'000) + "a = 1"})
    EXPECT_THAT(toml_refusal(deep), HasSubstr("nests deeper than 64 levels"));
  std::string headers;  // each header one level below the last, through arrays of tables
  for (int i = 1; i < 100; ++i) headers += "[[" + times("a.", i - 1) + "a]]\n";
  EXPECT_THAT(toml_refusal(headers), HasSubstr("nests deeper than 64 levels"));
  EXPECT_EQ(toml_refusal("x = " + times("[", 60) + times("]", 60)), "no error");
}

// What toml++ sorts by name stands as the file has it.
TEST(Toml, WhatWeWriteReadsBackInItsOrder) {
  EXPECT_TRUE(rc::check([] {
    const Field tree = *test::random_table(3);
    const std::string text = write_toml(tree);
    RC_LOG() << text;
    RC_ASSERT(write_json(read_toml(text, "f")) == write_json(test::in_toml_order(tree)));
  }));
}

TEST(Toml, OrderOfTheFileIsKept) {
  EXPECT_EQ(json_of("z = 1\na = 2\nm.y = 3\nm.b = 4\n[t.u]\nd = 5\n[s]\nc = {q = 6, p = 7}\n[t]\na = 8"),
            R"({"z":1,"a":2,"m":{"y":3,"b":4},"t":{"u":{"d":5},"a":8},"s":{"c":{"q":6,"p":7}}})");
}

TEST(Toml, NestingIsNotCountedInTextAndComments) {
  const std::string many(200, '['), dots(200, '.');
  EXPECT_EQ(toml_refusal("# " + many + dots), "no error");
  EXPECT_EQ(toml_refusal("a = \"\\\"" + many + "\""), "no error");
  EXPECT_EQ(toml_refusal("a = '" + many + dots + "' # '"), "no error");
  EXPECT_EQ(toml_refusal("a = \"\"\"\n" + many + "\"\"" + dots + "\n\"\"\"\"\"\nb = 1"), "no error");
  EXPECT_EQ(toml_refusal("a = '''" + many + "\\'''''\nb.c = " + many), "[f:2] nests deeper than 64 levels");
  std::string numbers = "a = [";
  for (int i = 0; i < 200; ++i) numbers += "1.5, ";
  EXPECT_EQ(toml_refusal(numbers + "]"), "no error");
}

// What a parser may ask of a letter: is it a blank? In keys, after a line that goes on, after a backslash.
TEST(Toml, LettersAreNoBlanks) {
  EXPECT_THAT(toml_refusal("\xC3\xA9 = 1"), HasSubstr("[f:1] column 1"));
  EXPECT_THAT(toml_refusal("a = \xC3\xA9"), HasSubstr("[f:1] column 5"));
  EXPECT_EQ(json_of("a = \"\"\"x \\\n  \xC3\xA9\"\"\""), "{\"a\":\"x \xC3\xA9\"}");
  EXPECT_NE(toml_refusal("a = \"\"\"\\\xC3\xA9\"\"\""), "no error");
}

TEST(Toml, LengthIsLimited) {
  EXPECT_EQ(toml_refusal(std::string(1 << 20, '\n') + "a = 1"),
            "[f] has 1048581 bytes, more than the 1048576 that TOML may have here");
}

}  // namespace
}  // namespace stretto
