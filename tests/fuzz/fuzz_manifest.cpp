// Any bytes as the manifest of a checkpoint: refused with an Error, or one whose text reads back as the same. A JSON
// table is also tried with the right format, version and hash, so that more than these is reached.
#include <cstdint>

#include "stretto/base/hash.h"
#include "stretto/checkpoint/manifest.h"
#include "stretto/formats/fields.h"

namespace {

using namespace stretto;

void read(std::string_view text) {
  Manifest m;
  try {
    m = parse_manifest(text, "fuzz");
  } catch (const Error&) {
    return;
  }
  if (!(parse_manifest(manifest_text(m), "fuzz") == m)) __builtin_trap();
  incomplete(m);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read(text);
  Field root;
  try {
    root = read_json(text, "fuzz");
  } catch (const Error&) {
    return 0;
  }
  auto* table = std::get_if<Field::Table>(&root.value);
  if (!table) return 0;
  std::erase_if(*table, [](const Member& m) { return m.key == "hash" || m.key == "format" || m.key == "version"; });
  table->push_back({"format", Field("stretto checkpoint")});
  table->push_back({"version", Field(2)});
  const std::string content = write_json(root);
  table->push_back({"hash", Field(fmt::format("{:016x}", hash_bytes(content.data(), content.size())))});
  read(write_json(root));
  return 0;
}
