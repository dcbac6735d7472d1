#include "support/cuda/make_believe.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <bit>
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
#include "stretto/kernels/async/lane_word.h"
#include "support/cuda/ptx_machine.h"

namespace stretto::test {
namespace {

constexpr int success = 0, invalid_value = 1, invalid_context = 201, not_found = 500, failed_launch = 700;

struct Context {
  std::string failure;        // the first kernel's that was refused; it stays, as a driver's does
  std::uint64_t reaches = 0;  // memory of which devices: a bit for each
  std::size_t used = 0;       // bytes
};
std::mutex context_mutex;
std::array<Context, 64> contexts;  // by their devices
thread_local int current = -1;

bool failed(int device) {
  const std::lock_guard lock(context_mutex);
  return !contexts[std::size_t(device)].failure.empty();
}
void fail(int device, const std::string& why) {
  const std::lock_guard lock(context_mutex);
  if (std::string& failure = contexts[std::size_t(device)].failure; failure.empty()) failure = why;
}
std::uint64_t reached(int device) {
  const std::lock_guard lock(context_mutex);
  return contexts[std::size_t(device)].reaches;
}

// Closed: streams stand still until so many devices are waited for.
std::mutex gate_mutex;
std::condition_variable gate_changed;
int gate = 0;
bool forced = false;
std::uint64_t waited_for = 0;  // devices: a bit for each
void pass_gate() {
  std::unique_lock lock(gate_mutex);
  if (!gate_changed.wait_for(lock, std::chrono::seconds(30), [] { return gate == 0; })) forced = true, gate = 0;
}
void come_to_gate(int device) {
  const std::lock_guard lock(gate_mutex);
  waited_for |= std::uint64_t(1) << device;
  if (std::popcount(waited_for) >= gate) gate = 0, gate_changed.notify_all();
}

std::atomic<std::uint64_t> launches, instructions, allocations;

// Kernels read the map of memory while they run, whoever changes it waits for them.
std::shared_mutex memory_mutex;
DeviceMemory device_memory;
std::map<CudaAddress, std::size_t> host_memory;

std::byte* real(CudaAddress at, std::size_t bytes, std::uint64_t reaches = ~std::uint64_t(0)) {
  const std::shared_lock lock(memory_mutex);
  const DeviceBlock* const b = device_memory.find(at, bytes);
  return b && (reaches >> b->device & 1) ? b->real + (at - b->address) : nullptr;
}
bool is_word(CudaAddress at) {
  const std::shared_lock lock(memory_mutex);
  auto it = host_memory.upper_bound(at);
  return at % 4 == 0 && it != host_memory.begin() && (--it, at + 4 <= it->first + it->second);
}

struct Stream {
  Stream(int of_device, unsigned seed) : device(of_device), random(seed), jitter(seed != 0) {}
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
      if (device >= 0) pass_gate();
      if (jitter && random() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
      work();
      lock.lock();
      idle = true;
      changed.notify_all();
    }
  }
  int device;  // -1: of all
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
  int device = current;
  std::atomic<unsigned> recorded{0};
  LaneWord came;
  std::atomic<double> at{0};
};
struct Function {
  int device = current;
  PtxModule module;
  const PtxKernel* kernel = nullptr;
};
// Copies and fills without a stream are done in this one, which others do not wait for; a copy to a device returns when
// its source may be used again.
Stream& default_stream() {
  static Stream s(-1, 1);
  return s;
}
Stream& of(CudaStream s) { return s ? *reinterpret_cast<Stream*>(s) : default_stream(); }
Event& of(CudaEvent e) { return *reinterpret_cast<Event*>(e); }

CudaResult told() { return current < 0 ? invalid_context : failed(current) ? failed_launch : success; }
// Of streams and what is done in them.
template <class... Others>
bool is_current(CudaStream s, const Others&... others) {
  return current >= 0 && (!s || of(s).device == current) && (true && ... && (others.device == current));
}
const LaneWord& word_at(CudaAddress at) {
  static_assert(sizeof(LaneWord) == 4);
  return *reinterpret_cast<const LaneWord*>(at);
}

CudaResult allocate(CudaAddress* at, std::size_t bytes) {
  bytes = (bytes + 511) / 512 * 512;
  ++allocations;
  const std::unique_lock lock(memory_mutex);
  std::size_t& used = contexts[std::size_t(current)].used;
  if (used + bytes > make_believe().memory) return cuda_number::out_of_memory;
  void* const here = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  void* const address = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (here == MAP_FAILED || address == MAP_FAILED) return cuda_number::out_of_memory;
  used += bytes;
  *at = reinterpret_cast<CudaAddress>(address);
  device_memory.add(*at, bytes, static_cast<std::byte*>(here), current);
  return success;
}
CudaResult free_memory(CudaAddress at) {
  default_stream().drain();
  const std::unique_lock lock(memory_mutex);
  const DeviceBlock* const b = device_memory.find(at, 1);
  if (!b || b->address != at) return invalid_value;
  contexts[std::size_t(b->device)].used -= b->bytes;
  munmap(b->real, b->bytes);
  munmap(reinterpret_cast<void*>(at), b->bytes);
  device_memory.remove(at);
  return success;
}

CudaResult launch(CudaFunction f, unsigned grid, unsigned, unsigned, unsigned block, unsigned, unsigned,
                  unsigned shared, CudaStream s, void** parameters, void**) {
  if (!is_current(s, *reinterpret_cast<Function*>(f))) return invalid_context;
  const PtxKernel& kernel = *reinterpret_cast<Function*>(f)->kernel;
  std::vector<unsigned char> values(kernel.parameter_bytes());
  for (std::size_t i = 0; i < kernel.parameters.size(); ++i)
    std::memcpy(&values[kernel.parameters[i].at], parameters[i], kernel.parameters[i].bytes);
  ++launches;
  make_believe_work(s, [=, &kernel, &machine = of(s).machine, device = of(s).device] {
    std::vector<const void*> p;
    for (const PtxParameter& x : kernel.parameters) p.push_back(&values[x.at]);
    const std::uint64_t before = machine.executed;
    const std::shared_lock lock(memory_mutex);
    machine.reaches = reached(device);
    machine.launch(kernel, {.grid = grid, .block = block, .shared = shared}, p.data());
    instructions += machine.executed - before;
  });
  return told();
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
  // A device that was made anew works again.
  d.retain = [](CudaContext* c, int device) {
    const std::lock_guard lock(context_mutex);
    Context& context = contexts[std::size_t(device)];
    context.failure.clear(), context.reaches = std::uint64_t(1) << device;
    return *c = reinterpret_cast<CudaContext>(std::uintptr_t(device) + 1), success;
  };
  d.use = [](CudaContext c) { return current = int(reinterpret_cast<std::uintptr_t>(c)) - 1, success; };
  d.can_reach = [](int* yes, int device, int other) { return *yes = make_believe().reach && device != other, success; };
  d.reach = [](CudaContext c, unsigned) {
    if (current < 0 || !make_believe().reach) return invalid_context;
    const std::lock_guard lock(context_mutex);
    std::uint64_t& reaches = contexts[std::size_t(current)].reaches;
    const std::uint64_t other = std::uint64_t(1) << (reinterpret_cast<std::uintptr_t>(c) - 1);
    return std::exchange(reaches, reaches | other) & other ? cuda_number::reached_already : success;
  };
  d.memory = [](std::size_t* free, std::size_t* total) {
    const std::shared_lock lock(memory_mutex);
    *total = make_believe().memory, *free = *total - std::min(contexts[std::size_t(current)].used, *total);
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
  d.copy = [](CudaAddress to, CudaAddress from, std::size_t n, CudaStream s) {
    if (!is_current(s)) return invalid_context;
    make_believe_work(s ? s : reinterpret_cast<CudaStream>(&default_stream()), [=, device = current] {
      std::byte* const x = real(to, n, reached(device));
      const std::byte* const y = real(from, n, reached(device));
      if (!x || !y) throw std::runtime_error("a copy outside of all memory that the device reaches");
      std::memcpy(x, y, n);
    });
    return told();
  };
  d.host_memory = [](void** at, std::size_t bytes, unsigned flags) {
    if (current < 0 || flags != cuda_number::host_for_all_devices) return invalid_value;
    *at = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    const std::unique_lock lock(memory_mutex);
    host_memory[reinterpret_cast<CudaAddress>(*at)] = bytes;
    return success;
  };
  d.free_host_memory = [](void* at) {
    const std::unique_lock lock(memory_mutex);
    if (host_memory.erase(reinterpret_cast<CudaAddress>(at)) == 0) return invalid_value;
    return std::free(at), success;
  };
  d.write_word = [](CudaStream s, CudaAddress at, std::uint32_t n, unsigned) {
    if (!is_current(s) || !is_word(at)) return invalid_value;
    make_believe_work(s, [=] { const_cast<LaneWord&>(word_at(at)).advance(n); });
    return told();
  };
  d.wait_for_word = [](CudaStream s, CudaAddress at, std::uint32_t n, unsigned flags) {
    if (!is_current(s) || !is_word(at) || flags != cuda_number::word_at_least) return invalid_value;
    make_believe_work(s, [=, device = of(s).device] {
      word_at(at).wait_for(n, [device] {
        if (failed(device)) throw std::runtime_error("");
      });
    });
    return told();
  };
  d.stream = [](CudaStream* s, unsigned) {
    static std::atomic<unsigned> made = 0;
    const unsigned seed = make_believe().jitter ? make_believe().jitter + ++made : 0;
    return *s = reinterpret_cast<CudaStream>(new Stream(current, seed)), told();
  };
  d.end_stream = [](CudaStream s) { return delete &of(s), success; };
  d.synchronize = [](CudaStream s) {
    if (!is_current(s)) return invalid_context;
    if (s) come_to_gate(current);
    return of(s).drain(), told();
  };
  d.event = [](CudaEvent* e, unsigned) { return *e = reinterpret_cast<CudaEvent>(new Event), success; };
  d.end_event = [](CudaEvent e) { return delete &of(e), success; };
  d.record = [](CudaEvent e, CudaStream s) {
    if (!is_current(s, of(e))) return invalid_context;
    of(s).push([&event = of(e), n = ++of(e).recorded] { event.at = now(), event.came.advance(n); });
    return success;
  };
  d.wait = [](CudaStream s, CudaEvent e, unsigned) {
    if (!is_current(s)) return invalid_context;
    of(s).push([&event = of(e), n = of(e).recorded.load()] { event.came.wait_for(n, [] {}); });
    return success;
  };
  d.elapsed = [](float* ms, CudaEvent a, CudaEvent b) { return *ms = float(1e3 * (of(b).at - of(a).at)), success; };
  d.load = [](CudaModule* m, const void* image) {
    try {
      *m = reinterpret_cast<CudaModule>(new Function{.module = PtxModule(static_cast<const char*>(image))});
    } catch (const std::exception& e) {
      return fail(current, e.what()), failed_launch;
    }
    return told();
  };
  d.unload = [](CudaModule m) { return delete reinterpret_cast<Function*>(m), success; };
  d.function = [](CudaFunction* f, CudaModule m, const char* name) {
    Function& function = *reinterpret_cast<Function*>(m);
    function.kernel = &function.module.kernel(name);
    *f = reinterpret_cast<CudaFunction>(m);
    return success;
  };
  d.function_attribute = [](int* value, int, CudaFunction) { return *value = 32, success; };
  d.launch = &launch;
  d.error_text = [](int error, const char** text) {
    static thread_local std::string words;
    const std::lock_guard lock(context_mutex);
    words = error == failed_launch && current >= 0 ? contexts[std::size_t(current)].failure
            : error == cuda_number::out_of_memory  ? "out of memory"
            : error == invalid_context             ? "invalid device context"
                                                   : "invalid value";
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
  of(s).push([work = std::move(work), device = std::max(of(s).device, 0)] {
    if (failed(device)) return;
    try {
      work();
    } catch (const std::exception& e) {
      fail(device, e.what());
    }
  });
}
std::byte* make_believe_memory(CudaAddress at, std::size_t bytes) {
  std::byte* const p = real(at, bytes);
  if (!p) throw std::runtime_error("a product outside of all memory");
  return p;
}

void make_believe_stands_still(int until_waited_for) {
  const std::lock_guard lock(gate_mutex);
  gate = until_waited_for, waited_for = 0, forced = false;
}
bool make_believe_stood_still() {
  const std::lock_guard lock(gate_mutex);
  return gate == 0 && !forced;
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
