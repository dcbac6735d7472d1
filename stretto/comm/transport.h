// How messages travel between actors. One implementation is chosen when a run starts: comm/threads/ in one process.
#pragma once
#include <array>
#include <cstddef>

#include "stretto/program/program.h"

namespace stretto {

using ArenaBases = std::array<std::byte*, arena_count>;

class Transport {
 public:
  virtual ~Transport() = default;
  virtual void send(const Transfer&, const ArenaBases& source) = 0;     // waits only while the route is full
  virtual void receive(const Transfer&, const ArenaBases& target) = 0;  // waits for the message
  virtual void stop() noexcept = 0;                                     // everybody who waits, or will, gets an Error
};

}  // namespace stretto
