// A command whose ranks are processes when a launcher has started several of them, else threads of this one.
//
//   Ranks ranks(flags);
//   ranks.run([&] { train(config, stdout, verbosity, resume, ranks.join({.timeouts = timeouts_of(config)})); });
#pragma once
#include <functional>
#include <memory>

#include "failure.h"
#include "stretto/comm/peers.h"
#include "stretto/comm/world.h"
#include "stretto/config/run.h"

namespace stretto::app {

Timeouts timeouts_of(const RunConfig&);

// An exception in one of several processes is said with its rank in front and ends all of them; what every
// rank has to say alike, because the input is wrong, only the first says.
class Ranks {
 public:
  explicit Ranks(const WorldFlags& flags) : world_(find_world(environment(), flags)) {}
  void run(const std::function<void()>& work);
  // The other processes, when there are any.
  std::shared_ptr<Peers> join(PeersOptions);

 private:
  [[noreturn]] void fail();
  // Says it, with the rank in front. MPI is not to be called when another thread is inside of it.
  [[noreturn]] void end(const Failure&, bool within_mpi);
  World world_;
  std::shared_ptr<Peers> peers_;
};

}  // namespace stretto::app
