#include "stretto/train/fits.h"

#include <sys/sysinfo.h>

#include <limits>

#include "stretto/base/pages.h"
#include "stretto/base/text.h"
#include "stretto/kernels/cpu/products.h"
#include "stretto/program/frozen.h"

namespace stretto {

std::vector<double> bytes_per_actor(const Program& program) {
  std::vector<double> totals;
  for (const ActorProgram& a : program.actors) {
    totals.push_back(sharers(program) > 1 ? -1.0 * a.bytes[Arena::frozen] : 0);
    for (const u64 b : a.bytes) totals.back() += b;
  }
  return totals;
}

double planned_bytes(const Program& program, std::span<const int> nodes, int node, bool apart) {
  IdVector<ActorId, double> each, frozen;
  for (const ActorProgram& a : program.actors) {
    each.push_back(double(product_buffer) * program.threads);
    for (const u64 bytes : a.bytes) each.back() += Pages::whole(bytes);
    each.back() -= frozen[frozen.push_back(Pages::whole(a.bytes[Arena::frozen]))];
  }
  double sum = 0;
  for (int r = 0; r < program.ranks(); ++r) {
    if (!nodes.empty() && nodes[r] != node) continue;
    sum += each[program.actor_of_rank(r)];
    if (apart || keeper(program, r, nodes) == r) sum += frozen[program.actor_of_rank(r)];
  }
  return sum;
}

std::string beside_plan(const Program& program) {
  return fmt::format("{} in all, with whole pages and the buffers of products", human_bytes(planned_bytes(program)));
}

double machine_bytes() {
  struct sysinfo info {};
  return sysinfo(&info) == 0 ? 1.0 * (info.totalram + info.totalswap) * info.mem_unit
                             : std::numeric_limits<double>::infinity();
}

void check_fits(double planned, double there, std::string_view hint) {
  if (planned <= there) return;
  throw Error("memory", "the run needs {}, and this machine has {}", human_bytes(planned), human_bytes(there))
      .hint("{}", hint);
}

void check_fits_here(const Program& p, const Peers* peers) {
  const double bytes = peers ? planned_bytes(p, peers->nodes(), peers->nodes()[peers->rank()], !peers->reaches_memory())
                             : planned_bytes(p);
  check_fits(bytes, machine_bytes());
}

}  // namespace stretto
