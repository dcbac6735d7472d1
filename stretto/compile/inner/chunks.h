// Products cut for overlap: a product that reads a gathered value, and one whose result is reduced and scattered, are
// made in parts, so that a part's collective goes on beside another part's product. From a rank's graph to a rank's
// graph:
//
//   Sharded s = cut_products(shard(step, mesh, layout), {.cluster = cluster});
//
//   y = all_gather(x)                  x0, x1 = stripes of x
//   z = contract(y, w)       ->        y0 = all_gather(x0), y1 = all_gather(x1);  y = weave(y0, y1)
//                                      z0 = contract(y0, w), z1 = contract(y1, w);  z = weave(z0, z1)
//
// Stripe i is the i-th run of rows of every rank, so a part's collective is like the whole one. What other nodes read
// is the woven value, in whose memory the stripes are made: nothing is copied, and sums over rows are made in the same
// order. Readers of one gathered value are cut together. The cost model decides how many parts there are: the first
// part's collective and the last part's product (or the other way round) have nothing beside them, and every further
// part costs a latency and reads the weights once more.
//
// Every element of a result is one sum, as before. Where a part's product would not have the whole one's bits
// (Op::in_stripes) it stays whole.
#pragma once
#include "stretto/cost/machine.h"
#include "stretto/shard/shard.h"

namespace stretto {

struct ChunkOptions {
  Cluster cluster = {};
};
// Collective::parts says what was cut; a layout that has nothing to cut gets a warning.
Sharded cut_products(Sharded, const ChunkOptions&);

}  // namespace stretto
