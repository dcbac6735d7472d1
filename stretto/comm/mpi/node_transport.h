// Messages between processes of one machine whose arenas all of them reach: as between threads, the sender writes into
// the receiver's memory, or has made the value there, and announces it.
//
//   NodeTransport t(program, rank, arenas_of_all_ranks, segments, spins);
//
// All begin a step together, as the plan of their memory has it.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "stretto/comm/copies.h"
#include "stretto/comm/mpi/segments.h"
#include "stretto/comm/mpi/shared_word.h"
#include "stretto/comm/peers.h"

namespace stretto {

class NodeTransport : public Transport {
 public:
  // Processes of `segments` are numbered as ranks are.
  NodeTransport(const Program&, int rank, std::span<const ArenaBases> arenas_of_all, Segments&, int spins);
  void at(InstructionId instruction) override;
  void send(TransferId transfer, std::uint32_t round) override;
  double receive(TransferId transfer, std::uint32_t round) override;
  void stop() noexcept override { stopped_.set(); }

 private:
  struct Message {
    Copies::Range copies = {};
    int target = 0;  // rank
  };
  struct Post {                     // of one rank: what others write for it
    SharedWord* begun = nullptr;    // the step it is in
    SharedWord* arrived = nullptr;  // per transfer: the round it has arrived in
  };
  int rank_, spins_;
  IdVector<TransferId, Message> messages_;
  Copies copies_;
  std::vector<int> others_;  // ranks that messages go to or come from
  std::vector<Post> posts_;  // per rank
  std::uint32_t round_ = 0;
  StopFlag stopped_;
};

}  // namespace stretto
