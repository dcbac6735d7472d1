// Messages between processes of one machine whose arenas all of them reach: as between threads, the sender writes into
// the receiver's memory, or has made the value there, and announces it.
//
//   NodeTransport t(program, rank, arenas_of_all_ranks, segments, spins);
//
// What one step may do to another's memory is kept apart by who sends (program/next_step.h).
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "stretto/comm/inner/copies.h"
#include "stretto/comm/mpi/segments.h"
#include "stretto/comm/mpi/shared_word.h"
#include "stretto/comm/peers.h"

namespace stretto {

class NodeTransport : public Transport {
 public:
  // Processes of `segments` are numbered as ranks are.
  NodeTransport(const Program&, int rank, std::span<const ArenaBases> arenas_of_all, Segments&, int spins);
  void send(TransferId transfer, std::uint32_t round) override;
  double receive(TransferId transfer, std::uint32_t round) override;
  void stop() noexcept override { stopped_.set(); }

 private:
  struct Message {
    Copies::Range copies = {};
    int target = 0;  // rank
  };
  int rank_, spins_;
  IdVector<TransferId, Message> messages_;
  Copies copies_;
  std::vector<SharedWord*> arrived_;  // per rank, which others write for it: per transfer, the round it has arrived in
  StopFlag stopped_;
};

}  // namespace stretto
