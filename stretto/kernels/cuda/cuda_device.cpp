#include "stretto/kernels/cuda/cuda_device.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "stretto/base/clock.h"
#include "stretto/base/hash.h"
#include "stretto/base/text.h"
#include "stretto/kernels/cuda/compile.h"
#include "stretto/kernels/cuda/kernel.h"
#include "stretto/kernels/cuda/share.h"

namespace stretto {
namespace {

constexpr int oldest_sm = 80;                 // products of bf16, copies beside work
constexpr std::size_t most_parameters = 128;  // of a kernel

// As the prelude of every kernel has them.
struct DeviceNow {
  u64 random;
  i64 step, first_row;
  std::int32_t overwrite;
  std::uint32_t instruction, call;
};
struct DeviceFault {
  std::int32_t taken;
  std::uint32_t instruction, call;
  i64 value, limit;
};

std::byte* bytes_at(CudaAddress a) { return reinterpret_cast<std::byte*>(a); }
CudaAddress address_of(const std::byte* p) { return reinterpret_cast<CudaAddress>(p); }

thread_local CudaContext current = nullptr;  // of this thread

}  // namespace

CudaDevice::CudaDevice(const CudaApi& api, int number) : api_(api), number_(number) {
  const CudaDriver& d = api_.driver;
  int count = 0, major = 0, minor = 0;
  check(d.init(0), "cuInit"), check(d.device_count(&count), "cuDeviceGetCount");
  if (number >= count)
    throw Error("parallel.device", "rank {} needs a CUDA device of its own, and there are {}", number, count)
        .hint("use fewer ranks; CUDA_VISIBLE_DEVICES says which devices are seen")
        .as(Error::Kind::run);
  check(d.device(&device_, number), "cuDeviceGet");
  std::array<char, 128> name{};
  check(d.device_name(name.data(), int(name.size()) - 1, device_), "cuDeviceGetName");
  check(d.attribute(&major, cuda_number::capability_major, device_), "cuDeviceGetAttribute");
  check(d.attribute(&minor, cuda_number::capability_minor, device_), "cuDeviceGetAttribute");
  name_ = name.data(), sm_ = 10 * major + minor;
  if (sm_ < oldest_sm)
    throw Error("parallel.device", "CUDA device {} is a {} (sm_{}), and kernels are for sm_{} and later", number, name_,
                sm_, oldest_sm)
        .hint("use device = \"cpu\", or a newer GPU")
        .as(Error::Kind::run);
  check(d.retain(&context_, device_), "cuDevicePrimaryCtxRetain");
  enter();
  for (std::size_t lane = 0; lane < lane_count; ++lane)
    check(d.stream(&streams_[DeviceLane(lane)], cuda_number::stream_beside_others), "cuStreamCreate");
  check(d.event(&origin_, cuda_number::event_with_time), "cuEventCreate");
  newest_.emplace(api_, 1);
  fault_ = memory(sizeof(DeviceFault));
}

// The context stays: other threads may have it as theirs.
CudaDevice::~CudaDevice() {
  if (!context_) return;
  const CudaDriver& d = api_.driver;
  d.use(current = context_);
  for (const CudaStream s : streams_)
    if (s) d.synchronize(s), d.end_stream(s);
  for (const Event& e : events_) d.end_event(e.event);
  if (origin_) d.end_event(origin_);
  for (const Prepared& k : kernels_)
    for (const Step& s : k.steps) d.unload(s.module);
  for (Prepared& k : kernels_) k.product.reset();
  if (products_) api_.products.destroy(products_);
  for (const CudaAddress a : allocated_) d.free(a);
}

std::string CudaDevice::about() const {
  int driver = 0, major = 0, minor = 0;
  check(api_.driver.version(&driver), "cuDriverGetVersion");
  api_.compiler.version(&major, &minor);
  return fmt::format("{} (sm_{}), driver {}.{}, NVRTC {}.{}", name_, sm_, driver / 1000, driver / 10 % 100, major,
                     minor);
}

std::optional<u64> CudaDevice::free_bytes() const {
  enter();
  std::size_t free = 0, total = 0;
  check(api_.driver.memory(&free, &total), "cuMemGetInfo");
  return free;
}

void CudaDevice::enter() const {
  if (current != context_) check(api_.driver.use(context_), "cuCtxSetCurrent"), current = context_;
}

// A device on which something has gone wrong says so at every call; where it went wrong is known when the step ends.
void CudaDevice::put(CudaResult result, std::string_view function) {
  if (result != 0 && !failed_) failed_ = {result, function};
}

CudaAddress CudaDevice::memory(std::size_t bytes) {
  CudaAddress at = 0;
  const CudaResult r = api_.driver.allocate(&at, bytes);
  if (r == cuda_number::out_of_memory) {
    std::size_t free = 0, total = 0;
    api_.driver.memory(&free, &total);
    throw Error("memory", "CUDA device {} ({}) has {} free of {}, and {} more are needed", number_, name_,
                human_bytes(double(free)), human_bytes(double(total)), human_bytes(double(bytes)))
        .hint("use a smaller batch, more microbatches, recompute, or more ranks")
        .as(Error::Kind::run);
  }
  check(r, "cuMemAlloc");
  allocated_.push_back(at);
  check(api_.driver.fill(at, 0, bytes), "cuMemsetD8");
  settle();
  return at;
}

// What is filled or copied to a device may still be under way when the call returns, and lanes do not wait for it.
void CudaDevice::settle() const { check(api_.driver.synchronize(nullptr), "cuStreamSynchronize"); }

std::byte* CudaDevice::allocate(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  enter();
  return bytes_at(memory(bytes));
}

CudaDevice::Step CudaDevice::step_of(const std::string& entry, const CudaSource& source, std::size_t operands) {
  Step s{.grid = source.grid, .block = source.block};
  const std::string& image = compiled(api_, sm_, source.text);
  const CudaResult loaded = api_.driver.load(&s.module, image.data());
  if (loaded == cuda_number::invalid_image)
    throw Error("cuda", "the driver does not load what the compiler makes for {} (sm_{})", name_, sm_)
        .hint("the driver is older than the libraries of CUDA: update it, or install older ones")
        .as(Error::Kind::run);
  check(loaded, "cuModuleLoadData");
  check(api_.driver.function(&s.function, s.module, entry.c_str()), "cuModuleGetFunction");
  // Loads what the driver would load when the kernel is first launched, which waits for all that other streams do: for
  // ever, where those wait for this one.
  int registers = 0;
  check(api_.driver.function_attribute(&registers, cuda_number::registers_of_function, s.function),
        "cuFuncGetAttribute");
  if (!source.table.empty()) {
    s.table = memory(source.table.size());
    write(bytes_at(s.table), source.table.data(), source.table.size());
  }
  s.operands.resize(operands);
  std::iota(s.operands.begin(), s.operands.end(), 0);
  if (source.operands) s.operands = *source.operands;
  return s;
}

KernelId CudaDevice::prepare(const Call& call) {
  enter();
  const CudaKernel& kernel = choose_cuda_kernel(call);
  Prepared k{.name = kernel.name, .results = call.out.size()};
  STRETTO_ASSERT(call.in.size() + call.out.size() + 4 <= most_parameters,
                 "a kernel with more operands than are passed");
  for (const CudaSource& s : kernel.write(call)) {
    k.steps.push_back(step_of(cuda_entry(*call.node.op), s, call.in.size()));
    k.work = std::max(k.work, s.work);
  }
  if (kernel.product) {
    if (!products_ && api_.products.create(&products_) != 0)
      throw Error("cuda", "cublasLt does not begin on {}", name_)
          .hint("is its version that of the driver?")
          .as(Error::Kind::run);
    k.product = std::make_unique<PreparedProduct>(api_, products_, *kernel.product(call));
    k.accumulate = call.accumulate;
    k.work = std::max(k.work, product_workspace);
  }
  most_work_ = std::max(most_work_, k.work);
  workspace(DeviceLane::compute);
  return kernels_.push_back(std::move(k));
}

EventId CudaDevice::event() {
  enter();
  Event e;
  check(api_.driver.event(&e.event, cuda_number::event_with_time), "cuEventCreate");
  return events_.push_back(e);
}

void CudaDevice::time_kernels(bool on) {
  if (on)
    throw Error("profile", "kernels of CUDA devices are not timed one by one")
        .hint("timelines show tasks; nsys profile shows kernels");
}

// Kernels of a lane run one after the other and share its workspace. That of the compute lane is there before the first
// step, as are the arenas; what runs in others needs none.
CudaAddress CudaDevice::workspace(DeviceLane lane) {
  if (workspace_bytes_[lane] >= most_work_) return workspaces_[lane];
  if (workspaces_[lane] != 0) {
    for (const CudaStream s : streams_) check(api_.driver.synchronize(s), "cuStreamSynchronize");
    std::erase(allocated_, workspaces_[lane]);
    check(api_.driver.free(workspaces_[lane]), "cuMemFree");
  }
  workspaces_[lane] = memory(most_work_), workspace_bytes_[lane] = most_work_;
  return workspaces_[lane];
}

void CudaDevice::launch(DeviceLane lane, KernelId id, const Args& args) {
  enter();
  const Prepared& k = kernels_[id];
  DeviceNow now{.random = hash_of(args.now.seed, args.now.key),
                .step = args.now.step,
                .first_row = args.now.first_row,
                .overwrite = args.now.overwrite,
                .instruction = args.launch.instruction,
                .call = args.launch.call};
  CudaAddress work = k.work > 0 ? workspace(lane) : 0;
  std::array<void*, most_parameters> parameters;
  for (const Step& s : k.steps) {
    std::size_t n = 0;
    for (const std::size_t i : s.operands) parameters[n++] = const_cast<std::byte**>(&args.in[i]);
    for (std::size_t i = 0; i < k.results; ++i) parameters[n++] = const_cast<std::byte**>(&args.out[i]);
    parameters[n++] = &now, parameters[n++] = &work;
    parameters[n++] = const_cast<CudaAddress*>(&s.table), parameters[n++] = &fault_;
    put(api_.driver.launch(s.function, s.grid, 1, 1, s.block, 1, 1, 0, streams_[lane], parameters.data(), nullptr),
        "cuLaunchKernel");
  }
  if (k.product)
    k.product->enqueue(address_of(args.in[0]), address_of(args.in[1]), address_of(args.out[0]),
                       k.accumulate && !args.now.overwrite, work, streams_[lane]);
}

void CudaDevice::record(EventId id, DeviceLane lane) {
  enter();
  events_[id].lane = lane;
  if (std::exchange(begins_, false)) {  // nothing is under way
    put(api_.driver.record(origin_, streams_[lane]), "cuEventRecord");
    origin_seconds_ = now();
  }
  put(api_.driver.record(events_[id].event, streams_[lane]), "cuEventRecord");
  if (lane == DeviceLane::compute)
    put(api_.driver.write_word(streams_[lane], newest_->at(0), id.value + 1, 0), "cuStreamWriteValue32");
}

void CudaDevice::wait(DeviceLane lane, EventId id) {
  enter();
  const Event& e = events_[id];
  STRETTO_ASSERT(e.lane, "a wait for an event that was not recorded");
  if (*e.lane != lane) put(api_.driver.wait(streams_[lane], e.event, 0), "cuStreamWaitEvent");
}

void CudaDevice::reach(LaneDevice& other) {
  enter();
  const CudaDevice& there = static_cast<const CudaDevice&>(other);
  if (there.device_ == device_) return;
  int yes = 0;
  check(api_.driver.can_reach(&yes, device_, there.device_), "cuDeviceCanAccessPeer");
  if (!yes)
    throw Error("parallel.device", "CUDA device {} ({}) does not reach the memory of device {} ({})", number_, name_,
                there.number_, there.name_)
        .hint(
            "ranks that exchange messages need devices that do: CUDA_VISIBLE_DEVICES says which are seen, "
            "nvidia-smi topo -p2p w shows which reach each other")
        .as(Error::Kind::run);
  const CudaResult r = api_.driver.reach(there.context_, 0);
  if (r != cuda_number::reached_already) check(r, "cuCtxEnablePeerAccess");
}

std::shared_ptr<LaneWords> CudaDevice::words(std::size_t count) {
  enter();
  return std::make_shared<CudaWords>(api_, count);
}

KernelId CudaDevice::prepare_share(const CollectiveShape& shape, int member) {
  enter();
  const std::size_t members = std::size_t(shape.members), operands = members + (shape.rows ? 1 : 0);
  if (operands + members + 4 > most_parameters)
    throw Error("parallel.device", "{} is for {} members, and CUDA devices take {} at most", shape.str(), members,
                (most_parameters - 5) / 2)
        .hint("use fewer ranks");
  Prepared k{.name = "share", .results = members, .steps = {}};
  k.steps.push_back(step_of(cuda_share_entry(shape.kind), cuda_share(shape, member), operands));
  return kernels_.push_back(std::move(k));
}

void CudaDevice::copy(DeviceLane lane, std::byte* to, const std::byte* from, std::size_t bytes) {
  enter();
  put(api_.driver.copy(address_of(to), address_of(from), bytes, streams_[lane]), "cuMemcpyAsync");
}

void CudaDevice::advance(DeviceLane lane, LaneWords& words, std::size_t word, std::uint32_t number) {
  enter();
  put(api_.driver.write_word(streams_[lane], static_cast<CudaWords&>(words).at(word), number, 0),
      "cuStreamWriteValue32");
}

void CudaDevice::wait_for(DeviceLane lane, const LaneWords& words, std::size_t word, std::uint32_t number) {
  enter();
  const CudaWords& own = static_cast<const CudaWords&>(words);
  if (std::ranges::find(awaited_, own.stopped()) == awaited_.end()) awaited_.push_back(own.stopped());
  const CudaAddress at = own.at(word);
  put(api_.driver.wait_for_word(streams_[lane], at, number, cuda_number::word_at_least), "cuStreamWaitValue32");
}

std::optional<KernelFault> CudaDevice::finish() {
  enter();
  begins_ = true;
  for (const CudaStream s : streams_) check(api_.driver.synchronize(s), "cuStreamSynchronize");
  if (const auto failed = std::exchange(failed_, std::nullopt)) check(failed->result, failed->function);
  for (const CudaWords::Stopped& stopped : awaited_)
    if (*stopped) throw Error("runtime", "stopped because another rank failed").as(Error::Kind::run);
  DeviceFault f{};
  check(api_.driver.to_host(&f, fault_, sizeof f), "cuMemcpyDtoH");
  if (!f.taken) return std::nullopt;
  check(api_.driver.fill(fault_, 0, sizeof f), "cuMemsetD8");
  settle();
  return KernelFault{.launch = {f.instruction, f.call}, .value = f.value, .limit = f.limit};
}

void CudaDevice::write(std::byte* to, const void* from, std::size_t bytes) {
  enter();
  if (bytes == 0) return;
  check(api_.driver.to_device(address_of(to), from, bytes), "cuMemcpyHtoD");
  settle();
}
void CudaDevice::read(void* to, const std::byte* from, std::size_t bytes) const {
  enter();
  if (bytes > 0) check(api_.driver.to_host(to, address_of(from), bytes), "cuMemcpyDtoH");
}

void CudaDevice::copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  enter();
  if (bytes == 0) return;
  check(api_.driver.copy(address_of(to), address_of(from), bytes, nullptr), "cuMemcpyAsync");
  settle();
}

std::optional<EventId> CudaDevice::newest() const {
  const std::uint32_t newest = newest_->now(0);
  return newest == 0 ? std::nullopt : std::optional(EventId(newest - 1));
}

double CudaDevice::seconds(EventId e) const {
  enter();
  float milliseconds = 0;
  check(api_.driver.elapsed(&milliseconds, origin_, events_[e].event), "cuEventElapsedTime");
  return origin_seconds_ + 1e-3 * double(milliseconds);
}

}  // namespace stretto
