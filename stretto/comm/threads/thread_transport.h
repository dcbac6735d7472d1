// Messages between threads of one process. The sender writes into the receiver's memory, which is planned to be free by
// then, and announces it. Nobody spins when there are fewer cores than actors; a waiting thread sleeps.
//
//   ThreadTransport t(program, arenas_of_all_actors, {.link = Link{1e-5, 1e9}});
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "stretto/comm/copies.h"
#include "stretto/comm/emulated_link.h"
#include "stretto/comm/threads/arrival.h"
#include "stretto/comm/transport.h"
#include "stretto/cost/machine.h"

namespace stretto {

struct ThreadTransportOptions {
  std::function<Link(int from, int to)> link = {};  // messages arrive as late as over it, one at a time per two actors
  bool copy = true;  // false: messages are announced only; for emulated devices, which have no memory
  int spins = 0;     // looks before sleeping
};

class ThreadTransport : public Transport {
 public:
  ThreadTransport(const Program&, std::span<const ArenaBases>, ThreadTransportOptions);
  void send(std::uint32_t transfer, std::uint32_t round) override;
  double receive(std::uint32_t transfer, std::uint32_t round) override;
  void stop() noexcept override;

 private:
  struct Message {
    Copies::Range copies = {};
    std::uint32_t link = 0;  // into links_
    Link over = {};
    u64 bytes = 0;
  };
  ThreadTransportOptions options_;
  std::vector<Message> messages_;
  Copies copies_;
  std::unique_ptr<Arrival[]> arrivals_;
  std::vector<double> due_;          // per transfer, emulated links: when it arrives; written before it is announced
  std::vector<EmulatedLink> links_;  // per pair of actors; only its sender looks
  std::atomic<bool> stopped_{false};
};

}  // namespace stretto
