#include "stretto/kernels/cuda/api.h"

#include <dlfcn.h>

#include <cstdlib>
#include <mutex>

#include "stretto/base/error.h"
#include "stretto/base/files.h"

namespace stretto {
namespace {

struct Opened {
  void* handle = nullptr;
  std::string name;
};

Opened opened(const std::vector<std::string>& names, const std::vector<std::string>& folders) {
  for (const std::string& name : names) {
    if (void* h = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return {h, name};
    for (const std::string& folder : folders)
      if (void* h = dlopen((folder + "/" + name).c_str(), RTLD_NOW | RTLD_LOCAL)) return {h, folder + "/" + name};
  }
  std::string looked = "where the linker looks";
  for (const std::string& folder : folders) looked += ", in " + folder;
  throw Error("cuda", "there is no {}; looked {}", names.front(), looked)
      .hint("install NVIDIA's driver and CUDA 12 or later, or set CUDA_HOME to where they are")
      .as(Error::Kind::run);
}

template <class F>
void find_symbol(F& to, const Opened& library, const char* symbol) {
  void* const at = dlsym(library.handle, symbol);
  if (!at)
    throw Error("cuda", "{} has no function {}", library.name, symbol)
        .hint("it is older than CUDA 12: install a newer one")
        .as(Error::Kind::run);
  to = reinterpret_cast<F>(at);
}

}  // namespace

#define CUDA_FUNCTION(name, symbol, parameters) find_symbol(to.name, library, #symbol);
void find_library(CudaDriver& to, const std::vector<std::string>& names, const std::vector<std::string>& folders) {
  const Opened library = opened(names, folders);
#include "stretto/kernels/cuda/driver.def"
}
void find_library(CudaCompiler& to, const std::vector<std::string>& names, const std::vector<std::string>& folders) {
  const Opened library = opened(names, folders);
#include "stretto/kernels/cuda/nvrtc.def"
}
void find_library(CudaProducts& to, const std::vector<std::string>& names, const std::vector<std::string>& folders) {
  const Opened library = opened(names, folders);
#include "stretto/kernels/cuda/cublaslt.def"
}
#undef CUDA_FUNCTION

std::vector<std::string> cuda_folders() {
  std::vector<std::string> all;
  if (const char* home = std::getenv("CUDA_HOME"))
    for (const char* folder : {"/lib64", "/lib"}) all.push_back(home + std::string(folder));
  if (const char* environment = std::getenv("VIRTUAL_ENV"))
    for (const std::filesystem::path& python : entries_of(environment + std::string("/lib")))
      for (const std::filesystem::path& part : entries_of(python / "site-packages/nvidia")) all.push_back(part / "lib");
  return all;
}

namespace {
const CudaApi* instead_of_found = nullptr;
}
void use_cuda_api(const CudaApi* api) { instead_of_found = api; }

const CudaApi& cuda_api() {
  if (instead_of_found) return *instead_of_found;
  static const CudaApi found = [] {
    CudaApi api;
    const std::vector<std::string> folders = cuda_folders();
    find_library(api.driver, {"libcuda.so.1"}, {});
    find_library(api.compiler, {"libnvrtc.so.13", "libnvrtc.so.12"}, folders);
    find_library(api.products, {"libcublasLt.so.13", "libcublasLt.so.12"}, folders);
    const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
    if (cache || home) api.cache = (cache ? cache : std::string(home) + "/.cache") + std::string("/stretto/kernels");
    return api;
  }();
  return found;
}

void check(const CudaApi& api, CudaResult result, std::string_view function) {
  if (result == 0) return;
  const char* text = nullptr;
  if (api.driver.error_text(result, &text) != 0 || !text) text = "an unknown error";
  const bool memory = result == cuda_number::out_of_memory;
  throw Error("cuda", "{} failed: {} ({})", function, text, result)
      .hint("{}", memory ? "use a smaller batch, more microbatches, recompute, or more ranks"
                         : "nvidia-smi shows the state of the device")
      .as(Error::Kind::run);
}

}  // namespace stretto
