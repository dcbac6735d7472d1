// Messages between devices of one process whose lanes are not the thread that calls: copies and announcements that are
// put into the sender's lane, and waits for them in the receiver's. Nobody waits here.
//
//   LaneTransport t(program, arenas_of_all_actors, devices_of_all_actors);
#pragma once
#include <memory>
#include <span>

#include "stretto/comm/inner/copies.h"
#include "stretto/comm/transport.h"
#include "stretto/kernels/lane_device.h"

namespace stretto {

class LaneTransport : public Transport {
 public:
  LaneTransport(const Program&, std::span<const ArenaBases>, const IdVector<ActorId, LaneDevice*>&);
  void send(TransferId, std::uint32_t round) override;
  double receive(TransferId, std::uint32_t round) override;
  void stop() noexcept override { arrived_->stop(); }

 private:
  struct Message {
    LaneDevice *sender, *receiver;
    DeviceLane lane;  // the sender's
    Copies::Range copies;
  };
  IdVector<TransferId, Message> messages_;
  Copies copies_;
  std::shared_ptr<LaneWords> arrived_;  // per message: the newest round
};

}  // namespace stretto
