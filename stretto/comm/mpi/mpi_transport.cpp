#include "stretto/comm/mpi/mpi_transport.h"

#include <mpi.h>

#include <algorithm>
#include <utility>

#include "stretto/base/clock.h"
#include "stretto/base/error.h"
#include "stretto/comm/mpi/blocks.h"
#include "stretto/comm/mpi/patience.h"
#include "stretto/comm/stop_flag.h"

namespace stretto {
namespace {

constexpr double poll_every = 100e-6;  // seconds between polls from kernels

class MpiTransport : public Transport {
 public:
  MpiTransport(MPI_Comm parent, const Program& p, const ArenaBases& own, int spins)
      : spins_(spins), requests_(p.transfers.size(), MPI_REQUEST_NULL), sent_(p.transfers.size(), false) {
    MPI_Comm_dup(parent, &comm_);
    int rank = 0, size = 0;
    MPI_Comm_rank(comm_, &rank);
    MPI_Comm_size(comm_, &size);
    check_tags(p.transfers.size());
    const int actors = p.actors.size(), per_actor = size / actors;
    const ActorId actor(rank / per_actor);
    const auto peer = [&](ActorId a) { return a.value * per_actor + rank % per_actor; };
    last_ = p.actors[actor].code.next_id();
    for (TransferId t : p.transfers.ids()) {
      const Transfer& transfer = p.transfers[t];
      const Route& route = p.routes[transfer.route];
      if (route.source != actor && route.target != actor) continue;
      const bool sending = route.source == actor;
      STRETTO_ASSERT(!transfer.direct, "a message between processes that is made in the receiver's memory");
      make(t, sending, peer(sending ? route.target : route.source), memory_of(transfer, sending, own));
      (sending ? releases_ : posts_).push_back({sending ? transfer.released.value() : transfer.posted, t});
    }
    std::sort(posts_.begin(), posts_.end());
    std::sort(releases_.begin(), releases_.end());
  }

  ~MpiTransport() override {
    if (busy_) return;  // a step failed: requests under way belong to MPI until the process ends
    for (MPI_Request& r : requests_)
      if (r != MPI_REQUEST_NULL) MPI_Request_free(&r);
    MPI_Comm_free(&comm_);
  }

  void at(InstructionId instruction) override {
    if (!busy_) next_post_ = next_release_ = 0;
    busy_ = true;
    for (; next_release_ < releases_.size() && releases_[next_release_].first <= instruction; ++next_release_)
      if (const TransferId t = releases_[next_release_].second; sent_[t]) {
        wait(t);
        sent_[t] = false;
      }
    for (; next_post_ < posts_.size() && posts_[next_post_].first <= instruction; ++next_post_)
      MPI_Start(&requests_[posts_[next_post_].second]);
    busy_ = instruction < last_;
  }

  void send(TransferId t, std::uint32_t) override {
    MPI_Start(&requests_[t]);
    sent_[t] = true;
  }

  double receive(TransferId t, std::uint32_t) override { return wait(t); }

  void progress() override {
    const double t = now();
    if (t - polled_ < poll_every) return;
    polled_ = t;
    poll();
  }

  void stop() noexcept override { stopped_.set(); }

 private:
  using Moment = std::pair<InstructionId, TransferId>;

  void check_tags(std::size_t transfers) const {
    int *largest = nullptr, known = 0;
    MPI_Comm_get_attr(comm_, MPI_TAG_UB, &largest, &known);
    if (known && std::cmp_greater(transfers, *largest))
      throw Error("mpi", "the program has {} messages, and this MPI tells {} apart", transfers, *largest)
          .hint("fewer microbatches, or stages");
  }

  static std::vector<Block> memory_of(const Transfer& transfer, bool sending, const ArenaBases& own) {
    std::vector<std::pair<std::byte*, u64>> stretches;
    for (const Extent& e : transfer.extents) stretches.push_back({address(own, sending ? e.from : e.to), e.bytes});
    return blocks_of(stretches);
  }

  void make(TransferId t, bool sending, int peer, const std::vector<Block>& blocks) {
    void* memory = blocks.empty() ? nullptr : blocks[0].at;
    int count = blocks.empty() ? 0 : blocks[0].bytes;
    MPI_Datatype type = MPI_BYTE;
    if (blocks.size() > 1) {
      std::vector<int> lengths;
      std::vector<MPI_Aint> places;
      for (const Block& b : blocks) {
        lengths.push_back(b.bytes);
        places.emplace_back();
        MPI_Get_address(b.at, &places.back());
      }
      MPI_Type_create_hindexed(blocks.size(), lengths.data(), places.data(), MPI_BYTE, &type);
      MPI_Type_commit(&type);
      memory = MPI_BOTTOM;
      count = 1;
    }
    if (sending)
      MPI_Send_init(memory, count, type, peer, t.value, comm_, &requests_[t]);
    else
      MPI_Recv_init(memory, count, type, peer, t.value, comm_, &requests_[t]);
    if (type != MPI_BYTE) MPI_Type_free(&type);  // the request keeps it
  }

  double wait(TransferId t) {
    Patience p(spins_);
    for (int done = 0;; p.pause()) {
      MPI_Test(&requests_[t], &done, MPI_STATUS_IGNORE);
      if (done) return p.waited();
      stopped_.check();
    }
  }
  void poll() {
    int there = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &there, MPI_STATUS_IGNORE);
  }

  int spins_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  IdVector<TransferId, MPI_Request> requests_;  // per transfer; none for those between others
  std::vector<Moment> posts_, releases_;        // ascending
  std::size_t next_post_ = 0, next_release_ = 0;
  IdVector<TransferId, char> sent_;  // per transfer: its send is under way
  InstructionId last_;               // instructions of a step
  double polled_ = 0;
  bool busy_ = false;  // within a step
  StopFlag stopped_;
};

}  // namespace

std::unique_ptr<Transport> mpi_transport(int communicator, const Program& p, const ArenaBases& own, int spins) {
  return std::make_unique<MpiTransport>(MPI_Comm_f2c(communicator), p, own, spins);
}

}  // namespace stretto
