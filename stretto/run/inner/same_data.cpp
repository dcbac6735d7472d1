#include "stretto/run/inner/same_data.h"

#include <fmt/format.h>

#include <utility>

namespace stretto {

std::optional<std::string> settle_data(RunConfig& c, const Corpus& corpus) {
  const std::string was = std::exchange(c.data.hash, fmt::format("{:016x}", corpus.hash()));
  if (was.empty() || was == c.data.hash) return std::nullopt;
  return fmt::format("note: data.hash is {} and was {}: what is trained on, {} with {} tokens, is not what it was",
                     c.data.hash, was, corpus.name, corpus.training_tokens());
}

}  // namespace stretto
