// Messages between threads of one process: a ring of buffers per route. Nobody spins; a waiting thread sleeps.
#pragma once
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "stretto/comm/transport.h"

namespace stretto {

class ThreadRoutes : public Transport {
 public:
  explicit ThreadRoutes(const Program&);  // all buffers are made here
  void send(const Transfer&, const ArenaBases& source) override;
  void receive(const Transfer&, const ArenaBases& target) override;
  void stop() noexcept override;

 private:
  struct Ring {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<std::byte> memory;
    u64 bytes = 0, sent = 0, taken = 0;
    int capacity = 1;
    bool stopped = false;
    std::byte* slot(u64 k) { return memory.data() + (k % u64(capacity)) * bytes; }
  };
  std::vector<std::unique_ptr<Ring>> rings_;
};

}  // namespace stretto
