#include "support/cuda/make_believe.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <filesystem>
#include <functional>
#include <mutex>
#include <random>
#include <shared_mutex>
#include <thread>

#include "stretto/base/clock.h"
#include "stretto/base/error.h"
#include "support/cuda/ptx_machine.h"

namespace stretto::test {
namespace {

constexpr int success = 0, invalid_value = 1, not_found = 500, failed_launch = 700;

std::mutex failure_mutex;
std::string failure;  // the first kernel's that was refused; it stays, as a driver's does

std::atomic<std::uint64_t> launches, instructions, allocations;

// Kernels read the map of memory while they run, whoever changes it waits for them.
std::shared_mutex memory_mutex;
DeviceMemory device_memory;
std::size_t used = 0;

std::byte* real(CudaAddress at, std::size_t bytes) {
  const std::shared_lock lock(memory_mutex);
  const DeviceBlock* const b = device_memory.find(at, bytes);
  return b ? b->real + (at - b->address) : nullptr;
}

struct Stream {
  explicit Stream(unsigned seed = make_believe().jitter) : random(seed), jitter(seed != 0) {}
  ~Stream() {
    {
      const std::lock_guard lock(mutex);
      quit = true;
    }
    changed.notify_all();
    thread.join();
  }
  void push(std::function<void()> work) {
    {
      const std::lock_guard lock(mutex);
      queue.push_back(std::move(work));
    }
    changed.notify_all();
  }
  void drain() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return queue.empty() && idle; });
  }
  void serve() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [&] { return quit || !queue.empty(); });
      if (queue.empty()) return;
      const std::function<void()> work = std::move(queue.front());
      queue.pop_front(), idle = false;
      lock.unlock();
      if (jitter && random() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
      work();
      lock.lock();
      idle = true;
      changed.notify_all();
    }
  }
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> queue;
  bool idle = true, quit = false;
  PtxMachine machine{device_memory};
  std::minstd_rand random;
  bool jitter;
  std::thread thread{[this] { serve(); }};
};
struct Event {
  std::atomic<unsigned> recorded{0}, came{0};
  std::atomic<double> at{0};
};
struct Function {
  PtxModule module;
  const PtxKernel* kernel = nullptr;
};
// Copies and fills without a stream are done in this one, which others do not wait for; a copy to a device returns when
// its source may be used again.
Stream& default_stream() {
  static Stream s(1);
  return s;
}
Stream& of(CudaStream s) { return s ? *reinterpret_cast<Stream*>(s) : default_stream(); }
Event& of(CudaEvent e) { return *reinterpret_cast<Event*>(e); }

CudaResult told() {
  const std::lock_guard lock(failure_mutex);
  return failure.empty() ? success : failed_launch;
}

CudaResult allocate(CudaAddress* at, std::size_t bytes) {
  bytes = (bytes + 511) / 512 * 512;
  ++allocations;
  const std::unique_lock lock(memory_mutex);
  if (used + bytes > make_believe().memory) return cuda_number::out_of_memory;
  void* const here = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  void* const address = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (here == MAP_FAILED || address == MAP_FAILED) return cuda_number::out_of_memory;
  used += bytes;
  *at = reinterpret_cast<CudaAddress>(address);
  device_memory.add(*at, bytes, static_cast<std::byte*>(here));
  return success;
}
CudaResult free_memory(CudaAddress at) {
  default_stream().drain();
  const std::unique_lock lock(memory_mutex);
  const DeviceBlock* const b = device_memory.find(at, 1);
  if (!b || b->address != at) return invalid_value;
  used -= b->bytes;
  munmap(b->real, b->bytes);
  munmap(reinterpret_cast<void*>(at), b->bytes);
  device_memory.remove(at);
  return success;
}

CudaResult launch(CudaFunction f, unsigned grid, unsigned, unsigned, unsigned block, unsigned, unsigned,
                  unsigned shared, CudaStream s, void** parameters, void**) {
  const PtxKernel& kernel = *reinterpret_cast<Function*>(f)->kernel;
  std::vector<unsigned char> values(kernel.parameter_bytes());
  for (std::size_t i = 0; i < kernel.parameters.size(); ++i)
    std::memcpy(&values[kernel.parameters[i].at], parameters[i], kernel.parameters[i].bytes);
  ++launches;
  make_believe_work(s, [=, &kernel, &machine = of(s).machine] {
    std::vector<const void*> p;
    for (const PtxParameter& x : kernel.parameters) p.push_back(&values[x.at]);
    const std::uint64_t before = machine.executed;
    const std::shared_lock lock(memory_mutex);
    machine.launch(kernel, {.grid = grid, .block = block, .shared = shared}, p.data());
    instructions += machine.executed - before;
  });
  return success;
}

CudaDriver driver() {
  CudaDriver d;
  d.init = [](unsigned) { return success; };
  d.version = [](int* v) { return *v = 13000, success; };
  d.device_count = [](int* n) { return *n = make_believe().devices, success; };
  d.device = [](int* device, int number) { return *device = number, success; };
  d.device_name = [](char* name, int length, int) {
    return std::strncpy(name, "make-believe", std::size_t(length)), success;
  };
  d.attribute = [](int* value, int attribute, int) {
    const int sm = make_believe().sm;
    *value = attribute == cuda_number::capability_major   ? sm / 10
             : attribute == cuda_number::capability_minor ? sm % 10
                                                          : 1;
    return success;
  };
  d.retain = [](CudaContext* c, int device) {
    return *c = reinterpret_cast<CudaContext>(std::uintptr_t(device) + 1), success;
  };
  d.release = [](int) { return success; };
  d.use = [](CudaContext) { return success; };
  d.memory = [](std::size_t* free, std::size_t* total) {
    const std::shared_lock lock(memory_mutex);
    *total = make_believe().memory, *free = *total - std::min(used, *total);
    return success;
  };
  d.allocate = &allocate;
  d.free = &free_memory;
  d.fill = [](CudaAddress at, unsigned char v, std::size_t n) {
    std::byte* const p = real(at, n);
    if (!p) return invalid_value;
    return default_stream().push([=] { std::memset(p, v, n); }), told();
  };
  d.to_device = [](CudaAddress to, const void* from, std::size_t n) {
    std::byte* const p = real(to, n);
    if (!p) return invalid_value;
    const auto* const bytes = static_cast<const std::byte*>(from);
    return default_stream().push(
               [p, staged = std::vector<std::byte>(bytes, bytes + n)] { std::copy(staged.begin(), staged.end(), p); }),
           told();
  };
  d.to_host = [](void* to, CudaAddress from, std::size_t n) {
    default_stream().drain();
    const std::byte* const p = real(from, n);
    return p ? (std::memcpy(to, p, n), told()) : invalid_value;
  };
  d.stream = [](CudaStream* s, unsigned) { return *s = reinterpret_cast<CudaStream>(new Stream), success; };
  d.end_stream = [](CudaStream s) { return delete &of(s), success; };
  d.synchronize = [](CudaStream s) { return of(s).drain(), told(); };
  d.event = [](CudaEvent* e, unsigned) { return *e = reinterpret_cast<CudaEvent>(new Event), success; };
  d.end_event = [](CudaEvent e) { return delete &of(e), success; };
  d.record = [](CudaEvent e, CudaStream s) {
    of(s).push([&event = of(e), n = ++of(e).recorded] { event.at = now(), event.came = n; });
    return success;
  };
  d.wait = [](CudaStream s, CudaEvent e, unsigned) {
    of(s).push([&event = of(e), n = of(e).recorded.load()] {
      while (int(event.came - n) < 0) std::this_thread::sleep_for(std::chrono::microseconds(20));
    });
    return success;
  };
  d.query = [](CudaEvent e) { return of(e).came == of(e).recorded ? success : cuda_number::not_ready; };
  d.elapsed = [](float* ms, CudaEvent a, CudaEvent b) { return *ms = float(1e3 * (of(b).at - of(a).at)), success; };
  d.load = [](CudaModule* m, const void* image) {
    try {
      *m = reinterpret_cast<CudaModule>(new Function{.module = PtxModule(static_cast<const char*>(image))});
    } catch (const std::exception& e) {
      const std::lock_guard lock(failure_mutex);
      failure = e.what();
      return failed_launch;
    }
    return success;
  };
  d.unload = [](CudaModule m) { return delete reinterpret_cast<Function*>(m), success; };
  d.function = [](CudaFunction* f, CudaModule m, const char* name) {
    Function& function = *reinterpret_cast<Function*>(m);
    function.kernel = &function.module.kernel(name);
    *f = reinterpret_cast<CudaFunction>(m);
    return success;
  };
  d.launch = &launch;
  d.error_text = [](int error, const char** text) {
    static thread_local std::string words;
    const std::lock_guard lock(failure_mutex);
    words = error == failed_launch ? failure : error == cuda_number::out_of_memory ? "out of memory" : "invalid value";
    if (error == failed_launch) failure.clear();  // the next test begins anew
    *text = words.c_str();
    return error == not_found ? invalid_value : success;
  };
  return d;
}

// NVRTC's way to an image gives PTX here: it is not compiled any further, and PTX is what the machine reads.
CudaCompiler real_compiler;
CudaCompiler compiler_to_ptx(const CudaCompiler& found) {
  real_compiler = found;
  Dl_info info{};
  dladdr(reinterpret_cast<void*>(found.create), &info);
  void* const library = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  CudaCompiler c = found;
  c.image_size = reinterpret_cast<decltype(c.image_size)>(dlsym(library, "nvrtcGetPTXSize"));
  c.image = reinterpret_cast<decltype(c.image)>(dlsym(library, "nvrtcGetPTX"));
  c.compile = [](CudaProgram program, int count, const char* const* options) {
    std::vector<std::string> own(options, options + count);
    for (std::string& o : own)
      if (const std::size_t at = o.find("=sm_"); at != o.npos) o.replace(at, 4, "=compute_");
    std::vector<const char*> all;
    for (const std::string& o : own) all.push_back(o.c_str());
    return real_compiler.compile(program, count, all.data());
  };
  return c;
}

std::vector<std::string> folders() {
  std::vector<std::string> all = cuda_folders();
  std::error_code wrong;
  for (const auto& environment : std::filesystem::directory_iterator("/opt", wrong))
    for (const auto& python : std::filesystem::directory_iterator(environment.path() / "lib", wrong))
      for (const auto& part : std::filesystem::directory_iterator(python.path() / "site-packages/nvidia", wrong))
        all.push_back(part.path() / "lib");
  return all;
}

}  // namespace

void make_believe_work(CudaStream s, std::function<void()> work) {
  of(s).push([work = std::move(work)] {
    try {
      work();
    } catch (const std::exception& e) {
      const std::lock_guard lock(failure_mutex);
      if (failure.empty()) failure = e.what();
    }
  });
}
std::byte* make_believe_memory(CudaAddress at, std::size_t bytes) {
  std::byte* const p = real(at, bytes);
  if (!p) throw std::runtime_error("a product outside of all memory");
  return p;
}

MakeBelieve& make_believe() {
  static MakeBelieve all;
  return all;
}
MakeBelieveCounts make_believe_counts() { return {launches, instructions, allocations}; }

const CudaApi* make_believe_cuda() {
  static const std::optional<CudaApi> made = []() -> std::optional<CudaApi> {
    CudaCompiler compiler;
    try {
      find_library(compiler, {"libnvrtc.so.13", "libnvrtc.so.12"}, folders());
    } catch (const Error&) {
      return std::nullopt;
    }
    const char* const cache = std::getenv("STRETTO_TEST_KERNELS");  // a folder: later runs compile nothing
    return CudaApi{.driver = driver(),
                   .compiler = compiler_to_ptx(compiler),
                   .products = make_believe_products(),
                   .cache = cache ? cache : ""};
  }();
  return made ? &*made : nullptr;
}

}  // namespace stretto::test
