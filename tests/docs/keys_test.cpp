// Pages that speak of keys speak of those that there are, and of all of them where they list them.
#include <gmock/gmock.h>

#include <regex>
#include <set>

#include "pages.h"
#include "stretto/config/describe.h"
#include "support/files.h"

namespace stretto {
namespace {

using testing::Contains;
using testing::ElementsAre;

std::set<std::string> known_keys() {
  std::set<std::string> all;
  for (const KeyInfo& k : all_keys()) all.insert(k.name);
  return all;
}

// Whatever looks like section.key; names of files and functions are none.
std::vector<std::string> keys_spoken_of(const std::string& text) {
  static const std::regex key(
      R"((^|[\s`'(-])((?:model|data|train|optimizer|finetune|parallel|checkpoint|log)\.[a-z_]+)(?![a-z_/*(]))");
  static const std::set<std::string> endings{"txt", "bin",         "toml", "json", "jsonl", "md",
                                             "csv", "safetensors", "html", "h",    "cpp"};
  std::vector<std::string> all;
  for (std::sregex_iterator it(text.begin(), text.end(), key), end; it != end; ++it)
    if (const std::string found = (*it)[2]; !endings.contains(found.substr(found.find('.') + 1))) all.push_back(found);
  return all;
}

TEST(DocsKeys, AreFound) {
  EXPECT_THAT(keys_spoken_of("`train.steps` and --parallel.pipe=2 (log.every), log.txt, x.train.y data.md a/train.b model.save()"),
              ElementsAre("train.steps", "parallel.pipe", "log.every"));
}

TEST(DocsKeys, TheListIsUpToDate) {
  EXPECT_EQ(test::text_of(STRETTO_SOURCE "/docs/keys.md"), keys_markdown()) << "scripts/keys makes it anew";
}

TEST(DocsKeys, EveryKeyThatAPageSpeaksOfExists) {
  std::set<std::string> known = known_keys();
  for (const std::string& name : known_keys())  // "parallel.link" of "parallel.link.latency"
    if (const std::size_t dot = name.rfind('.'); dot != name.find('.')) known.insert(name.substr(0, dot));
  for (const auto& page : test::pages())
    for (const std::string& key : keys_spoken_of(test::text_of(page))) EXPECT_THAT(known, Contains(key)) << page;
}

}  // namespace
}  // namespace stretto
