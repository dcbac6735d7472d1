// Messages between threads of one process. The sender writes into the receiver's memory, which is planned to be free by
// then, and announces it. Nobody spins when there are fewer cores than actors; a waiting thread sleeps.
//
//   ThreadTransport t(program, arenas_of_all_actors, spins);         // looks before sleeping
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "stretto/comm/inner/copies.h"
#include "stretto/base/arrival.h"
#include "stretto/comm/transport.h"

namespace stretto {

class ThreadTransport : public Transport {
 public:
  ThreadTransport(const Program&, std::span<const ArenaBases>, int spins = 0);
  void send(TransferId transfer, std::uint32_t round) override;
  double receive(TransferId transfer, std::uint32_t round) override;
  void stop() noexcept override;

 private:
  int spins_;
  IdVector<TransferId, Copies::Range> messages_;
  Copies copies_;
  std::unique_ptr<Arrival[]> arrivals_;
};

}  // namespace stretto
