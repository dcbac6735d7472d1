#include "stretto/ops/ops.h"

namespace stretto {
namespace {
constexpr const Op* op_table[] = {
#define OP(name) &name##_op,
#include "stretto/ops/ops.def"
#undef OP
};
}  // namespace

std::span<const Op* const> all_ops() { return op_table; }

}  // namespace stretto
