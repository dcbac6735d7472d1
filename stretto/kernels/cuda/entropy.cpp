// Cross entropy, a block per row; the rows' losses are added by one block, in f64.
#include "stretto/kernels/cuda/kernel.h"
#include "stretto/ops/cross_entropy.h"
#include "stretto/ops/cross_entropy_grad.h"
#include "stretto/ops/labels.h"
#include "stretto/ops/part_entropy.h"

namespace stretto {
namespace {

constexpr std::string_view entropy_text = R"cuda(
  __shared__ W part[32];
  const double scale = *i2;
  for (unsigned row = blockIdx.x; row < row_n; row += gridDim.x) {
    const int label = i1[at_i1(row, 0)];
    W top = lowest<W>(), sum = 0;
    for (unsigned k = threadIdx.x; k < k_n; k += blockDim.x) top = larger(top, W(get(i0 + at_i0(row, k))));
    top = block_max(top, part);
    for (unsigned k = threadIdx.x; k < k_n; k += blockDim.x) sum += exp(get(i0 + at_i0(row, k)) - top);
    sum = block_sum(sum, part);
    const bool counts = label != ignore, is_class = label >= 0 && label < k_n;
    double loss = 0;
    if (threadIdx.x == 0 && counts)
      loss = within(label, k_n, now, fault) ? log(double(sum)) + (double(top) - double(get(i0 + at_i0(row, label)))) : no_number<double>();
    if (LOSSES && threadIdx.x == 0) ((double*)work)[row] = loss;
    __syncthreads();
    const W factor = W(scale / double(sum));
    if (GRADIENT)
      for (unsigned k = threadIdx.x; k < k_n; k += blockDim.x)
        store(GRADIENT + AT(row, k), counts && is_class ? exp(get(i0 + at_i0(row, k)) - top) * factor - (k == label ? W(scale) : W(0)) : W(0));
  }
)cuda";

CudaSource entropy_rows(CudaText& t, const Call& call, DimId over, i64 ignore, std::string_view names) {
  t.space("row", without(call.in[0].dims, {over})).space("k", {over}).integer("ignore", ignore).text(names);
  return t.kernel(entropy_text,
                  {.grid = blocks_for(t.count("row"), 1), .work = std::size_t(t.count("row")) * sizeof(double)});
}

std::vector<CudaSource> write_entropy(const Call& call) {
  const CrossEntropyAttrs& a = call.attrs<CrossEntropyAttrs>();
  CudaText t(call);
  CudaSource each =
      entropy_rows(t, call, a.over, a.ignore, "#define LOSSES 1\n#define GRADIENT o1\n#define AT at_o1\n");
  CudaSource all = t.kernel(R"cuda(
  __shared__ double part[32];
  double s = 0;
  for (unsigned row = threadIdx.x; row < row_n; row += blockDim.x) s += ((const double*)work)[row];
  s = block_sum(s, part);
  if (threadIdx.x == 0 && o0) *o0 = s;
)cuda",
                            {.work = each.work});
  return {std::move(each), std::move(all)};
}

std::vector<CudaSource> write_entropy_grad(const Call& call) {
  const CrossEntropyGradAttrs& a = call.attrs<CrossEntropyGradAttrs>();
  CudaText t(call);
  return {entropy_rows(t, call, a.over, a.ignore, "#define LOSSES 0\n#define GRADIENT o0\n#define AT at_o0\n")};
}

// Of some classes: the log of their exponentials' sum, and the label's logit if it is one of them.
std::vector<CudaSource> write_part_entropy(const Call& call) {
  const PartEntropyAttrs& a = call.attrs<PartEntropyAttrs>();
  CudaText t(call);
  t.space("row", without(call.in[0].dims, {a.over})).space("k", {a.over}).integer("ignore", a.ignore);
  t.integer("first", a.first).integer("classes", call.graph.dim(a.whole).valid());
  return {t.kernel(R"cuda(
  __shared__ W part[32];
  for (unsigned row = blockIdx.x; row < row_n; row += gridDim.x) {
    W top = lowest<W>(), sum = 0;
    for (unsigned k = threadIdx.x; k < k_n; k += blockDim.x) top = larger(top, W(get(i0 + at_i0(row, k))));
    top = block_max(top, part);
    for (unsigned k = threadIdx.x; k < k_n; k += blockDim.x) sum += exp(get(i0 + at_i0(row, k)) - top);
    sum = block_sum(sum, part);
    if (threadIdx.x != 0) continue;
    if (o0) o0[at_o0(row, 0)] = W(double(top) + log(double(sum)));
    if (!o1) continue;
    const i64 label = i1[at_i1(row, 0)], at = label - first;
    W logit = 0;
    if (label != ignore) {
      if (!within(label, classes, now, fault)) logit = no_number<W>();
      else if (at >= 0 && at < k_n) logit = get(i0 + at_i0(row, (unsigned)at));
    }
    o1[at_o1(row, 0)] = logit;
  }
)cuda",
                   {.grid = blocks_for(t.count("row"), 1)})};
}

// The same labels, looked at.
std::vector<CudaSource> write_labels(const Call& call) {
  const LabelsAttrs& a = call.attrs<LabelsAttrs>();
  CudaText all(call), valid(call);
  all.space("x", call.in[0].dims, CudaText::padded);
  valid.space("x", call.in[0].dims).integer("classes", call.graph.dim(a.over).valid()).integer("ignore", a.ignore);
  return {all.kernel("for (unsigned x = thread; x < x_n; x += threads) o0[at_o0(x)] = i0[at_i0(x)];\n",
                     {.grid = blocks_for(all.count("x"))}),
          valid.kernel(R"cuda(
  for (unsigned x = thread; x < x_n; x += threads)
    if (const i64 label = i0[at_i0(x)]; label != ignore) within(label, classes, now, fault);
)cuda",
                       {.grid = blocks_for(valid.count("x"))})};
}

constexpr CudaKernel part_entropy_list[] = {{.name = "rows", .write = &write_part_entropy}};
constexpr CudaKernel labels_list[] = {{.name = "looked at", .write = &write_labels}};
constexpr CudaKernel entropy_list[] = {{.name = "rows", .write = &write_entropy}};
constexpr CudaKernel entropy_grad_list[] = {{.name = "rows", .write = &write_entropy_grad}};

}  // namespace

std::span<const CudaKernel> part_entropy_cuda_kernels() { return part_entropy_list; }
std::span<const CudaKernel> labels_cuda_kernels() { return labels_list; }
std::span<const CudaKernel> cross_entropy_cuda_kernels() { return entropy_list; }
std::span<const CudaKernel> cross_entropy_grad_cuda_kernels() { return entropy_grad_list; }

}  // namespace stretto
