#include "stretto/step/recompute.h"

#include <cstddef>

namespace stretto {

std::string_view name_of(Recompute r) {
  constexpr std::string_view names[] = {"none", "full", "layer", "selective"};
  return names[std::size_t(r)];
}

}  // namespace stretto
