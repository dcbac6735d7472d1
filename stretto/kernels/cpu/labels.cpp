#include "stretto/ops/labels.h"
#include "stretto/kernels/cpu/padding.h"

namespace stretto {
namespace {

Runner prepare_labels(const Call& call) {
  const LabelsAttrs& a = call.attrs<LabelsAttrs>();
  const View &x = call.in[0], &y = call.out[0];
  Nest all;  // padding is copied too, unseen
  for (DimId d : x.dims) add_loop(all, x.size(d), {x.stride(d), y.stride(d)});
  const i64 classes = call.graph.dim(a.over).valid();
  return [all, valid = valid_nest(x.dims, {&x}), classes, ignore = a.ignore](const Args& args) {
    const std::int32_t* in = args.input<std::int32_t>(0);
    std::int32_t* out = args.output<std::int32_t>();
    run_nest(valid, [&](Steps at) {
      const i64 label = in[at[0]];
      if (label != ignore) args.within(label, classes);
    });
    run_nest(all, [&](Steps at) { out[at[1]] = in[at[0]]; });
  };
}
constexpr Kernel labels_list[] = {{.name = "plain", .prepare = &prepare_labels}};

}  // namespace

std::span<const Kernel> labels_kernels() { return labels_list; }
}  // namespace stretto
