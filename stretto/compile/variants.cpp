#include "stretto/compile/variants.h"

#include <algorithm>
#include <set>

#include "stretto/base/text.h"

namespace stretto {
namespace {

// Bytes of parameters per piece, and of the largest two neighbours: what is whole while one works and the next is
// being gathered.
double largest_neighbours(const Compiled& c) {
  const Step& step = *c.program->step;
  std::vector<double> piece(std::size_t(step.pieces / step.segments + 1), 0);
  for (const Accumulator& a : step.accumulators)
    if (a.pipe == PipeId(0) && a.level == Level(0))
      piece[std::size_t(a.piece.value / step.segments)] +=
          c.sharded->params[a.param].elements * size_of(wide(c.params[a.param].dtype));
  double most = 0;
  for (std::size_t i = 0; i + 1 < piece.size(); ++i) most = std::max(most, piece[i] + piece[i + 1]);
  return most;
}

int chosen_zero(const Storage& s) {
  const auto cut = [](const Axes& axes) { return std::find(axes.begin(), axes.end(), "data") != axes.end(); };
  return cut(s.params) ? 3 : cut(s.gradients) ? 2 : cut(s.state) ? 1 : 0;
}

}  // namespace

std::vector<StorageVariant> storage_variants(const Compiled& c) {
  const int ranks = c.parallel.mesh.extent("data");
  if (!c.sharded || ranks < 2 || c.program->step->accumulators.empty()) return {};
  const double d = ranks, m = c.program->microbatches, part = (d - 1) / d;
  const int zero = chosen_zero(c.parallel.storage);
  std::vector<StorageVariant> all;
  for (const auto& [z, reshard] : {std::pair{0, Reshard::microbatch},
                                   {1, Reshard::microbatch},
                                   {2, Reshard::microbatch},
                                   {3, Reshard::microbatch},
                                   {3, Reshard::step}}) {
    StorageVariant v{.zero = z, .reshard = reshard, .chosen = z == zero && reshard == c.parallel.reshard};
    for (ParamId i : c.params.ids()) {
      const double bytes = c.sharded->params[i].elements * size_of(c.params[i].dtype);
      const double accumulators = c.params[i].accumulators.size();
      v.params += z > 2 ? bytes / d : bytes;
      v.gathered += z > 2 ? bytes : 0;
      if (z > 2) v.collected += part * bytes * (reshard == Reshard::step ? 1 : 2 * m);
      if (accumulators == 0) continue;
      v.gradients += accumulators * (z > 1 ? bytes / d : bytes);
      v.state += (std::ssize(c.params[i].states) - c.params[i].has_master()) * (z > 0 ? bytes / d : bytes);
      v.reduced += part * bytes * (z == 0 ? 2 : z == 1 ? 1 : m * accumulators);
      if (z == 1 || z == 2) v.collected += part * bytes;
    }
    if (z > 2 && reshard == Reshard::microbatch) v.gathered = std::min(v.gathered, largest_neighbours(c));
    all.push_back(v);
  }
  return all;
}

std::string variants_str(const Compiled& c) {
  const std::vector<StorageVariant> all = storage_variants(c);
  if (all.empty()) return "";
  std::vector<std::vector<std::string>> rows{
      {"zero", "reshard", "parameters", "gathered", "gradients", "state", "sent for gradients", "for parameters", ""}};
  for (const StorageVariant& v : all)
    rows.push_back({std::to_string(v.zero), v.zero > 2 ? std::string(name_of(v.reshard)) : "", human_bytes(v.params),
                    v.gathered > 0 ? human_bytes(v.gathered) : "", human_bytes(v.gradients), human_bytes(v.state),
                    human_bytes(v.reduced), v.collected > 0 ? human_bytes(v.collected) : "",
                    v.chosen ? "this run" : ""});
  return fmt::format("\nways to store it over data={}: bytes on a rank, and sent by it per step of {} microbatches\n",
                     c.parallel.mesh.extent("data"), c.program->microbatches) +
         table(rows);
}

}  // namespace stretto
