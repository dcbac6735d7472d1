// What forward keeps for backward that is made of parameters alone, such as bf16 casts of frozen weights: a copy per
// microbatch under way, on every rank.
//
//   const KeptCopies k = kept_copies(*compiled.program);
//   fmt::print("{} on a rank, {} in all\n", human_bytes(k.most), human_bytes(k.all));
#pragma once
#include "stretto/program/program.h"

namespace stretto {

struct KeptCopies {
  u64 most = 0, all = 0;  // bytes of the rank that has most, when it needs the most memory; of all ranks
};
KeptCopies kept_copies(const Program&);

}  // namespace stretto
