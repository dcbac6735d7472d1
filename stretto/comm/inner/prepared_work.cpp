#include "stretto/comm/inner/prepared_work.h"

#include "stretto/base/error.h"

namespace stretto {

std::uint32_t PreparedWork::add(const CollectiveShape& s) {
  if (s.members != members_)
    throw Error("collective", "{} is for {} members, the group has {}", s.str(), s.members, members_);
  for (std::uint32_t i = 0; i < all_.size(); ++i)
    if (shape(i) == s) return i;
  all_.push_back(std::make_unique<Entry>(Entry{s, CollectiveWork(s)}));
  return all_.size() - 1;
}

}  // namespace stretto
