#include "stretto/cost/inner/shipped.h"

#include "stretto/base/error.h"
#include "stretto/base/text.h"

namespace stretto {
namespace {

// "h100" may be any of those that begin with it.
std::string meant(const std::string& name, const std::vector<std::string>& names) {
  std::vector<std::string> longer;
  for (const std::string& n : names)
    if (!name.empty() && n.starts_with(name)) longer.push_back(fmt::format("'{}'", n));
  if (longer.size() > 1) return fmt::format("did you mean {}?", join(longer, " or "));
  if (const auto near = nearest(name, names)) return fmt::format("did you mean '{}'?", *near);
  return fmt::format("there are {}; or give a file that ends in .toml", join(names, ", "));
}

}  // namespace

std::vector<std::string> names_of(std::span<const ShippedFile> files) {
  std::vector<std::string> names;
  for (const ShippedFile& f : files) names.emplace_back(f.name);
  return names;
}

Field read_shipped(std::string_view kind, std::span<const ShippedFile> files, const std::string& name) {
  if (name.ends_with(".toml")) return read_toml_file(name);
  for (const ShippedFile& f : files)
    if (f.name == name) return read_toml(std::string(f.text), fmt::format("{}s/{}.toml", kind, name));
  throw Error(std::string(kind), "'{}' is unknown", name).hint("{}", meant(name, names_of(files)));
}

}  // namespace stretto
