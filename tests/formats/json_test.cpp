#include <gmock/gmock.h>
#include <rapidcheck.h>

#include <cmath>

#include "formats/random_fields.h"
#include "stretto/formats/fields.h"
#include "stretto/formats/inner/json_events.h"
#include "support/message.h"

namespace stretto {
namespace {

using testing::HasSubstr;

std::string json_refusal(std::string_view json) {
  return refusal_of([&] { read_json(json, "f"); });
}

TEST(Json, ReadsEveryKindWithItsLine) {
  const Field f = read_json(
      "{\n \"a\": null,\n \"b\": [true, -3,\n  2.5,\n  18446744073709551615],\n \"c\": {\"d\": \"x\\u00e9\"}\n}\n",
      "c.json");
  EXPECT_TRUE(f.find("a")->is_null());
  const Field::Array& b = *f.find("b")->array();
  EXPECT_EQ(std::get<bool>(b[0].value), true);
  EXPECT_EQ(std::get<i64>(b[1].value), -3);
  EXPECT_EQ(std::get<double>(b[2].value), 2.5);
  EXPECT_EQ(std::get<double>(b[3].value), 0x1p64);
  EXPECT_EQ(std::get<std::string>(f.find("c")->find("d")->value), "xé");
  EXPECT_EQ(f.find("a")->source.str(), "c.json:2");
  EXPECT_EQ(b[1].source.line, 3);
  EXPECT_EQ(b[2].source.line, 4);
  EXPECT_EQ(b[3].source.line, 5);
  EXPECT_EQ(f.find("c")->source.line, 6);
}

TEST(Json, RefusesWithFileAndLine) {
  EXPECT_THAT(json_refusal("{\n\"a\": 1,\n\"a\": 2}"), "[f:3] key 'a' stands twice in one object");
  EXPECT_THAT(json_refusal("[1,\n2"), HasSubstr("[f:2] is not JSON: unexpected end of input"));
  EXPECT_THAT(json_refusal("{\"a\": nul}"), HasSubstr("[f:1] is not JSON: invalid literal near"));
  EXPECT_THAT(json_refusal("[1] x"), HasSubstr("is not JSON"));
  EXPECT_THAT(json_refusal("[NaN]"), HasSubstr("is not JSON"));
  EXPECT_THAT(json_refusal(""), HasSubstr("is not JSON"));
  EXPECT_THAT(json_refusal("[1e999]"), HasSubstr("is not JSON: number out of range near '1e999'"));
  EXPECT_THAT(json_refusal("[\"\\ud800\"]"), HasSubstr("is not JSON"));
  EXPECT_THAT(json_refusal("\n\"\xc3\x28\""), "[f:2] is not UTF-8: byte 2 is 0xc3");
  EXPECT_THAT(json_refusal(std::string(1'000'000, '[')), "[f:1] nests deeper than 64 levels");
  EXPECT_THAT(json_refusal(std::string(64, '[') + std::string(64, ']')), "no error");
  // The same key in neighbours, and in an object inside an array inside an object, is no duplicate.
  EXPECT_EQ(json_refusal(R"({"a":{"a":[{"a":1},{"a":2}]},"b":{"a":3}})"), "no error");
}

TEST(Json, WhatIsWrittenReadsBackEqual) {
  EXPECT_TRUE(rc::check([] {
    const Field tree = *test::random_field(4);
    const std::string text = write_json(tree), pretty = write_json(tree, 2);
    RC_LOG() << text;
    // A double may come back as an integer of the same value ("4" for 4.0); the text is the same again.
    RC_ASSERT(write_json(read_json(text, "f")) == text);
    RC_ASSERT(write_json(read_json(pretty, "f")) == text);
  }));
}

TEST(Json, NumbersAreTheShortestThatReadBackAsTheSame) {
  EXPECT_EQ(write_json(Field(0.1)), "0.1");
  EXPECT_EQ(write_json(Field(1.0 / 3)), "0.3333333333333333");
  EXPECT_EQ(write_json(Field(INFINITY)), "null");
  EXPECT_EQ(write_json(Field(Field::Table{{"loss", Field(NAN)}, {"step", Field(3)}})), R"({"loss":null,"step":3})");
  EXPECT_TRUE(rc::check([] {
    const auto bits = *rc::gen::arbitrary<u64>();
    const double d = std::bit_cast<double>(bits);
    if (!std::isfinite(d)) return;
    const Field back = read_json("[" + write_json(Field(d)) + "]", "f");
    const auto& v = (*back.array())[0].value;
    RC_ASSERT((std::holds_alternative<double>(v) ? std::get<double>(v) : double(std::get<i64>(v))) == d);
  }));
}

TEST(Json, EventsComeInOrder) {
  struct Log : JsonEvents {
    std::string log;
    void key(std::string k) override { log += k + ":"; }
    void integer(i64 v) override { log += std::to_string(v) + ","; }
    void string(std::string s) override { log += "'" + s + "',"; }
    void begin_object() override { log += "{"; }
    void end_object() override { log += "}"; }
    void begin_array() override { log += "["; }
    void end_array() override { log += "]"; }
  } log;
  parse_json(R"({"a":[1,"x",{}],"b":{"c":2}})", "f", log);
  EXPECT_EQ(log.log, "{a:[1,'x',{}]b:{c:2,}}");
}

}  // namespace
}  // namespace stretto
