// The files of devices/ and stacks/, which are part of the library.
//
//   for (const ShippedFile& f : shipped_devices()) fmt::print("{}\n", f.name);
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stretto {

struct ShippedFile {
  std::string_view name, text;  // "h100-sxm"
};
std::span<const ShippedFile> shipped_devices();
std::span<const ShippedFile> shipped_stacks();
std::vector<std::string> names_of(std::span<const ShippedFile>);

}  // namespace stretto
