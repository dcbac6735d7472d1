#include "stretto/comm/mpi/mpi_transport.h"

#include <mpi.h>

#include <algorithm>
#include <atomic>

#include "stretto/base/error.h"
#include "stretto/comm/emulated_link.h"
#include "stretto/comm/mpi/blocks.h"
#include "stretto/comm/mpi/patience.h"

namespace stretto {
namespace {

constexpr double kPollEvery = 100e-6;  // seconds between polls from kernels

class MpiTransport : public Transport {
 public:
  MpiTransport(MPI_Comm parent, const Program& p, const ArenaBases& own, RemoteOptions options, int spins)
      : options_(options), spins_(spins) {
    MPI_Comm_dup(parent, &comm_);
    int rank = 0, size = 0, largest_set = 0;
    MPI_Comm_rank(comm_, &rank);
    MPI_Comm_size(comm_, &size);
    int* largest = nullptr;
    MPI_Comm_get_attr(comm_, MPI_TAG_UB, &largest, &largest_set);
    if (largest_set && p.transfers.size() > std::size_t(*largest))
      throw Error("mpi", "the program has {} messages, and this MPI tells {} apart", p.transfers.size(), *largest)
          .hint("fewer microbatches, or stages");
    const int per_actor = size / int(p.actors.size()), actor = rank / per_actor;
    const auto peer = [&](int a) { return a * per_actor + rank % per_actor; };
    last_ = std::uint32_t(p.actors[std::size_t(actor)].code.size());
    requests_.assign(p.transfers.size(), MPI_REQUEST_NULL);
    if (options_.link) due_.assign(p.transfers.size(), 0), links_.assign(p.actors.size(), {});
    bytes_.assign(p.transfers.size(), 0);
    target_.assign(p.transfers.size(), 0);
    for (std::uint32_t t = 0; t < p.transfers.size(); ++t) {
      const Transfer& transfer = p.transfers[t];
      const Route& route = p.routes[transfer.route];
      if (route.source != actor && route.target != actor) continue;
      const bool sending = route.source == actor;
      STRETTO_ASSERT(!transfer.direct, "a message between processes that is made in the receiver's memory");
      bytes_[t] = route.bytes;
      target_[t] = route.target;
      make(t, sending, peer(sending ? route.target : route.source), memory_of(t, transfer, sending, own));
      (sending ? releases_ : posts_).push_back({sending ? transfer.released : transfer.posted, t});
    }
    std::sort(posts_.begin(), posts_.end());
    std::sort(releases_.begin(), releases_.end());
    sent_.assign(p.transfers.size(), false);
  }

  ~MpiTransport() override {
    if (busy_) return;  // a step failed: requests under way belong to MPI until the process ends
    for (MPI_Request& r : requests_)
      if (r != MPI_REQUEST_NULL) MPI_Request_free(&r);
    MPI_Comm_free(&comm_);
  }

  void at(std::uint32_t instruction) override {
    if (!busy_) next_post_ = next_release_ = 0;
    busy_ = true;
    for (; next_release_ < releases_.size() && releases_[next_release_].first <= instruction; ++next_release_)
      if (const std::uint32_t t = releases_[next_release_].second; sent_[t]) {
        wait(t);
        sent_[t] = false;
      }
    for (; next_post_ < posts_.size() && posts_[next_post_].first <= instruction; ++next_post_)
      MPI_Start(&requests_[posts_[next_post_].second]);
    busy_ = instruction < last_;
  }

  void send(std::uint32_t t, std::uint32_t) override {
    if (options_.link) due_[t] = links_[std::size_t(target_[t])].message(now(), bytes_[t], *options_.link);
    MPI_Start(&requests_[t]);
    sent_[t] = true;
  }

  double receive(std::uint32_t t, std::uint32_t) override {
    const double seconds = wait(t);
    return options_.link ? seconds + sleep_until_due(due_[t], stopped_) : seconds;
  }

  void progress() override {
    const double t = now();
    if (t - polled_ < kPollEvery) return;
    polled_ = t;
    poll();
  }

  void stop() noexcept override { stopped_ = true; }

 private:
  using Moment = std::pair<std::uint32_t, std::uint32_t>;  // instruction, transfer

  std::vector<Block> memory_of(std::uint32_t t, const Transfer& transfer, bool sending, const ArenaBases& own) {
    std::vector<std::pair<std::byte*, u64>> pieces;
    if (options_.copy)
      for (const Piece& piece : transfer.pieces) {
        const Slot& s = sending ? piece.from : piece.to;
        pieces.push_back({own[std::size_t(s.arena)] + s.offset, piece.bytes});
      }
    if (options_.link) pieces.push_back({reinterpret_cast<std::byte*>(&due_[t]), sizeof(double)});
    return blocks_of(pieces);
  }

  void make(std::uint32_t t, bool sending, int peer, const std::vector<Block>& blocks) {
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
      MPI_Type_create_hindexed(int(blocks.size()), lengths.data(), places.data(), MPI_BYTE, &type);
      MPI_Type_commit(&type);
      memory = MPI_BOTTOM;
      count = 1;
    }
    if (sending)
      MPI_Send_init(memory, count, type, peer, int(t), comm_, &requests_[t]);
    else
      MPI_Recv_init(memory, count, type, peer, int(t), comm_, &requests_[t]);
    if (type != MPI_BYTE) MPI_Type_free(&type);  // the request keeps it
  }

  double wait(std::uint32_t t) {
    Patience p(spins_);
    for (int done = 0;; p.pause()) {
      MPI_Test(&requests_[t], &done, MPI_STATUS_IGNORE);
      if (done) return p.waited();
      check();
    }
  }
  void check() const {
    if (stopped_) throw Error("runtime", "stopped because another rank failed").as(Error::Kind::run);
  }
  void poll() {
    int there = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &there, MPI_STATUS_IGNORE);
  }

  RemoteOptions options_;
  int spins_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::vector<MPI_Request> requests_;     // per transfer; none for those between others
  std::vector<Moment> posts_, releases_;  // ascending
  std::size_t next_post_ = 0, next_release_ = 0;
  std::vector<bool> sent_;           // per transfer: its send is under way
  std::vector<double> due_;          // per transfer, emulated links: when it arrives; travels with it
  std::vector<EmulatedLink> links_;  // to each actor
  std::vector<u64> bytes_;           // per transfer
  std::vector<int> target_;          // per transfer
  std::uint32_t last_ = 0;           // instructions of a step
  double polled_ = 0;
  bool busy_ = false;  // within a step
  std::atomic<bool> stopped_{false};
};

}  // namespace

std::unique_ptr<Transport> mpi_transport(int communicator, const Program& p, const ArenaBases& own,
                                         RemoteOptions options, int spins) {
  return std::make_unique<MpiTransport>(MPI_Comm_f2c(communicator), p, own, options, spins);
}

}  // namespace stretto
