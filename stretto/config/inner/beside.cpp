#include "stretto/config/inner/beside.h"

#include <glob.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "stretto/base/files.h"
#include "stretto/schedule/builders.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;

// Keys whose values name files that are read.
constexpr std::pair<std::string_view, std::string_view> naming_files[] = {
    {"model", "config"},     {"model", "from"},        {"model", "graph"},      {"data", "path"},
    {"data", "mixture"},     {"data", "tokenizer"},    {"data", "template"},    {"data", "validation"},
    {"finetune", "adapter"}, {"parallel", "schedule"}, {"parallel", "cluster"}, {"parallel", "times"},
};

// Words that a key may have in place of a file.
bool is_word(const std::string& name) {
  const std::vector<std::string> schedules = schedule_names();
  return name == "bytes" || name == "none" || std::find(schedules.begin(), schedules.end(), name) != schedules.end();
}

// Globs, and sets of Megatron's, whose names lack the extension, too.
bool finds(const std::string& name) {
  glob_t found{};
  const bool any = ::glob(name.c_str(), 0, nullptr, &found) == 0;
  ::globfree(&found);
  return any || ::access(name.c_str(), F_OK) == 0 || ::access((name + ".idx").c_str(), F_OK) == 0;
}

void look(Field& value, const fs::path& folder) {
  if (auto* name = std::get_if<std::string>(&value.value)) {
    if (name->empty() || fs::path(*name).is_absolute() || is_word(*name) || finds(*name)) return;
    if (std::string beside = (folder / *name).string(); finds(beside)) *name = std::move(beside);
  } else if (auto* list = std::get_if<Field::Array>(&value.value)) {
    for (Field& one : *list) look(one, folder);
  } else if (auto* table = std::get_if<Field::Table>(&value.value)) {
    for (Member& m : *table) look(m.value, folder);
  }
}

Field* member(Field& of, std::string_view name) {
  auto* table = std::get_if<Field::Table>(&of.value);
  if (!table) return nullptr;
  const auto at = std::find_if(table->begin(), table->end(), [&](const Member& m) { return m.key == name; });
  return at == table->end() ? nullptr : &at->value;
}

}  // namespace

fs::path folder_beside(const fs::path& file) {
  const fs::path folder = file.parent_path();
  return folder.empty() || is_same(folder, ".") ? fs::path() : folder;
}

Field look_beside(Field run, const fs::path& file) {
  const fs::path folder = folder_beside(file);
  if (folder.empty()) return run;
  for (const auto& [section, key] : naming_files)
    if (Field* table = member(run, section))
      if (Field* value = member(*table, key)) look(*value, folder);
  return run;
}

}  // namespace stretto
