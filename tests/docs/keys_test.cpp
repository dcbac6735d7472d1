// Pages that speak of keys speak of those that there are, and of all of them where they list them.
#include <gmock/gmock.h>

#include <regex>
#include <set>
#include <sstream>

#include "pages.h"
#include "stretto/config/describe.h"
#include "support/files.h"

namespace stretto {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsSupersetOf;

std::set<std::string> known_keys() {
  std::set<std::string> all;
  for (const KeyInfo& k : all_keys()) all.insert(k.name);
  return all;
}

// "link" of "parallel.link.latency".
std::set<std::string> keys_of_section(const std::string& section) {
  std::set<std::string> all;
  for (const std::string& name : known_keys())
    if (name.starts_with(section + ".")) {
      const std::string rest = name.substr(section.size() + 1);
      all.insert(rest.substr(0, rest.find('.')));
    }
  return all;
}

// The words between backticks.
std::set<std::string> words_in_ticks(const std::string& text) {
  static const std::regex ticks("`([a-z_ ]+)`");
  std::set<std::string> all;
  for (std::sregex_iterator it(text.begin(), text.end(), ticks), end; it != end; ++it) {
    std::istringstream words((*it)[1]);
    for (std::string word; words >> word;) all.insert(word);
  }
  return all;
}

// Whatever looks like section.key; names of files are none.
std::vector<std::string> keys_spoken_of(const std::string& text) {
  static const std::regex key(
      R"((^|[\s`'(-])((?:model|data|train|optimizer|finetune|parallel|checkpoint|log)\.[a-z_]+)(?![a-z_/*]))");
  static const std::set<std::string> endings{"txt", "bin",         "toml", "json", "jsonl", "md",
                                             "csv", "safetensors", "html", "h",    "cpp"};
  std::vector<std::string> all;
  for (std::sregex_iterator it(text.begin(), text.end(), key), end; it != end; ++it)
    if (const std::string found = (*it)[2]; !endings.contains(found.substr(found.find('.') + 1))) all.push_back(found);
  return all;
}

TEST(DocsKeys, AreFound) {
  EXPECT_THAT(keys_spoken_of("`train.steps` and --parallel.pipe=2 (log.every), log.txt, x.train.y data.md a/train.b"),
              ElementsAre("train.steps", "parallel.pipe", "log.every"));
  EXPECT_THAT(words_in_ticks("`lr decay`, (`floor`) and `runs/<name>`"), ElementsAre("decay", "floor", "lr"));
}

TEST(DocsKeys, TheListIsUpToDate) {
  EXPECT_EQ(test::text_of(STRETTO_SOURCE "/docs/keys.md"), keys_markdown()) << "scripts/keys makes it anew";
}

TEST(DocsKeys, TheTableOfSectionsHasAllAndNoOthers) {
  static const std::regex row(R"(^\| `\[(\w+)\]` \| (.*) \|$)");
  std::istringstream lines(test::text_of(STRETTO_SOURCE "/docs/architecture.md"));
  int rows = 0;
  for (std::string line; std::getline(lines, line);) {
    std::smatch m;
    if (!std::regex_match(line, m, row)) continue;
    ++rows;
    EXPECT_EQ(words_in_ticks(m[2]), keys_of_section(m[1])) << "[" << m[1] << "]";
  }
  EXPECT_EQ(rows, 8);
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
