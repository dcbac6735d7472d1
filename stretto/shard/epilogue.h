// The parts of per-step tasks that a layout adds: sums over ranks of gradients, norms, counts and losses, and storage
// that is cut. Each is a Tensor function on the task's own builder; without a layout they all do nothing.
//
//   combine:  out = reduced_gradient(accumulators, s, param);                    // flat, this rank's part
//   norm:     square = counted_square(squared_norm(gradient), s, param);         // once among all ranks
//   clip:     squares = all_reduce(squares, norm_axes(s));                       // the same bits everywhere
//   update:   part = part_to_update(param, s, i); ... out = stored_again(part, s, i);
//   scale:    total = all_reduce(sum(counts), s.outputs[count]);
#pragma once
#include <span>
#include <string>
#include <vector>

#include "stretto/ir/tensor.h"
#include "stretto/shard/shard.h"

namespace stretto {

// x on the ranks whose coordinates along these axes are all 0, zeros on the others.
Tensor only_first(Tensor x, const Mesh&, const AxisNames& axes);

// A dim of the sharded graph, for arguments of a task.
Dims dims_of(const Sharded&, const Type&);

// The accumulators of one parameter, in order, once per pipe: added up over pipes, pieces and ranks, cut as the
// optimizer's state is. They may be given flat.
Tensor reduced_gradient(std::span<const Tensor> accumulators, const Sharded&, ParamId param);
// The axes over which an accumulator of this parameter only has to be added up, as it is; none when it is complete, or
// when it is also cut.
AxisNames summed_as_it_is(const Sharded&, ParamId param);
// All axes along which some parameter's gradient is in parts.
AxisNames norm_axes(const Sharded&);
// A squared norm counts on one rank of those that hold the same part.
Tensor counted_square(Tensor square, const Sharded&, ParamId param);

Tensor part_to_update(Tensor stored, const Sharded&, ParamId param);
Tensor stored_again(Tensor part, const Sharded&, ParamId param);

// A parameter's dims when ranks have put it together, but for those named `apart`, which stay split; a part of it, as
// it is updated, put together; and this rank's part of such a one.
Dims whole_dims(const Sharded&, ParamId param, const Dims& apart);
Tensor whole_again(Tensor part, const Sharded&, ParamId param, const Dims& apart);
Tensor part_of_whole(Tensor whole, const Sharded&, ParamId param, const Dims& apart);

// Everything that goes over the wire once per step: what str() lists.
std::vector<Collective> per_step_collectives(const Sharded&);

}  // namespace stretto
