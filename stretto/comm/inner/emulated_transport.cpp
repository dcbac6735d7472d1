#include "stretto/comm/inner/emulated_transport.h"

#include <algorithm>

#include "stretto/base/clock.h"
#include "stretto/comm/emulated_clock.h"
#include "stretto/comm/inner/emulated_link.h"

namespace stretto {
namespace {

class EmulatedTransport : public Transport {
 public:
  EmulatedTransport(const Program& p, const Cluster& links, int coordinate, std::unique_ptr<Transport> real,
                    Notes notes)
      : real_(std::move(real)), notes_(std::move(notes)), actors_(p.actors.size()), links_(actors_ * actors_) {
    for (const Transfer& t : p.transfers) {
      const Route& r = p.routes[t.route];
      messages_.push_back({.source = r.source.value,
                           .target = r.target.value,
                           .bytes = r.bytes,
                           .over = link(links, p.rank_of(r.source, coordinate), p.rank_of(r.target, coordinate))});
    }
  }

  void send(TransferId transfer, std::uint32_t round) override {
    if (real_) real_->send(transfer, round);
    const Message& m = messages_[transfer];
    EmulatedLink& link = links_[m.source * actors_ + m.target];
    notes_.of_actor[m.source][transfer.value] = link.message(emulated_now(), m.bytes, m.over);
    notes_.transport->send(transfer, round);
  }

  // The note comes last: when it has arrived, so has the message.
  double receive(TransferId transfer, std::uint32_t round) override {
    const double start = now(), from = emulated_now();
    notes_.transport->receive(transfer, round);
    if (real_) real_->receive(transfer, round);
    pass_until(std::max(from, notes_.of_actor[messages_[transfer].target][transfer.value]), stopped_);
    return now() - start;
  }

  void at(InstructionId instruction) override {
    if (real_) real_->at(instruction);
    notes_.transport->at(instruction);
  }
  void progress() override {
    if (real_) real_->progress();
    notes_.transport->progress();
  }
  void stop() noexcept override {
    stopped_.set();
    if (real_) real_->stop();
    notes_.transport->stop();
  }

 private:
  struct Message {
    int source = 0, target = 0;  // actors
    u64 bytes = 0;
    Link over = {};
  };
  std::unique_ptr<Transport> real_;
  Notes notes_;
  IdVector<TransferId, Message> messages_;
  std::size_t actors_;
  std::vector<EmulatedLink> links_;  // per sender and receiver; only the sender looks
  StopFlag stopped_;
};

}  // namespace

std::unique_ptr<Transport> emulated_transport(const Program& p, const Cluster& links, int coordinate,
                                              std::unique_ptr<Transport> real, Notes notes) {
  return std::make_unique<EmulatedTransport>(p, links, coordinate, std::move(real), std::move(notes));
}

}  // namespace stretto
