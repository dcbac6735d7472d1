// What the ranks of this process keep from step to step, while an engine makes room for another one.
//
//   const KeptArenas kept(*engine);
//   engine = another();                  // parameters and state lie where they lay
//   kept.put_into(*engine);
#pragma once
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "stretto/runtime/engine.h"

namespace stretto {

class KeptArenas {
 public:
  explicit KeptArenas(const Engine& e) {
    for (const int rank : e.local())
      for (const Arena a : {Arena::params, Arena::frozen, Arena::state}) {
        if (a == Arena::frozen && !e.keeps_frozen(rank)) continue;
        std::vector<std::byte>& bytes = all_[{rank, a}];
        bytes.resize(e.worker(rank).program().bytes[a]);
        e.worker(rank).read(a, 0, bytes.data(), bytes.size());
      }
  }
  void put_into(Engine& e) const {
    for (const auto& [where, bytes] : all_) {
      const auto [rank, arena] = where;
      STRETTO_ASSERT(e.worker(rank).program().bytes[arena] == bytes.size(), "the same values");
      e.worker(rank).write(arena, 0, bytes.data(), bytes.size());
    }
  }

 private:
  std::map<std::pair<int, Arena>, std::vector<std::byte>> all_;
};

}  // namespace stretto
