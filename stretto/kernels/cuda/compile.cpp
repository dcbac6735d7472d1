#include "stretto/kernels/cuda/compile.h"

#include <unistd.h>

#include <fstream>
#include <map>
#include <mutex>
#include <sstream>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/hash.h"

namespace stretto {
namespace {

// A file of the cache is a hash of the image and the image: one that was cut off is no image.
std::string read_image(const std::string& path) {
  std::ostringstream all;
  all << std::ifstream(path, std::ios::binary).rdbuf();
  const std::string text = all.str();
  u64 hash = 0;
  if (text.size() <= sizeof hash) return {};
  std::memcpy(&hash, text.data(), sizeof hash);
  const std::string image = text.substr(sizeof hash);
  return hash_bytes(image.data(), image.size()) == hash ? image : std::string();
}

// By another name first, so that nobody reads half of it. A cache that cannot be written is none.
void keep_image(const std::string& folder, const std::string& path, const std::string& image) {
  std::error_code wrong;
  make_folders(folder, wrong);
  const std::string fresh = fmt::format("{}.{}", path, getpid());
  {
    std::ofstream file(fresh, std::ios::binary);
    const u64 hash = hash_bytes(image.data(), image.size());
    file.write(reinterpret_cast<const char*>(&hash), sizeof hash);
    file.write(image.data(), std::ssize(image));
    if (!file.flush()) return void(std::filesystem::remove(fresh, wrong));
  }
  std::filesystem::rename(fresh, path, wrong);
}

// The text stays where it can be looked at.
Error refused(const CudaApi& api, CudaProgram program, const std::string& text) {
  std::size_t bytes = 0;
  api.compiler.log_size(program, &bytes);
  std::string log(bytes, ' ');
  if (bytes > 0) api.compiler.log(program, log.data());
  std::error_code wrong;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(wrong);
  const std::string kept = folder / fmt::format("stretto-kernel-{:016x}.cu", hash_bytes(text.data(), text.size()));
  std::ofstream(kept) << text;
  return Error("cuda", "a kernel does not compile: {}", log.c_str())
      .hint("its text is in {}", kept)
      .as(Error::Kind::bug);
}

std::string compile_now(const CudaApi& api, int sm, const std::string& text) {
  const CudaCompiler& c = api.compiler;
  struct Program {
    const CudaCompiler& c;
    CudaProgram at = nullptr;
    ~Program() {
      if (at) c.destroy(&at);
    }
  } program{c};
  const std::string chip = fmt::format("--gpu-architecture=sm_{}", sm);
  // Products and sums are rounded one by one: an element's bits do not depend on what stands around it.
  const char* const options[] = {chip.c_str(), "--fmad=false", "--std=c++17"};
  if (c.create(&program.at, text.c_str(), "kernel.cu", 0, nullptr, nullptr) != 0 ||
      c.compile(program.at, std::size(options), options) != 0)
    throw refused(api, program.at, text);
  std::size_t bytes = 0;
  if (c.image_size(program.at, &bytes) != 0 || bytes == 0) throw refused(api, program.at, text);
  std::string image(bytes, '\0');
  if (c.image(program.at, image.data()) != 0) throw refused(api, program.at, text);
  return image;
}

}  // namespace

const std::string& compiled(const CudaApi& api, int sm, const std::string& text) {
  static std::mutex mutex;
  static std::map<std::string, std::string> known;  // by where it lies, or would
  int major = 0, minor = 0;
  api.compiler.version(&major, &minor);
  const u64 key = hash_of(hash_bytes(text.data(), text.size()), sm, major, minor);
  const std::string path = fmt::format("{}/{:016x}.image", api.cache, key);
  {
    const std::lock_guard lock(mutex);
    if (const auto it = known.find(path); it != known.end()) return it->second;
  }
  std::string image = api.cache.empty() ? std::string() : read_image(path);
  if (image.empty()) {
    image = compile_now(api, sm, text);
    if (!api.cache.empty()) keep_image(api.cache, path, image);
  }
  const std::lock_guard lock(mutex);
  return known.try_emplace(path, std::move(image)).first->second;
}

}  // namespace stretto
