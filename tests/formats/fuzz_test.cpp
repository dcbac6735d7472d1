// Bytes changed at random: every parser reads the result or refuses it with an Error, and never does anything else.
#include <gmock/gmock.h>
#include <rapidcheck.h>

#include <cstring>

#include "stretto/formats/fields.h"
#include "stretto/formats/mapped_file.h"
#include "stretto/formats/safetensors.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> seeds(const fs::path& directory) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(directory)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> texts;
  for (const auto& path : paths) texts.emplace_back(MappedFile(path).text());
  return texts;
}

// One to eight changes: a byte replaced, bytes removed, a piece repeated, a number made absurd.
std::string mutated(std::string text) {
  static const std::vector<std::string> odd{
      "-1", "18446744073709551615", "9223372036854775807", "1e308", "[[[[", "{\"a\":", "\xff", "\"", "", "null", "0"};
  for (int n = *rc::gen::inRange(1, 9); n > 0; --n) {
    const auto at = *rc::gen::inRange<std::size_t>(0, text.size() + 1);
    const auto length = std::min(*rc::gen::inRange<std::size_t>(0, 20), text.size() - at);
    switch (*rc::gen::inRange(0, 4)) {
      case 0:
        if (at < text.size()) text[at] = char(*rc::gen::inRange(0, 256));
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(at, length));
        break;
      default:
        text.replace(at, length, *rc::gen::elementOf(odd));
    }
  }
  return text;
}

// Runs `parse` on changed seeds; true when it only ever returns or throws Error.
template <class F>
void survives(const std::string& folder, F parse) {
  const auto all = seeds(fs::path(STRETTO_SOURCE) / "tests/fuzz/corpus" / folder);
  ASSERT_FALSE(all.empty());
  int refused = 0;
  EXPECT_TRUE(rc::check([&] {
    const std::string text = mutated(*rc::gen::elementOf(all));
    try {
      parse(text);
    } catch (const Error& error) {
      RC_ASSERT(error.exit_code() == 1 || error.exit_code() == 2);
      RC_ASSERT(std::string(error.what()).size() < 2000u);
      ++refused;
    }
  }));
  EXPECT_GT(refused, 0);
}

TEST(Fuzz, SafeTensors) {
  survives("safetensors", [](const std::string& text) {
    const auto header = parse_safetensors(std::as_bytes(std::span(text)), "f");
    for (const auto& [name, tensor] : header.tensors) values<double>(tensor, name);
  });
}

// The header alone is changed, with its length kept right, so that more than the length check is reached.
TEST(Fuzz, SafeTensorsHeader) {
  survives("safetensors", [](const std::string& text) {
    std::string file(8, '\0');
    const u64 length = text.size() > 8 ? text.size() - 8 : 0;
    std::memcpy(file.data(), &length, 8);
    file += text.substr(std::min<std::size_t>(8, text.size()));
    parse_safetensors(std::as_bytes(std::span(file)), "f");
  });
}

TEST(Fuzz, Json) {
  survives("json", [](const std::string& text) { write_json(read_json(text, "f")); });
}

TEST(Fuzz, Toml) {
  survives("toml", [](const std::string& text) { write_toml(read_toml(text, "f")); });
}

TEST(Fuzz, Override) {
  survives("toml", [](const std::string& text) {
    Field root;
    override_field(root, text);
  });
}

}  // namespace
}  // namespace stretto
