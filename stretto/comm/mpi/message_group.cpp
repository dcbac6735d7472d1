#include "stretto/comm/mpi/message_group.h"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <deque>
#include <vector>

#include "stretto/base/error.h"
#include "stretto/comm/mpi/patience.h"
#include "stretto/comm/stop_flag.h"
#include "stretto/kernels/box_runs.h"
#include "stretto/kernels/collective_work.h"

namespace stretto {
namespace {

constexpr std::size_t in_flight = 4;                                                // slices
constexpr i64 slice_bytes = 2 << 20, least_part = 64 << 10, most_part = 512 << 10;  // a part: what one message carries
enum Tag : int { parts, sums };

bool contiguous(const std::vector<i64>& sizes, const std::vector<i64>& strides) {
  i64 expect = 1;
  for (std::size_t d = sizes.size(); d-- > 0; expect *= sizes[d])
    if (sizes[d] != 1 && strides[d] != expect) return false;
  return true;
}

class MessageGroup : public CollectiveGroup {
 public:
  MessageGroup(MPI_Comm comm, int member, int under_way, int spins)
      : comm_(comm), member_(member), spins_(spins), places_(under_way) {
    MPI_Comm_size(comm_, &members_);
    for (Slice& s : flight_) {
      s.requests.reserve(2 * members_);
      s.sources.resize(members_);
    }
  }

  std::uint32_t prepare(const CollectiveShape& s) override {
    if (s.members != members_)
      throw Error("collective", "{} is for {} members, the group has {}", s.str(), s.members, members_);
    for (std::uint32_t i = 0; i < prepared_.size(); ++i)
      if (prepared_[i].asked == s) return i;
    Prepared p{.asked = s, .shape = merged(s)};
    p.element = size_of(s.dtype);
    p.dense_in = contiguous(p.shape.sizes, p.shape.in_strides);
    p.dense_out = contiguous(p.shape.sizes, p.shape.out_strides);
    if (p.shape.sums()) p.sum = dense_sum_for(s.dtype, s.how);
    p.part = std::clamp(slice_bytes / members_, least_part, most_part) / p.element;
    if (s.rows) p.part = std::max<i64>(1, p.part / s.rows->elements) * s.rows->elements;
    p.length = s.kind == CollectiveKind::reduce ? p.part * members_ : p.part;
    p.slices = (p.shape.box() + p.length - 1) / p.length;
    const std::size_t bytes = members_ * p.part * p.element;
    for (Slice& slice : flight_) {
      slice.taken.resize(std::max(slice.taken.size(), bytes));
      if (!p.dense_in) slice.given.resize(std::max(slice.given.size(), bytes));
    }
    prepared_.push_back(std::move(p));
    return prepared_.size() - 1;
  }

  u64 start(int, std::uint32_t prepared, const void* in, void* out, const void* counts) override {
    stopped_.check();
    Place& p = place(next_);
    STRETTO_ASSERT(p.left == 0, "too many collectives are under way");
    p.what = &prepared_[prepared];
    p.in = static_cast<const std::byte*>(in);
    p.out = static_cast<std::byte*>(out);
    p.counts = static_cast<const std::int32_t*>(counts);
    p.slices = p.left = p.what->shape.rows ? slices_of_rows(p) : p.what->slices;
    if (p.what->shape.rows) clear_after_rows(p);
    ++next_;
    issue();
    return next_ - 1;
  }

  bool progress(int, u64 ticket) override {
    stopped_.check();
    advance();
    return done(ticket);
  }
  double wait(int, u64 ticket) override {
    Patience p(spins_);
    while (stopped_.check(), advance(), !done(ticket)) p.pause();
    return p.waited();
  }
  void stop() noexcept override { stopped_.set(); }

 private:
  struct Prepared {
    CollectiveShape asked, shape;  // as given; with as few dims as possible
    i64 element = 4;               // bytes
    bool dense_in = true, dense_out = true;
    DenseSum sum = nullptr;
    i64 part = 1;    // elements of a message, at most
    i64 length = 1;  // elements of a slice
    i64 slices = 0;
  };
  struct Place {
    const Prepared* what = nullptr;
    const std::byte* in = nullptr;
    std::byte* out = nullptr;
    const std::int32_t* counts = nullptr;  // of rows
    i64 slices = 0, left = 0;              // all; those that are not complete
  };
  struct Slice {
    Place* place = nullptr;
    i64 number = 0;
    bool summed = false;  // an all_reduce: sums are on their way
    std::vector<MPI_Request> requests;
    std::vector<std::byte> given, taken;  // one part per member: packed operands; what has come
    std::vector<const std::byte*> sources;
  };
  struct Range {
    i64 first = 0, last = 0;
    i64 size() const { return std::max<i64>(0, last - first); }
  };

  Place& place(u64 ticket) { return places_[ticket % places_.size()]; }
  // Tickets end in their order: those before the first that is not complete are.
  bool done(u64 ticket) {
    while (first_open_ < issuing_ && place(first_open_).left == 0) ++first_open_;
    return ticket < first_open_;
  }
  Slice& flying(std::size_t i) { return flight_[(first_ + i) % in_flight]; }

  // Starts slices while there is room for them.
  void issue() {
    for (; issuing_ < next_; ++issuing_, issued_ = 0) {
      Place& p = place(issuing_);
      for (; issued_ < p.slices; ++issued_) {
        if (count_ == in_flight) return;
        Slice& s = flying(count_++);
        s.place = &p;
        s.number = issued_;
        s.summed = false;
        send_parts(s);
      }
    }
  }

  void advance() {
    issue();
    bool in_order = true;  // sums are sent in the order of slices
    for (std::size_t i = 0; i < count_; ++i) {
      Slice& s = flying(i);
      if (!sends_sums(s) || s.summed) continue;
      in_order = in_order && arrived(s);
      if (in_order) send_sums(s);
    }
    for (; count_ > 0 && (flying(0).summed || !sends_sums(flying(0))) && arrived(flying(0)); issue()) {
      finish(flying(0));
      --flying(0).place->left;
      first_ = (first_ + 1) % in_flight;
      --count_;
    }
  }
  static bool sends_sums(const Slice& s) { return s.place->what->shape.kind == CollectiveKind::reduce; }
  static bool arrived(Slice& s) {
    int all = 1;
    if (!s.requests.empty()) MPI_Testall(s.requests.size(), s.requests.data(), &all, MPI_STATUSES_IGNORE);
    if (all) s.requests.clear();
    return all;
  }

  // Which elements of a box a slice has for a member: of an all_reduce those that the member adds up, otherwise those
  // of the box that comes from the member (gather) or goes to it (scatter), without padding.
  static Range range(const Prepared& w, i64 slice, int member) {
    const i64 first = slice * w.length, box = w.shape.box();
    if (w.shape.kind == CollectiveKind::reduce)
      return {std::min(box, first + member * w.part), std::min(box, first + (member + 1) * w.part)};
    const i64 valid = w.shape.kind == CollectiveKind::exchange ? box : w.shape.box_valid(member);
    return {std::min(first, valid), std::min(first + w.length, valid)};
  }
  static Range part_of(const Prepared& w, i64 slice, i64 elements) {
    return {std::min(slice * w.length, elements), std::min((slice + 1) * w.length, elements)};
  }
  // What a slice has from a member and for a member.
  Range incoming(const Slice& s, int member) const {
    const Prepared& w = *s.place->what;
    if (w.shape.rows) return part_of(w, s.number, rows(*s.place, member, member_) * w.shape.rows->elements);
    return range(w, s.number, member);
  }
  Range outgoing(const Slice& s, int member) const {
    const Prepared& w = *s.place->what;
    if (w.shape.rows) return part_of(w, s.number, rows(*s.place, member_, member) * w.shape.rows->elements);
    return range(w, s.number, w.shape.kind == CollectiveKind::gather ? member_ : member);
  }

  i64 rows(const Place& p, int from, int to) const { return p.counts[from * members_ + to]; }
  i64 rows_before(const Place& p, int member, bool came) const {
    i64 n = 0;
    for (int m = 0; m < member; ++m) n += came ? rows(p, m, member_) : rows(p, member_, m);
    return n;
  }
  i64 slices_of_rows(const Place& p) const {
    i64 most = 0;
    for (int m = 0; m < members_; ++m) most = std::max({most, rows(p, m, member_), rows(p, member_, m)});
    return (most * p.what->shape.rows->elements + p.what->length - 1) / p.what->length;
  }
  void clear_after_rows(const Place& p) const {
    const CollectiveShape& s = p.what->shape;
    clear(p, rows_before(p, members_, true) * s.rows->elements, s.result());
  }
  static void clear(const Place& p, i64 first, i64 last) {
    const Prepared& w = *p.what;
    for_box_runs(w.shape, first, std::max(first, last), [&](i64, i64 out, i64 count) {
      for (i64 i = 0; i < count; ++i)
        std::memset(p.out + (out + i * inner_out_stride(w.shape)) * w.element, 0, w.element);
    });
  }

  // Where the box for a member begins in the operand, and that from a member in the result, in elements.
  i64 in_box(const Place& p, int member) const {
    return (p.what->shape.rows ? rows_before(p, member, false) : member) * p.what->shape.in_step;
  }
  i64 out_box(const Place& p, int member) const {
    return (p.what->shape.rows ? rows_before(p, member, true) : member) * p.what->shape.out_step;
  }
  std::byte* taken(Slice& s, int member) const {
    return s.taken.data() + member * s.place->what->part * s.place->what->element;
  }

  // The operand's elements for a member: where they are, or packed.
  const std::byte* given(Slice& s, int member, Range r) {
    const Place& p = *s.place;
    const Prepared& w = *p.what;
    const std::byte* box = p.in + in_box(p, member) * w.element;
    if (w.dense_in) return box + r.first * w.element;
    std::byte* const packed = s.given.data() + member * w.part * w.element;
    std::byte* to = packed;
    for_box_runs(w.shape, r.first, r.last, [&](i64 in, i64, i64 count) {
      copy_run(w.element, to, 1, box + in * w.element, inner_in_stride(w.shape), count);
      to += count * w.element;
    });
    return packed;
  }
  // Where elements of the result's box from a member are to arrive.
  std::byte* wanted(Slice& s, int member, Range r) {
    const Place& p = *s.place;
    if (!p.what->dense_out) return taken(s, member);
    return p.out + (out_box(p, member) + r.first) * p.what->element;
  }
  void unpack(const Place& p, int member, Range r, const std::byte* from) const {
    const Prepared& w = *p.what;
    std::byte* box = p.out + out_box(p, member) * w.element;
    for_box_runs(w.shape, r.first, r.last, [&](i64, i64 out, i64 count) {
      copy_run(w.element, box + out * w.element, inner_out_stride(w.shape), from, 1, count);
      from += count * w.element;
    });
  }

  void send(Slice& s, const std::byte* from, Range r, int member, Tag tag) {
    if (r.size() > 0)
      MPI_Isend(from, r.size() * s.place->what->element, MPI_BYTE, member, tag, comm_,
                &s.requests.emplace_back(MPI_REQUEST_NULL));
  }
  void receive(Slice& s, std::byte* to, Range r, int member, Tag tag) {
    if (r.size() > 0)
      MPI_Irecv(to, r.size() * s.place->what->element, MPI_BYTE, member, tag, comm_,
                &s.requests.emplace_back(MPI_REQUEST_NULL));
  }

  void send_parts(Slice& s) {
    const Prepared& w = *s.place->what;
    const bool sums = w.shape.sums(), gather = w.shape.kind == CollectiveKind::gather;
    const Range mine = outgoing(s, member_);
    for (int k = 1; k < members_; ++k) {  // receives first: what arrives has its place
      const int m = (member_ + members_ - k) % members_;
      const Range r = sums ? mine : incoming(s, m);
      receive(s, sums ? taken(s, m) : wanted(s, m, r), r, m, Tag::parts);
    }
    const std::byte* own = gather ? given(s, 0, mine) : nullptr;
    for (int k = 1; k < members_; ++k) {
      const int m = (member_ + k) % members_;
      const Range r = outgoing(s, m);
      send(s, gather ? own : given(s, m, r), r, m, Tag::parts);
    }
    if (sums) return;
    const std::byte* from = gather ? own : given(s, member_, mine);
    if (std::byte* const to = wanted(s, member_, mine); to != from) std::memcpy(to, from, mine.size() * w.element);
  }

  // This member's part of the slice, over all members.
  void add_up(Slice& s, std::byte* to) {
    const Prepared& w = *s.place->what;
    const Range mine = range(w, s.number, member_);
    for (int m = 0; m < members_; ++m) s.sources[m] = m == member_ ? given(s, member_, mine) : taken(s, m);
    w.sum(members_, s.sources.data(), mine.size(), to);
  }

  void send_sums(Slice& s) {
    const Prepared& w = *s.place->what;
    const Range mine = range(w, s.number, member_);
    std::byte* const sum = wanted(s, member_, mine);
    add_up(s, sum);
    s.summed = true;
    for (int k = 1; k < members_; ++k) {
      const int m = (member_ + members_ - k) % members_;
      const Range r = range(w, s.number, m);
      receive(s, wanted(s, m, r), r, m, Tag::sums);
    }
    for (int k = 1; k < members_; ++k) send(s, sum, mine, (member_ + k) % members_, Tag::sums);
  }

  void finish(Slice& s) {
    const Place& p = *s.place;
    const Prepared& w = *p.what;
    if (w.shape.kind == CollectiveKind::scatter) {
      const Range mine = range(w, s.number, member_);
      std::byte* const sum = w.dense_out ? p.out + mine.first * w.element : taken(s, member_);
      add_up(s, sum);
      if (!w.dense_out) unpack(p, 0, mine, sum);
      const Range rest{std::max(mine.last, s.number * w.length), std::min((s.number + 1) * w.length, w.shape.box())};
      clear(p, rest.first, rest.first + rest.size());
    } else if (!w.dense_out) {
      for (int m = 0; m < members_; ++m) unpack(p, m, incoming(s, m), taken(s, m));
    }
  }

  MPI_Comm comm_;
  int member_, members_ = 1, spins_;
  std::vector<Place> places_;
  std::deque<Prepared> prepared_;  // which places point to
  u64 next_ = 0;                   // ticket
  u64 issuing_ = 0;                // the ticket whose slices are being started ...
  i64 issued_ = 0;                 // ... and how many of them are
  u64 first_open_ = 0;             // no ticket before it is under way
  std::array<Slice, in_flight> flight_;
  std::size_t first_ = 0, count_ = 0;
  StopFlag stopped_;
};

}  // namespace

std::unique_ptr<CollectiveGroup> message_group(int communicator, int member, int under_way, int spins) {
  return std::make_unique<MessageGroup>(MPI_Comm_f2c(communicator), member, under_way, spins);
}

}  // namespace stretto
