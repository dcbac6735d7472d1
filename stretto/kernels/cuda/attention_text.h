// What the kernels of attention share. Spaces h (what q and k both have), g (groups of heads that share keys), i
// (queries), j (keys), d and e (within a head); seen_from(SINCE, i) and seen_to(UNTIL, i); scale, softcap,
// capped(score); SINKS and SINK; VALUE(e), the last two indices of an element of a value.
#pragma once
#include "stretto/kernels/cuda/kernel.h"

namespace stretto {

CudaText attention_text(const Call&, int others);  // others: operands before `since`

// On tensor cores: bf16, 16 queries by 16 keys at a time.
bool accepts_attention_tiles(const Call&);
bool accepts_attention_grad_tiles(const Call&);
std::vector<CudaSource> write_attention_tiles(const Call&);
std::vector<CudaSource> write_attention_grad_tiles(const Call&);

}  // namespace stretto
