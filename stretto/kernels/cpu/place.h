// Copies an operand to its place inside the result, for ops like pad, stack and concat.
//
//   const Placement place(call.in[0], call.out[0], map);        // map: where the operand lies in the result
//   place.run(args.in[0], args.out[0], false);
#pragma once
#include "stretto/kernels/cpu/nest.h"
#include "stretto/kernels/kernel.h"

namespace stretto {

class Placement {
 public:
  Placement(const View& part, const View& whole, const ViewMap& map);
  void run(const std::byte* from, std::byte* to, bool add) const;  // does nothing when it is there already

 private:
  Nest nest_;  // arrays: part, whole
  DType dtype_;
  i64 start_ = 0;
  bool same_strides_ = true;
};

void fill_zero(const View&, std::byte*);

// The kernel of an op whose only operand lies at `map` of its result, with zeros around it.
Runner place_in_zeros(const Call&, const ViewMap& map);
// The kernel of an op whose operands lie inside its result (Op::into).
Runner place_all(const Call&);

}  // namespace stretto
