#include "stretto/formats/nanogpt_tokens.h"

#include "stretto/base/error.h"

namespace stretto {

NanogptTokens::NanogptTokens(const std::filesystem::path& path) : file_(path) {
  const std::size_t bytes = file_.bytes().size();
  if (bytes == 0) throw Error(path.string(), "is empty");
  if (bytes % 2)
    throw Error(path.string(), "is {} bytes long, but tokens take two each", bytes).hint("is the file cut off?");
}

void NanogptWriter::write(std::span<const std::int32_t> tokens) {
  file_.write(bytes_of<std::int32_t>(tokens, FileType::U16, "tokens"));
}

}  // namespace stretto
