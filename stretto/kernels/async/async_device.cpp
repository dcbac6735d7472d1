#include "stretto/kernels/async/async_device.h"

#include <algorithm>
#include <array>
#include <utility>

#include "stretto/base/clock.h"
#include "stretto/kernels/collective_work.h"
#include "stretto/kernels/cpu/tile_forms.h"
#include "stretto/kernels/processor.h"

#if defined(__SANITIZE_THREAD__)
extern "C" {
void __tsan_read_range(void* at, unsigned long bytes);
void __tsan_write_range(void* at, unsigned long bytes);
}
#else
inline void __tsan_read_range(void*, unsigned long) {}
inline void __tsan_write_range(void*, unsigned long) {}
#endif

namespace stretto {
namespace {

constexpr std::size_t most_pointers = 96;  // operands and results of a kernel

// As the race proof counts them: gaps of a strided view are free for others, such as collectives in flight.
std::vector<ByteSpans> spans_of(const std::vector<View>& views) {
  std::vector<ByteSpans> all;
  for (const View& v : views) all.push_back(spans_of(v));
  return all;
}

void tell(void (*touch)(void*, unsigned long), std::byte* at, const ByteSpans& spans) {
  for (const ByteSpan& s : spans) touch(at + s.from, s.to - s.from);
}

// A launch with everything that the host's Args only point to.
struct AsyncLaunch {
  KernelSet* kernels;
  KernelId kernel;
  std::span<const ByteSpans> in, out;
  std::byte* scratch;
  std::size_t scratch_each;
  Now now;
  Launch launch;
  std::optional<KernelFault>* fault;
  std::array<std::byte*, most_pointers> at;

  void operator()() {
    std::byte** const results = at.data() + in.size();
    for (std::size_t i = 0; i < in.size(); ++i) tell(__tsan_read_range, at[i], in[i]);
    try {
      kernels->run(kernel, {.in = at.data(),
                            .out = results,
                            .scratch = scratch,
                            .now = now,
                            .launch = launch,
                            .fault = fault,
                            .scratch_each = scratch_each});
    } catch (...) {
      throw LaunchError{launch, std::current_exception()};
    }
    for (std::size_t i = 0; i < out.size(); ++i)
      if (results[i]) tell(__tsan_write_range, results[i], out[i]);
  }
};

class AsyncWords : public LaneWords {
 public:
  explicit AsyncWords(std::size_t count) : words_(std::make_unique<LaneWord[]>(count)) {}
  void stop() noexcept override { stopped_.store(true); }
  void advance(std::size_t word, std::uint32_t number) { words_[word].advance(number); }
  void wait_for(std::size_t word, std::uint32_t number) const {
    words_[word].wait_for(number, [this] {
      if (stopped_.load()) throw Error("runtime", "stopped because another rank failed").as(Error::Kind::run);
    });
  }

 private:
  std::unique_ptr<LaneWord[]> words_;
  std::atomic<bool> stopped_{false};
};

}  // namespace

AsyncDevice::AsyncDevice(AsyncOptions o)
    : options_(o), kernels_(o.team), threads_([this] {
        for (const auto& lane : lanes_)
          if (lane) lane->quit();
      }) {
  check_kernels_run_here();
  // Chosen before any lane runs: inside of kernels the sanitizer sees no locks, not even those around a first use.
  tile_form<float>(), tile_form<double>();
}

LaneQueue& AsyncDevice::queue(DeviceLane lane) {
  std::unique_ptr<LaneQueue>& queue = lanes_[lane];
  if (!queue) {
    const u64 seed = options_.seed * lane_count + static_cast<u64>(lane);
    queue = std::make_unique<LaneQueue>(AsyncOptions{.jitter = options_.jitter, .seed = seed}, failed_);
    threads_.start([q = queue.get()] { q->serve(); }, lane_count);
  }
  return *queue;
}

KernelId AsyncDevice::prepare(const Call& call) {
  STRETTO_ASSERT(call.in.size() + call.out.size() <= most_pointers, "a kernel with more operands than are copied");
  operands_.push_back({spans_of(call.in), spans_of(call.out)});
  return kernels_.prepare(call);
}

void AsyncDevice::launch(DeviceLane lane, KernelId k, const Args& args) {
  const Operands& o = operands_[k];
  AsyncLaunch work{.kernels = &kernels_,
                   .kernel = k,
                   .in = o.in,
                   .out = o.out,
                   .scratch = args.scratch,
                   .scratch_each = args.scratch_each,
                   .now = args.now,
                   .launch = args.launch,
                   .fault = &fault_,
                   .at = {}};
  std::copy_n(args.in, o.in.size(), work.at.begin());
  std::copy_n(args.out, o.out.size(), work.at.begin() + o.in.size());
  enqueue(lane, work);
}

void AsyncDevice::record(EventId id, DeviceLane lane) {
  Event& e = *events_[id];
  e.lane = &queue(lane);
  enqueue(lane, [id, e = &e, n = ++e.recorded, newest = lane == DeviceLane::compute ? &newest_ : nullptr] {
    e->seconds = now();
    if (newest) newest->store(id.value + 1, std::memory_order_relaxed);
    e->came.advance(n);
  });
}

void AsyncDevice::wait(DeviceLane lane, EventId id) {
  const Event& e = *events_[id];
  STRETTO_ASSERT(e.lane, "a wait for an event that was not recorded");
  if (e.lane == &queue(lane)) return;
  enqueue(lane, [this, word = &e.came, n = e.recorded] { word->wait_for(n, [this] { refuse_failed(); }); });
}

std::shared_ptr<LaneWords> AsyncDevice::words(std::size_t count) { return std::make_shared<AsyncWords>(count); }

KernelId AsyncDevice::prepare_share(const CollectiveShape& shape, int member) {
  const std::size_t members = std::size_t(shape.members), counts = shape.rows ? 1 : 0;
  if (2 * members + counts > most_pointers)
    throw Error("parallel.device", "{} is for {} members, and async devices take {} at most", shape.str(), members,
                (most_pointers - 1) / 2)
        .hint("use device = \"cpu\"");
  operands_.push_back({std::vector<ByteSpans>(members + counts), std::vector<ByteSpans>(members)});  // sees itself
  return kernels_.add("share", [work = CollectiveWork(shape), member, members](const Args& args) {
    const auto* const rows = work.shape().rows ? args.input<std::int32_t>(int(members)) : nullptr;
    for (std::uint32_t c = std::uint32_t(member); c < work.chunks(); c += members) work.run(c, args.in, args.out, rows);
  });
}

void AsyncDevice::copy(DeviceLane lane, std::byte* to, const std::byte* from, std::size_t bytes) {
  enqueue(lane, [=] { std::memcpy(to, from, bytes); });
}

void AsyncDevice::advance(DeviceLane lane, LaneWords& words, std::size_t word, std::uint32_t number) {
  enqueue(lane, [&words = static_cast<AsyncWords&>(words), word, number] { words.advance(word, number); });
}

void AsyncDevice::wait_for(DeviceLane lane, const LaneWords& words, std::size_t word, std::uint32_t number) {
  enqueue(lane, [&words = static_cast<const AsyncWords&>(words), word, number] { words.wait_for(word, number); });
}

// A lane that waits for other ranks is not waited for once something has failed here: they wait for this one.
std::optional<KernelFault> AsyncDevice::finish() {
  for (const auto& lane : lanes_)
    if (lane) lane->done().wait_for(lane->pushed(), [this] { refuse_failed(); });
  refuse_failed();
  for (const auto& lane : lanes_)
    if (lane) lane->begin_again();
  return std::exchange(fault_, std::nullopt);
}

void AsyncDevice::refuse_failed() const {
  if (const LaneQueue* first = failed_.load(std::memory_order_acquire)) std::rethrow_exception(first->failure());
}

std::optional<EventId> AsyncDevice::newest() const {
  const std::uint32_t newest = newest_.load(std::memory_order_relaxed);
  return newest == 0 ? std::nullopt : std::optional(EventId(newest - 1));
}

}  // namespace stretto
