#include "stretto/ops/ops.h"

namespace stretto {
namespace {
constexpr const Op* table[] = {
#define OP(name) &name##_op,
#include "stretto/ops/ops.def"
#undef OP
};
}  // namespace

std::span<const Op* const> all_ops() { return table; }

}  // namespace stretto
