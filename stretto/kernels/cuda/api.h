// The functions of CUDA that are used, as tables: they are found when the program runs, nothing is linked and no header
// of CUDA is needed. A test fills the tables with a double's.
//
//   const CudaApi& cuda = cuda_api();         // found once; Error: what is missing, and where it was looked for
//   check(cuda, cuda.driver.allocate(&at, bytes), "cuMemAlloc");
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/base/id.h"

namespace stretto {

using CudaResult = int;  // 0: it succeeded
using CudaAddress = u64;
using CudaContext = struct CudaContextTag*;
using CudaStream = struct CudaStreamTag*;
using CudaEvent = struct CudaEventTag*;
using CudaModule = struct CudaModuleTag*;
using CudaFunction = struct CudaFunctionTag*;
using CudaProgram = struct CudaProgramTag*;
using CublasHandle = struct CublasHandleTag*;
using CublasProduct = struct CublasProductTag*;
using CublasMatrix = struct CublasMatrixTag*;
using CublasPreference = struct CublasPreferenceTag*;
struct CublasAlgorithm {
  std::uint64_t data[8];
};
struct CublasChoice {
  CublasAlgorithm algorithm;
  std::size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

// Numbers of the interfaces.
namespace cuda_number {
constexpr int invalid_image = 200, out_of_memory = 2, reached_already = 704;       // results
constexpr int multiprocessors = 16, capability_major = 75, capability_minor = 76;  // attributes
constexpr unsigned stream_beside_others = 1, event_with_time = 0;                  // flags
constexpr unsigned host_for_all_devices = 3, word_at_least = 0;
constexpr int registers_of_function = 4;
constexpr int type_f32 = 0, type_f64 = 1, type_bf16 = 14;  // of elements
constexpr int in_f32 = 68, in_f64 = 70;                    // products are computed
constexpr int product_turns_a = 3, product_turns_b = 4;    // attributes
constexpr int matrix_batches = 5, matrix_batch_step = 6;
constexpr int most_workspace = 1, alignment_of_a = 5;  // ... of b, c and d follow
}  // namespace cuda_number

#define CUDA_FUNCTION(name, symbol, parameters) CudaResult(*name) parameters = nullptr;
struct CudaDriver {
#include "stretto/kernels/cuda/driver.def"
};
struct CudaCompiler {
#include "stretto/kernels/cuda/nvrtc.def"
};
struct CudaProducts {
#include "stretto/kernels/cuda/cublaslt.def"
};
#undef CUDA_FUNCTION

struct CudaApi {
  CudaDriver driver;
  CudaCompiler compiler;
  CudaProducts products;
  std::string cache;  // a folder for compiled kernels; empty: they are not kept
};

const CudaApi& cuda_api();
void use_cuda_api(const CudaApi*);  // for tests: cuda_api() is this one from now on; null: what is found here

// A library by any of these names, where the linker looks and in these folders; what was found is filled in. Error:
// none of them is there, or one lacks a function.
void find_library(CudaDriver&, const std::vector<std::string>& names, const std::vector<std::string>& folders);
void find_library(CudaCompiler&, const std::vector<std::string>& names, const std::vector<std::string>& folders);
void find_library(CudaProducts&, const std::vector<std::string>& names, const std::vector<std::string>& folders);
// Where libraries of CUDA may lie beside where the linker looks: CUDA_HOME, and a Python environment that has them.
std::vector<std::string> cuda_folders();

void check(const CudaApi&, CudaResult, std::string_view function);  // Error: the driver's words

}  // namespace stretto
