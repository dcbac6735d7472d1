// The op table: OP(x) in ops.def declares x_op here. For ops only, and for who makes nodes of them.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {
#define OP(name) extern const Op name##_op;
#include "stretto/ops/ops.def"
#undef OP
}  // namespace stretto
