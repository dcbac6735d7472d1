#include "stretto/comm/mpi/boards.h"

#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "stretto/base/error.h"

namespace stretto {
namespace {

// Every process writes into memory of its own and counts how often it has. There are two places, which take turns: a
// process that is one ahead has read all that the others wrote before.
class NodeBoard : public Board {
 public:
  NodeBoard(Segments& segments, std::size_t words, WaitUntil wait) : words_(words), wait_(std::move(wait)) {
    std::byte* own = segments.allocate(sizeof(Count) + 2 * words * sizeof(u64));
    STRETTO_ASSERT(own != nullptr);
    const Segments::Address own_at = segments.address_of(own);
    own_ = own_at.process;
    for (int r = 0; r < segments.processes(); ++r) of_.push_back(segments.at(own_at, r));
  }
  void say(std::span<const u64> words) override {
    STRETTO_ASSERT(words.size() == words_);
    std::copy(words.begin(), words.end(), place(own_, ++said_));
    count(own_).store(said_, std::memory_order_release);
  }
  std::vector<u64> merged() override {
    std::vector<u64> all(words_, 0);
    for (std::size_t r = 0; r < of_.size(); ++r) {
      wait_([&] { return count(r).load(std::memory_order_acquire) >= said_; });
      const u64* from = place(r, said_);
      for (std::size_t i = 0; i < words_; ++i) all[i] |= from[i];
    }
    return all;
  }

 private:
  using Count = std::atomic<u64>;
  Count& count(std::size_t rank) const { return *reinterpret_cast<Count*>(of_[rank]); }
  u64* place(std::size_t rank, u64 said) const {
    return reinterpret_cast<u64*>(of_[rank] + sizeof(Count)) + said % 2 * words_;
  }
  std::size_t words_;
  WaitUntil wait_;
  int own_ = 0;
  std::vector<std::byte*> of_;  // per rank
  u64 said_ = 0;
};

class MessageBoard : public Board {
 public:
  MessageBoard(MPI_Comm parent, std::size_t words, WaitUntil wait) : words_(words), wait_(std::move(wait)) {
    MPI_Comm_dup(parent, &comm_);
  }
  ~MessageBoard() override {
    if (done())
      MPI_Comm_free(&comm_);
    else  // nobody has asked, or somebody has failed: it belongs to MPI until the process ends
      static_cast<void>(std::make_unique<std::vector<u64>>(std::move(words_)).release());
  }
  void say(std::span<const u64> words) override {
    finish();
    STRETTO_ASSERT(words.size() == words_.size());
    std::copy(words.begin(), words.end(), words_.begin());
    MPI_Iallreduce(MPI_IN_PLACE, words_.data(), int(words_.size()), MPI_UINT64_T, MPI_BOR, comm_, &request_);
  }
  std::vector<u64> merged() override {
    finish();
    return words_;
  }

 private:
  bool done() {
    int done = 0;
    MPI_Test(&request_, &done, MPI_STATUS_IGNORE);
    return done != 0;
  }
  void finish() {
    wait_([&] { return done(); });
  }
  std::vector<u64> words_;
  WaitUntil wait_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

}  // namespace

std::unique_ptr<Board> node_board(Segments& segments, std::size_t words, WaitUntil wait) {
  return std::make_unique<NodeBoard>(segments, words, std::move(wait));
}

std::unique_ptr<Board> message_board(int communicator, std::size_t words, WaitUntil wait) {
  return std::make_unique<MessageBoard>(MPI_Comm_f2c(communicator), words, std::move(wait));
}

}  // namespace stretto
