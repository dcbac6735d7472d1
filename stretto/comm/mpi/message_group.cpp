#include "stretto/comm/mpi/message_group.h"

#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <limits>
#include <vector>

#include "stretto/base/error.h"
#include "stretto/comm/mpi/patience.h"

namespace stretto {
namespace {

// Every element of a box in order: f(offset in the operand, in the result).
template <class F>
void each_element(const CollectiveShape& s, F f) {
  std::vector<i64> index(s.sizes.size(), 0);
  i64 in = 0, out = 0;
  for (i64 n = s.box(); n > 0; --n) {
    f(in, out);
    for (std::size_t d = s.sizes.size(); d-- > 0;) {
      in += s.in_strides[d], out += s.out_strides[d];
      if (++index[d] < s.sizes[d]) break;
      in -= s.sizes[d] * s.in_strides[d], out -= s.sizes[d] * s.out_strides[d];
      index[d] = 0;
    }
  }
}

bool is_dense(const std::vector<i64>& sizes, const std::vector<i64>& strides) {
  i64 expect = 1;
  for (std::size_t d = sizes.size(); d-- > 0; expect *= sizes[d])
    if (sizes[d] != 1 && strides[d] != expect) return false;
  return true;
}

template <class T>
T larger(T a, T b) {  // a NaN stays
  return a < b || b != b ? b : a;
}
template <class T>
T plus(T a, T b) {
  if constexpr (std::is_same_v<T, std::int32_t>)
    return T(std::uint32_t(a) + std::uint32_t(b));
  else
    return a + b;
}

template <class T>
void add_up(Reduce how, int members, i64 count, const std::byte* all, std::byte* to) {
  const T* from = reinterpret_cast<const T*>(all);
  T* result = reinterpret_cast<T*>(to);
  for (i64 x = 0; x < count; ++x) {
    const auto get = [&](int m) { return from[m * count + x]; };
    result[x] = how == Reduce::max ? tree_reduce(0, members, get, larger<T>) : tree_reduce(0, members, get, plus<T>);
  }
}

class MessageGroup : public CollectiveGroup {
 public:
  MessageGroup(MPI_Comm comm, int member, bool copy, int under_way, int spins)
      : comm_(comm), member_(member), copy_(copy), spins_(spins), places_(std::size_t(under_way)) {
    MPI_Comm_size(comm_, &members_);
    MPI_Comm_dup(comm_, &sums_);
  }
  ~MessageGroup() override { MPI_Comm_free(&sums_); }

  std::uint32_t prepare(const CollectiveShape& s) override {
    for (std::size_t i = 0; i < prepared_.size(); ++i)
      if (prepared_[i].shape == s) return std::uint32_t(i);
    const i64 part = s.kind == CollectiveKind::reduce ? (s.box() + members_ - 1) / members_ : s.box();
    if (part > std::numeric_limits<int>::max() / 8)
      throw Error("mpi", "{} is too large for one exchange: parts of {} elements", s.str(), part);
    prepared_.push_back({s, part, size_of(s.dtype)});
    return std::uint32_t(prepared_.size() - 1);
  }

  u64 start(int, std::uint32_t prepared, const void* in, void* out) override {
    check();
    const u64 ticket = next_++;
    Place& p = places_[std::size_t(ticket % places_.size())];
    STRETTO_ASSERT(p.phase == Stage::free, "too many collectives are under way");
    p.ticket = ticket;
    p.what = &prepared_[prepared];
    p.out = static_cast<std::byte*>(out);
    p.phase = Stage::last;
    if (!copy_) {
      MPI_Ibarrier(comm_, &p.request);
      return ticket;
    }
    const Prepared& w = *p.what;
    const bool gather = w.shape.kind == CollectiveKind::gather;
    p.given.resize(w.bytes() * (gather ? 1 : std::size_t(members_)));
    p.taken.resize(w.bytes() * std::size_t(members_));
    pack(w, static_cast<const std::byte*>(in), p.given.data());
    const int bytes = int(w.bytes());
    if (gather)
      MPI_Iallgather(p.given.data(), bytes, MPI_BYTE, p.taken.data(), bytes, MPI_BYTE, comm_, &p.request);
    else
      MPI_Ialltoall(p.given.data(), bytes, MPI_BYTE, p.taken.data(), bytes, MPI_BYTE, comm_, &p.request);
    if (w.shape.kind == CollectiveKind::reduce) p.phase = Stage::exchange;
    return ticket;
  }

  bool progress(int, u64 ticket) override {
    Place& p = places_[std::size_t(ticket % places_.size())];
    if (p.phase == Stage::free) return true;
    check();
    while (next_sum_ < next_ && begin_gathering(next_sum_)) ++next_sum_;
    if (p.phase == Stage::exchange || !arrived(p)) return false;
    if (copy_) finish(p);
    p.phase = Stage::free;
    return true;
  }

  double wait(int member, u64 ticket) override {
    Patience p(spins_);
    while (!progress(member, ticket)) p.pause();
    return p.waited();
  }
  void stop() noexcept override { stopped_ = true; }

 private:
  struct Prepared {
    CollectiveShape shape;
    i64 part;  // elements that two members exchange
    std::size_t element;
    std::size_t bytes() const { return std::size_t(part) * element; }
  };
  enum class Stage { free, exchange, last };
  struct Place {
    Stage phase = Stage::free;
    u64 ticket = 0;
    const Prepared* what = nullptr;
    std::byte* out = nullptr;
    std::vector<std::byte> given, taken;  // as large as ever needed
    MPI_Request request = MPI_REQUEST_NULL;
  };

  static bool arrived(Place& p) {
    int done = 0;
    MPI_Test(&p.request, &done, MPI_STATUS_IGNORE);
    return done != 0;
  }

  // When the parts of a sum are here: adds them up, and lets everybody have the sum. False: they are not here yet.
  bool begin_gathering(u64 ticket) {
    Place& p = places_[std::size_t(ticket % places_.size())];
    if (p.ticket != ticket || p.phase != Stage::exchange) return true;  // no sum
    if (!arrived(p)) return false;
    add(*p.what, p.taken.data(), p.given.data());
    const int bytes = int(p.what->bytes());
    MPI_Iallgather(p.given.data(), bytes, MPI_BYTE, p.taken.data(), bytes, MPI_BYTE, sums_, &p.request);
    p.phase = Stage::last;
    return true;
  }

  void check() const {
    if (stopped_) throw Error("runtime", "stopped because another rank failed").as(Error::Kind::run);
  }

  void pack(const Prepared& w, const std::byte* in, std::byte* to) const {
    const CollectiveShape& s = w.shape;
    const int boxes =
        s.in_step != 0 || s.kind == CollectiveKind::scatter || s.kind == CollectiveKind::exchange ? members_ : 1;
    const bool dense = is_dense(s.sizes, s.in_strides);
    for (int b = 0; b < boxes; ++b) {
      const std::byte* from = in + std::size_t(b * s.in_step) * w.element;
      // Flat storage ends where the padding begins: what lies there is not read.
      const i64 valid = s.kind == CollectiveKind::scatter  ? s.box_valid(b)
                        : s.kind == CollectiveKind::gather ? s.box_valid(member_)
                                                           : s.box();
      if (dense) {
        std::memcpy(to, from, std::size_t(valid) * w.element);
        to += std::size_t(s.box()) * w.element;
      } else {
        each_element(s, [&](i64 at, i64) {
          std::memcpy(to, from + std::size_t(at) * w.element, w.element);
          to += w.element;
        });
      }
    }
  }

  void add(const Prepared& w, const std::byte* all, std::byte* to) const {
    const CollectiveShape& s = w.shape;
    if (s.dtype == f64)
      add_up<double>(s.how, members_, w.part, all, to);
    else if (s.dtype == f32)
      add_up<float>(s.how, members_, w.part, all, to);
    else if (s.dtype == i32)
      add_up<std::int32_t>(s.how, members_, w.part, all, to);
    else
      throw Error("collective", "{}: sums of {} are not computed", s.str(), name_of(s.dtype));
  }

  void unpack(const Prepared& w, const std::byte* from, std::byte* out, i64 valid) const {
    const CollectiveShape& s = w.shape;
    if (is_dense(s.sizes, s.out_strides)) {
      std::memcpy(out, from, std::size_t(valid) * w.element);
      return;
    }
    each_element(s, [&](i64, i64 at) {
      std::memcpy(out + std::size_t(at) * w.element, from, w.element);
      from += w.element;
    });
  }

  void finish(Place& p) {
    const Prepared& w = *p.what;
    const CollectiveShape& s = w.shape;
    switch (s.kind) {
      case CollectiveKind::reduce:
        unpack(w, p.taken.data(), p.out, s.box());
        break;
      case CollectiveKind::scatter: {
        add(w, p.taken.data(), p.given.data());
        const i64 valid = s.box_valid(member_);
        std::memset(p.given.data() + std::size_t(valid) * w.element, 0, std::size_t(s.box() - valid) * w.element);
        unpack(w, p.given.data(), p.out, s.box());
        break;
      }
      case CollectiveKind::gather:
      case CollectiveKind::exchange:
        for (int j = 0; j < members_; ++j)
          unpack(w, p.taken.data() + std::size_t(j) * w.bytes(), p.out + std::size_t(j * s.out_step) * w.element,
                 s.kind == CollectiveKind::gather ? s.box_valid(j) : s.box());
        break;
    }
  }

  // MPI matches calls by their order: all members start collectives in one order, and go on to the second half of
  // sums in that order too, at a time that is each one's own.
  MPI_Comm comm_, sums_ = MPI_COMM_NULL;
  int member_, members_ = 1;
  bool copy_;
  int spins_;
  std::vector<Place> places_;
  std::deque<Prepared> prepared_;  // which places point to
  u64 next_ = 0, next_sum_ = 0;    // tickets
  std::atomic<bool> stopped_{false};
};

}  // namespace

std::unique_ptr<CollectiveGroup> message_group(int communicator, int member, bool copy, int under_way, int spins) {
  return std::make_unique<MessageGroup>(MPI_Comm_f2c(communicator), member, copy, under_way, spins);
}

}  // namespace stretto
