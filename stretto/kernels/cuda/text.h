// The text of kernels: CUDA C++ that is written for one call, with its shapes, strides and types as constants. A kernel
// says which spaces of indices it runs over and what happens at each; everything around that is written here.
//
//   CudaText t(call);
//   t.space("row", without(call.in[0].dims, {over})).space("k", {over});
//   return {t.kernel("for (unsigned k = thread; k < k_n; k += threads) o0[at_o0(0, k)] = i0[at_i0(0, k)];",
//                    {.grid = blocks_for(t.count("k"))})};
//
// In a body stand: i0, i1, ... and o0, o1, ... (null: nobody reads the result), at_i0(...) with an index of every
// space, row_n, In0, Out0, W (what in[0] is computed in), thread, threads, adds (result 0 is added to), now, work,
// table, fault; and what prelude.h has. Padding of results is cleared behind the body.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/kernels/kernel.h"

namespace stretto {

// A launch: text with a kernel named after its op (cuda_entry) and what it is launched with.
struct CudaSource {
  std::string text;
  unsigned grid = 1, block = 128;
  std::size_t work = 0;                                   // bytes of workspace, shared by the launches of a call
  std::vector<std::byte> table;                           // numbers that lie on the device as long as the kernel
  std::optional<std::vector<std::size_t>> operands = {};  // of the call, if not all
};
struct CudaShape {
  unsigned grid = 1, block = 128;
  std::size_t work = 0;
  std::vector<std::byte> table = {};
};

class CudaText {
 public:
  enum Extent { valid, padded };
  explicit CudaText(const Call&);
  // An index that runs over these dims, the last fastest: `<name>_n` and one more argument of at_...
  CudaText& space(const std::string& name, const DimSet& dims, Extent = valid);
  CudaText& number(std::string_view name, double);  // a constant of type W
  CudaText& integer(std::string_view name, i64);
  CudaText& text(std::string_view definitions);
  i64 count(std::string_view space) const;
  CudaSource kernel(std::string_view body, CudaShape) const;

 private:
  struct Space {
    std::string name;
    DimSet dims;
    std::vector<i64> sizes;
    i64 count = 1;
  };
  std::string at(const View&) const;
  std::string places() const;
  std::string clearing() const;
  std::string signature() const;

  const Call& call_;
  std::vector<Space> spaces_;
  std::string definitions_;
};

i64 offset_of(const View&, DimId);                       // where it begins, logically, along a dim that it has
std::string cuda_entry(const Op&);                       // "stretto_layer_norm": what tools show
unsigned blocks_for(i64 threads, unsigned block = 128);  // so many that each thread has one, up to what a grid may have
const char* cuda_memory_type(DType);                     // how elements are stored: "bf16"
const char* cuda_type(DType);                            // what they are computed in: "float"
std::string_view cuda_prelude();

}  // namespace stretto
