// What can be said about every key of a run without a run.
//
//   for (const KeyInfo& k : all_keys()) fmt::print("{} is {} by default\n", k.name, k.otherwise);
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/formats/fields.h"

namespace stretto {

struct KeyInfo {
  std::string name;       // "train.batch"
  std::string takes;      // "whole number from 1 to 16777216"
  std::string otherwise;  // its default, as it is written in RUN.toml or in words
  std::string meaning;
};
std::vector<KeyInfo> all_keys();  // section by section

std::string keys_text();      // for `stretto train --help-keys`
std::string keys_markdown();  // docs/keys.md

// What other tools, and earlier versions, call our keys.
std::span<const Renamed> synonyms();
// Keys that a word without a section may mean: "pipe" -> {"parallel.pipe"}, "batch-size" -> {"train.batch"}.
std::vector<std::string> keys_named(std::string_view word);

}  // namespace stretto
