// Whether a run that goes on reads what it has read: files may have changed since.
//
//   if (const auto note = settle_data(config, corpus)) console.say(*note);
#pragma once
#include <optional>
#include <string>

#include "stretto/config/run.h"
#include "stretto/data/corpus.h"

namespace stretto {

// data.hash is that of the corpus afterwards. What to say when it was another one; none: it was the same, or not known.
std::optional<std::string> settle_data(RunConfig&, const Corpus&);

}  // namespace stretto
