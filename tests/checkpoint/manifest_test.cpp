#include "stretto/checkpoint/manifest.h"

#include <gmock/gmock.h>
#include "support/message.h"

namespace stretto {
namespace {

using testing::HasSubstr;

Manifest sample_manifest() {
  return {.step = 100,
          .seed = ~u64(0),
          .config = "[model]\nfamily = \"gpt2\"\n",
          .optimizer = "adamw",
          .states = {"m", "v"},
          .shards = {{"a.safetensors", 24, 1, {{"parameter/x", 2}, {"state/m/x", 3}}}, {"b.safetensors", 8, 4, {}}},
          .extras = {{"tokenizer.json", 2, 5, {}}}};
}

std::string refusal(const std::string& text) {
  return refusal_of([&] { parse_manifest(text, "m.json"); });
}

TEST(Manifest, IsReadBackAsItWas) {
  EXPECT_EQ(parse_manifest(manifest_text(sample_manifest()), "m.json"), sample_manifest());
  EXPECT_EQ(parse_manifest(manifest_text({}), "m.json"), Manifest());
}

TEST(Manifest, EveryChangedByteIsSeen) {
  const std::string text = manifest_text(sample_manifest());
  for (std::size_t i = 0; i < text.size(); ++i)
    for (const char change : {char(1), char(0x20)}) {
      std::string changed = text;
      changed[i] = char(changed[i] ^ change);
      Manifest m;
      const std::string said = refusal_of([&] { m = parse_manifest(changed, "m.json"); });
      if (said == "no error") {  // blanks, and hex digits in the other case
        EXPECT_EQ(m, sample_manifest()) << "byte " << i;
      }
    }
  for (std::size_t n = 0; n + 1 < text.size(); ++n) EXPECT_NE(refusal(text.substr(0, n)), "no error") << n;
}

TEST(Manifest, WhatIsNoneIsRefused) {
  EXPECT_THAT(refusal("{}"), HasSubstr("[m.json] is no manifest of a checkpoint; hint: it should say"));
  EXPECT_THAT(refusal("[1]"), HasSubstr("is no manifest"));
  EXPECT_THAT(refusal(R"({"format": "stretto checkpoint", "version": 3})"),
              HasSubstr("has version 3; this program reads versions 1 and 2; hint: use the program that wrote it"));
  EXPECT_THAT(refusal(R"({"format": "stretto checkpoint", "version": 1})"), HasSubstr("is not as it was written"));
}

TEST(Manifest, NamesStayInTheDirectory) {
  for (const char* name : {"../a", "/etc/passwd", "", ".", "..", "manifest.json", "tokenizer.json"}) {
    Manifest m = sample_manifest();
    m.shards[1].name = name;
    EXPECT_THAT(refusal(manifest_text(m)), HasSubstr("must be the name of a file of its own")) << name;
  }
  Manifest twice = sample_manifest();
  twice.shards[1].tensors = {{"parameter/x", 2}};
  EXPECT_THAT(refusal(manifest_text(twice)), HasSubstr("names 'parameter/x' a second time"));
  Manifest before = sample_manifest();
  before.step = -1;
  EXPECT_NE(refusal(manifest_text(before)), "no error");
}

}  // namespace
}  // namespace stretto
