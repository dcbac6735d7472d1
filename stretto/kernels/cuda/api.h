// The functions of CUDA that are used, as tables: they are found when the program runs, nothing is linked and no header
// of CUDA is needed. A test fills the tables with a double's.
//
//   const CudaApi& cuda = cuda_api();                 // found once; Error: what is missing, and where it was looked for
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

// Numbers of the driver's interface.
namespace cuda_number {
constexpr int invalid_image = 200, out_of_memory = 2, not_ready = 600;             // results
constexpr int multiprocessors = 16, capability_major = 75, capability_minor = 76;  // attributes
constexpr unsigned stream_beside_others = 1, event_with_time = 0;                  // flags
}  // namespace cuda_number

#define CUDA_FUNCTION(name, symbol, parameters) CudaResult(*name) parameters = nullptr;
struct CudaDriver {
#include "stretto/kernels/cuda/driver.def"
};
struct CudaCompiler {
#include "stretto/kernels/cuda/nvrtc.def"
};
#undef CUDA_FUNCTION

struct CudaApi {
  CudaDriver driver;
  CudaCompiler compiler;
  std::string cache;  // a folder for compiled kernels; empty: they are not kept
};

const CudaApi& cuda_api();
void use_cuda_api(const CudaApi*);  // for tests: cuda_api() is this one from now on; null: what is found here

// A library by any of these names, where the linker looks and in these folders; what was found is filled in. Error: none
// of them is there, or one lacks a function.
void find_library(CudaDriver&, const std::vector<std::string>& names, const std::vector<std::string>& folders);
void find_library(CudaCompiler&, const std::vector<std::string>& names, const std::vector<std::string>& folders);
// Where libraries of CUDA may lie beside where the linker looks: CUDA_HOME, and a Python environment that has them.
std::vector<std::string> cuda_folders();

void check(const CudaApi&, CudaResult, std::string_view function);  // Error: the driver's words

}  // namespace stretto
