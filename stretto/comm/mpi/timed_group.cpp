#include "stretto/comm/mpi/timed_group.h"

#include <mpi.h>

#include <vector>

#include "stretto/comm/emulated_link.h"
#include "stretto/comm/mpi/patience.h"
#include "stretto/cost/collective.h"

namespace stretto {
namespace {

class TimedGroup : public CollectiveGroup {
 public:
  TimedGroup(MPI_Comm comm, int member, std::unique_ptr<CollectiveGroup> inner, const std::optional<Link>& link,
             int under_way, int spins)
      : comm_(comm),
        member_(member),
        inner_(std::move(inner)),
        over_(link),
        spins_(spins),
        places_(std::size_t(under_way)) {
    MPI_Comm_size(comm_, &members_);
    for (Place& p : places_) {
      p.starts.resize(std::size_t(members_));
      p.requests.reserve(std::size_t(2 * members_));
    }
  }

  std::uint32_t prepare(const CollectiveShape& s) override {
    for (std::size_t i = 0; i < prepared_.size(); ++i)
      if (prepared_[i].shape == s) return std::uint32_t(i);
    prepared_.push_back({s, over_ ? collective_seconds(s, *over_) : 0, inner_ ? inner_->prepare(s) : 0});
    return std::uint32_t(prepared_.size() - 1);
  }

  u64 start(int member, std::uint32_t prepared, const void* in, void* out) override {
    check();
    Place& p = place(next_);
    STRETTO_ASSERT(!p.open, "too many collectives are under way");
    p.open = true;
    p.what = prepared;
    if (inner_) p.inner = inner_->start(member, prepared_[prepared].inner, in, out);
    p.starts[std::size_t(member_)] = now();
    for (int k = 1; k < members_; ++k) {
      const int from = (member_ + members_ - k) % members_, to = (member_ + k) % members_;
      MPI_Irecv(&p.starts[std::size_t(from)], 1, MPI_DOUBLE, from, 0, comm_, &p.requests.emplace_back());
      MPI_Isend(&p.starts[std::size_t(member_)], 1, MPI_DOUBLE, to, 0, comm_, &p.requests.emplace_back());
    }
    return next_++;
  }

  bool progress(int member, u64 ticket) override {
    check();
    Place& p = place(ticket);
    if (!p.open) return true;
    const bool moved = !inner_ || inner_->progress(member, p.inner);
    if (!heard(ticket) || !moved || (over_ && now() < p.due)) return false;
    p.open = false;
    return true;
  }

  double wait(int member, u64 ticket) override {
    Place& p = place(ticket);
    if (!p.open) return 0;
    double slept = inner_ ? inner_->wait(member, p.inner) : 0;
    Patience patience(spins_);
    while (check(), !heard(ticket)) patience.pause();
    slept += patience.waited();
    if (over_) slept += sleep_until_due(p.due, stopped_);
    p.open = false;
    return slept;
  }

  void stop() noexcept override {
    stopped_ = true;
    if (inner_) inner_->stop();
  }

 private:
  struct Prepared {
    CollectiveShape shape;
    double seconds = 0;
    std::uint32_t inner = 0;
  };
  struct Place {
    bool open = false;
    std::uint32_t what = 0;
    u64 inner = 0;               // ticket
    std::vector<double> starts;  // per member
    std::vector<MPI_Request> requests;
    double due = 0;
  };
  Place& place(u64 ticket) { return places_[std::size_t(ticket % places_.size())]; }
  void check() const {
    if (stopped_) throw Error("runtime", "stopped because another rank failed").as(Error::Kind::run);
  }
  // Whether all have started it. Collectives follow each other on the link in the order of tickets, on all members.
  bool heard(u64 ticket) {
    for (; heard_ <= ticket; ++heard_) {
      Place& p = place(heard_);
      int all = 0;
      MPI_Testall(int(p.requests.size()), p.requests.data(), &all, MPI_STATUSES_IGNORE);
      if (!all) return false;
      p.requests.clear();
      p.due = link_.collective(*std::max_element(p.starts.begin(), p.starts.end()), prepared_[p.what].seconds);
    }
    return true;
  }

  MPI_Comm comm_;
  int member_, members_ = 1;
  std::unique_ptr<CollectiveGroup> inner_;
  std::optional<Link> over_;
  EmulatedLink link_;
  int spins_;
  std::vector<Place> places_;
  std::vector<Prepared> prepared_;
  u64 next_ = 0, heard_ = 0;  // tickets
  std::atomic<bool> stopped_{false};
};

}  // namespace

std::unique_ptr<CollectiveGroup> timed_group(int communicator, int member, std::unique_ptr<CollectiveGroup> inner,
                                             const std::optional<Link>& link, int under_way, int spins) {
  return std::make_unique<TimedGroup>(MPI_Comm_f2c(communicator), member, std::move(inner), link, under_way, spins);
}

}  // namespace stretto
