#include "stretto/cost/shipped.h"

#include "stretto/base/error.h"
#include "stretto/base/text.h"

namespace stretto {

std::vector<std::string> names_of(std::span<const ShippedFile> files) {
  std::vector<std::string> names;
  for (const ShippedFile& f : files) names.emplace_back(f.name);
  return names;
}

Field read_shipped(std::string_view kind, std::span<const ShippedFile> files, const std::string& name) {
  if (name.ends_with(".toml")) return read_toml_file(name);
  for (const ShippedFile& f : files)
    if (f.name == name) return read_toml(std::string(f.text), fmt::format("{}s/{}.toml", kind, name));
  const std::vector<std::string> names = names_of(files);
  const auto near = nearest(name, names);
  throw Error(std::string(kind), "'{}' is unknown", name)
      .hint("{}", near ? fmt::format("did you mean '{}'?", *near)
                       : fmt::format("there are {}; or give a file that ends in .toml", join(names, ", ")));
}

}  // namespace stretto
