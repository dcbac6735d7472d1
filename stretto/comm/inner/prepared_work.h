// The collectives that a group over reachable memory knows by number.
//
//   PreparedWork prepared(4);
//   const std::uint32_t sum = prepared.add(shape);
//   prepared.work(sum).run(chunk, operands, results);
#pragma once
#include <memory>
#include <vector>

#include "stretto/kernels/collective_work.h"

namespace stretto {

struct GroupOptions {
  int under_way = 16;  // collectives that a member may have started and not waited for
  int spins = 0;       // looks before sleeping
};

class PreparedWork {
 public:
  explicit PreparedWork(int members) : members_(members) {}
  std::uint32_t add(const CollectiveShape&);  // an equal shape gets the same number; Error: it is for other members
  const CollectiveShape& shape(std::uint32_t number) const { return all_[number]->asked; }
  const CollectiveWork& work(std::uint32_t number) const { return all_[number]->work; }  // stays where it is

 private:
  struct Entry {
    CollectiveShape asked;  // the work's own has neighbouring dims merged
    CollectiveWork work;
  };
  int members_;
  std::vector<std::unique_ptr<const Entry>> all_;
};

}  // namespace stretto
