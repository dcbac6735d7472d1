#include "stretto/config/describe.h"

#include <algorithm>

#include "stretto/config/inner/keys.h"

namespace stretto {
namespace {

struct Describing {
  std::string path;
  std::vector<KeyInfo>& all;

  template <class T, class... L>
  void operator()(const Key& key, T&& value, const L&... limits) {
    const std::string otherwise = key.otherwise.empty() ? field_of(value, limits...).str() : key.otherwise;
    all.push_back(
        {fmt::format("{}.{}", path, key.name), words_of(value, limits...), otherwise, std::string(key.meaning)});
  }
  template <class T>
  void table(const Key& key, T& value) {
    keys_of(value, Describing{fmt::format("{}.{}", path, key.name), all});
  }
  template <class T>
  void table(const Key& key, std::optional<T>&) {
    T inner;
    table(key, inner);
    for (KeyInfo& k : all)
      if (k.name.starts_with(fmt::format("{}.{}.", path, key.name))) k.meaning += fmt::format(" ({})", key.meaning);
  }
};

std::string section_of(const KeyInfo& k) { return k.name.substr(0, k.name.find('.')); }

// Of one table cell.
std::string escaped(std::string text) {
  for (std::size_t at = 0; (at = text.find_first_of("|<", at)) != text.npos; at += 2) text.insert(at, 1, '\\');
  return text;
}

}  // namespace

std::vector<KeyInfo> all_keys() {
  std::vector<KeyInfo> all;
  RunConfig run;
  ModelBase base;
  keys_of(base, Describing{"model", all});
  keys_of(run.model.config, Describing{"model", all});
  keys_of(run.data, Describing{"data", all});
  keys_of(run.train, Describing{"train", all});
  keys_of(run.optimizer, Describing{"optimizer", all});
  keys_of(run.finetune, Describing{"finetune", all});
  keys_of(run.parallel, Describing{"parallel", all});
  keys_of(run.checkpoint, Describing{"checkpoint", all});
  keys_of(run.log, Describing{"log", all});
  keys_of(run.plan, Describing{"plan", all});
  return all;
}

std::string keys_text() {
  std::string text, section;
  for (const KeyInfo& k : all_keys()) {
    if (section_of(k) != section) section = section_of(k), text += fmt::format("\n[{}]\n", section);
    text += fmt::format("  --{} = {}\n      {}\n      {}\n", k.name, k.otherwise, k.meaning, k.takes);
  }
  return "Every key of a run: its default, what it means, what it takes.\n" + text;
}

std::string keys_markdown() {
  std::string text =
      "# Keys\n\n"
      "Every key of a run. `RUN.toml` has them below their sections, the command line takes each as\n"
      "`--section.key=value`. `scripts/keys` makes this page from what `stretto train --help-keys` says.\n";
  std::string section;
  for (const KeyInfo& k : all_keys()) {
    if (section_of(k) != section) {
      section = section_of(k);
      text += fmt::format("\n## [{}]\n\n| key | default | meaning | takes |\n|---|---|---|---|\n", section);
    }
    text +=
        fmt::format("| `{}` | {} | {} | {} |\n", k.name, escaped(k.otherwise), escaped(k.meaning), escaped(k.takes));
  }
  return text;
}

std::vector<std::string> keys_named(std::string_view word) {
  std::vector<std::string> found;
  for (const KeyInfo& k : all_keys())
    // [plan] narrows keys of other sections by the same names.
    if (k.name.substr(k.name.find('.') + 1) == word && (found.empty() || section_of(k) != "plan"))
      found.push_back(k.name);
  if (!found.empty()) return found;
  for (const Renamed& r : synonyms())
    if (r.is(word)) found.emplace_back(r.ours);
  return found;
}

}  // namespace stretto
