// What the files of the targets share.
#pragma once
#include <algorithm>
#include <string>
#include <string_view>

#include "stretto/exports/target.h"

namespace stretto::exports {

inline std::string_view theirs(std::span<const SameName> names, std::string_view ours) {
  const auto it = std::ranges::find(names, ours, &SameName::ours);
  return it == names.end() ? std::string_view() : it->theirs;
}

inline std::string commented(const PlanToWrite& p, std::string_view title) {
  std::string text = "# For " + std::string(title) + ".\n";
  for (const std::string& line : p.comments) text += "# " + line + "\n";
  return text;
}

}  // namespace stretto::exports
