// The files of devices/ and stacks/, which are part of the library.
//
//   for (const ShippedFile& f : shipped_devices()) fmt::print("{}\n", f.name);
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/formats/fields.h"

namespace stretto {

struct ShippedFile {
  std::string_view name, text;  // "h100-sxm"
};
std::span<const ShippedFile> shipped_devices();
std::span<const ShippedFile> shipped_stacks();
std::vector<std::string> names_of(std::span<const ShippedFile>);
// One of them, or a file whose name ends in .toml. `kind`: "device", for messages and the place "devices/NAME.toml".
Field read_shipped(std::string_view kind, std::span<const ShippedFile>, const std::string& name);

}  // namespace stretto
