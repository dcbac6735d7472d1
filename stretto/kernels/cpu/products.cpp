#include "stretto/kernels/cpu/products.h"

#include <mutex>
#include <vector>

#include "stretto/base/error.h"
#include "stretto/base/pages.h"
#include "stretto/base/text.h"

namespace stretto {
namespace {

struct Buffers {
  std::mutex mutex;
  std::vector<Pages> free;
  int all = 0;
};
Buffers& buffers() {
  static Buffers* const shared = new Buffers;  // threads give theirs back for as long as the process lives
  return *shared;
}

// Of a thread, until it ends.
class Taken {
 public:
  Taken() : pages_(take()) { pages_.touch(); }
  Taken(const Taken&) = delete;
  ~Taken() {
    const std::lock_guard lock(buffers().mutex);
    buffers().free.push_back(std::move(pages_));
  }
  std::byte* at() const { return pages_.at(); }

 private:
  static Pages take() {
    Buffers& b = buffers();
    {
      const std::lock_guard lock(b.mutex);
      if (!b.free.empty()) {
        Pages pages = std::move(b.free.back());
        b.free.pop_back();
        return pages;
      }
      ++b.all;
    }
    std::optional<Pages> pages = Pages::map(product_buffer);
    if (!pages)
      throw Error("memory", "the system refuses the {} that products of a thread need",
                  human_bytes(double(product_buffer)));
    return std::move(*pages);
  }
  Pages pages_;
};

}  // namespace

void reserve_products(int threads) {
  Buffers& b = buffers();
  const std::lock_guard lock(b.mutex);
  for (; b.all < threads; ++b.all) {
    std::optional<Pages> pages = Pages::map(product_buffer);
    if (!pages)
      throw Error("memory", "the system refuses the {} that products of {} thread{} need: {} each",
                  human_bytes(double(product_buffer) * threads), threads, threads == 1 ? "" : "s",
                  human_bytes(double(product_buffer)))
          .hint("raise the limit (ulimit -v unlimited), or use fewer ranks per process");
    b.free.push_back(std::move(*pages));
  }
}

std::byte* product_memory() {
  static thread_local const Taken taken;
  return taken.at();
}

}  // namespace stretto
