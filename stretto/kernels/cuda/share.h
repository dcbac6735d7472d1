// A member's part of a collective between devices that reach each other's memory, as a kernel. Its text depends on the
// kind, the type and how many members and dims there are; sizes and who the member is are numbers in its table.
//
//   const CudaSource s = cuda_share(shape, member);        // parameters: all operands, counts of rows, all results
//
// Of a sum every member adds up its part for all, element by element in the tree over members; what is gathered goes to
// all from whom it is of; what is exchanged or scattered is fetched by whom it is for.
#pragma once
#include "stretto/ir/collective.h"
#include "stretto/kernels/cuda/text.h"

namespace stretto {

CudaSource cuda_share(const CollectiveShape&, int member);
std::string cuda_share_entry(CollectiveKind);

}  // namespace stretto
