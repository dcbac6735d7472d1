// Messages between asynchronous CPU devices of one process: copies and announcements that are put into the sender's
// lane, and waits for them in the receiver's. Nobody waits here.
//
//   AsyncTransport t(program, arenas_of_all_actors, devices_of_all_actors);
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "stretto/comm/inner/copies.h"
#include "stretto/comm/stop_flag.h"
#include "stretto/comm/transport.h"
#include "stretto/kernels/async/async_device.h"

namespace stretto {

class AsyncTransport : public Transport {
 public:
  AsyncTransport(const Program&, std::span<const ArenaBases>, const IdVector<ActorId, AsyncDevice*>&);
  void send(TransferId, std::uint32_t round) override;
  double receive(TransferId, std::uint32_t round) override;
  void stop() noexcept override { stopped_.set(); }

 private:
  struct Message {
    AsyncDevice *sender, *receiver;
    DeviceLane lane;  // the sender's
    Copies::Range copies;
  };
  IdVector<TransferId, Message> messages_;
  Copies copies_;
  std::unique_ptr<LaneWord[]> arrived_;  // per message: the newest round
  StopFlag stopped_;
};

}  // namespace stretto
