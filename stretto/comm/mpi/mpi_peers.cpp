#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "stretto/base/error.h"
#include "stretto/base/threads.h"
#include "stretto/comm/mpi/alarm.h"
#include "stretto/comm/mpi/boards.h"
#include "stretto/comm/mpi/heart.h"
#include "stretto/comm/mpi/hierarchical_group.h"
#include "stretto/comm/mpi/message_group.h"
#include "stretto/comm/mpi/mpi_transport.h"
#include "stretto/comm/mpi/node_group.h"
#include "stretto/comm/mpi/node_milestones.h"
#include "stretto/comm/mpi/node_transport.h"
#include "stretto/comm/mpi/patience.h"
#include "stretto/comm/mpi/segments.h"
#include "stretto/comm/stop_flag.h"
#include "stretto/comm/world.h"
#include "stretto/program/frozen.h"

namespace stretto {
namespace {

constexpr double beat_every = 0.1;                          // seconds
constexpr std::size_t largest_part = std::size_t(1) << 30;  // of a broadcast
constexpr bool of_params(Arena a) { return a == Arena::params || a == Arena::frozen; }

class MpiPeers : public Peers {
 public:
  explicit MpiPeers(const PeersOptions& options)
      : timeouts_(options.timeouts),
        world_(options.world),
        alarm_([this] { return limit(); }, options.world.rank, options.give_up ? options.give_up : end_process,
               [this] { return silent(); }) {
    const Alarm::Held held = alarm_.during("MPI starts");
    int already = 0, level = 0;
    MPI_Initialized(&already);
    if (!already) MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level);
    ours_ = !already;
    int processes = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &processes);
    if (world_.size != processes)
      throw Error("ranks", "there are {} processes ({}), and {} knows {}", world_.size, world_.source, name(),
                  processes)
          .hint("mpirun must be of the MPI that Stretto was built with");
    std::vector<int> nodes = nodes_of_world(processes);
    const std::vector<int> placed = place_ranks(nodes);
    nodes_.resize(nodes.size());
    for (std::size_t p = 0; p < nodes.size(); ++p) nodes_[placed[p]] = nodes[p];
    int process = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &process);
    MPI_Comm_split(MPI_COMM_WORLD, 0, placed[process], &comm_);
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
    open_hearts();
    // Processes of a node are numbered as ranks are; when all are on one node, with the same numbers.
    if (options.shared) segments_ = std::make_unique<Segments>(MPI_Comm_c2f(node_));
    int reach = segments_ && segments_->allocate(1), everywhere = 0;
    MPI_Allreduce(&reach, &everywhere, 1, MPI_INT, MPI_MIN, comm_);
    if (!everywhere) segments_.reset();
    beating_.start(beat_every, [this] { hearts_.at(rank_)->alive = now(); });
  }

  ~MpiPeers() override {
    beating_.end();
    waits_for_ = WaitFor::saving;  // the first one writes what is left to be written
    const Alarm::Held held = alarm_.during("MPI ends");
    segments_.reset();
    for (MPI_Comm& members : groups_) MPI_Comm_free(&members);
    hearts_open_ = false;
    MPI_Win_free(&window_);
    MPI_Comm_free(&node_);
    MPI_Comm_free(&comm_);
    if (ours_) MPI_Finalize();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const World& world() const override { return world_; }
  const std::vector<int>& nodes() const override { return nodes_; }
  std::string name() const override {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
    int length = 0;
    MPI_Get_library_version(text, &length);
    const std::string all(text, length);
    return all.substr(0, all.find_first_of(",\n"));
  }

  void merge(std::span<u64> words) override {
    MPI_Request request;
    MPI_Iallreduce(MPI_IN_PLACE, words.data(), words.size(), MPI_UINT64_T, MPI_BOR, comm_, &request);
    wait(request);
  }
  void broadcast(std::span<std::byte> bytes, int from) override {
    for (std::size_t done = 0; done < bytes.size(); done += largest_part) {
      const std::size_t part = std::min(largest_part, bytes.size() - done);
      MPI_Request request;
      MPI_Ibcast(bytes.data() + done, part, MPI_BYTE, from, comm_, &request);
      wait(request);
    }
  }
  std::vector<std::string> gather(const std::string& own) override {
    std::vector<u64> lengths(size_);
    lengths[rank_] = own.size();
    merge(lengths);
    std::vector<std::string> all;
    for (int r = 0; r < size_; ++r) {
      all.push_back(r == rank_ ? own : std::string(lengths[r], '\0'));
      broadcast(std::as_writable_bytes(std::span(all.back())), r);
    }
    return all;
  }
  std::unique_ptr<Board> board(std::size_t words) override {
    const Alarm::Held held = alarm_.during("all prepare what they tell each other");
    const auto wait = [this](const std::function<bool()>& done) { wait_until(done); };
    return shares_memory() ? node_board(*segments_, words, wait) : message_board(MPI_Comm_c2f(comm_), words, wait);
  }
  std::unique_ptr<Milestones> milestones() override {
    const Alarm::Held held = alarm_.during("all prepare what they tell each other");
    return shares_memory() ? std::make_unique<NodeMilestones>(*segments_, spins()) : nullptr;
  }
  bool shares_memory() const override { return segments_ && std::cmp_equal(hearts_.size(), size_); }
  bool reaches_memory() const override { return segments_ != nullptr; }
  std::vector<ArenaBases> share(const Program& p, bool params) override {
    const Alarm::Held held = alarm_.during("all make their memory");
    const Segments::Address own_at = segments_->address_of(allocate(p, params));
    std::vector<ArenaBases> arenas;
    for (int r = 0; r < size_; ++r) arenas.push_back(laid_out(p, r, params, own_at));
    return arenas;
  }
  ArenaBases arenas(const Program& p, bool params) override {
    const Alarm::Held held = alarm_.during("all make their memory");
    return segments_ ? laid_out(p, rank_, params, segments_->address_of(allocate(p, params))) : ArenaBases{};
  }
  std::unique_ptr<Transport> transport(const Program& p, std::span<const ArenaBases> arenas) override {
    const Alarm::Held held = alarm_.during("all prepare their messages");
    if (arenas.size() > 1) return std::make_unique<NodeTransport>(p, rank_, arenas, *segments_, spins());
    return mpi_transport(MPI_Comm_c2f(comm_), p, arenas[0], spins());
  }
  std::unique_ptr<CollectiveGroup> group(const std::vector<int>& ranks, int member, int under_way) override {
    const Alarm::Held held = alarm_.during("all prepare their collectives");
    const MPI_Comm members = between(ranks);
    const std::vector<int> nodes = nodes_of(ranks);
    if (segments_ && on_one_node(nodes))
      return node_group(segments_.get(), std::make_unique<Segments>(MPI_Comm_c2f(members)), member, under_way);
    if (segments_ && is_hierarchy(nodes))
      return hierarchy(members, member, std::count(nodes.begin(), nodes.end(), nodes[member]), under_way);
    return message_group(MPI_Comm_c2f(members), member, under_way, spins());
  }
  GroupWithMemory group_with_memory(const std::vector<int>& ranks, int member, int under_way, u64 bytes) override {
    const Alarm::Held held = alarm_.during("all prepare their collectives");
    const MPI_Comm members = between(ranks);
    if (segments_ && on_one_node(nodes_of(ranks))) {
      auto segments = std::make_unique<Segments>(MPI_Comm_c2f(members));
      std::byte* const at = segments->allocate(bytes);
      if (!at) throw Error("memory", "{} bytes cannot be had", bytes).as(Error::Kind::run);
      const Segments* const memory = segments.get();
      return {node_group(memory, std::move(segments), member, under_way), at};
    }
    auto memory = std::make_shared<std::vector<std::byte>>(bytes);
    return {message_group(MPI_Comm_c2f(members), member, under_way, spins()), memory->data(), memory};
  }

  void beat(i64 step, std::uint32_t at, bool waiting) noexcept override {
    Heart& h = *hearts_.at(rank_);
    h.step.store(step, std::memory_order_relaxed);
    h.at.store(at, std::memory_order_relaxed);
    h.waiting.store(waiting, std::memory_order_relaxed);
  }
  std::optional<Pulse> pulse(int rank) const override { return pulse_of(hearts_, rank); }

  WaitFor waits_for() const noexcept override { return waits_for_; }
  void set_wait(WaitFor what) noexcept override { waits_for_ = what; }
  void stop() noexcept override { stopped_.set(); }
  [[noreturn]] void abort(int code) override {
    // Where the others cannot be reached any more, MPI may wait for them for ever.
    try {
      std::thread([code] {
        std::this_thread::sleep_for(std::chrono::seconds(5));
        std::_Exit(code);
      }).detach();
    } catch (const std::system_error&) {  // no thread can be made: MPI is left to itself
    }
    MPI_Abort(comm_, code);
    std::_Exit(code);
  }

 private:
  // A communicator of these ranks, in their order.
  MPI_Comm between(const std::vector<int>& ranks) {
    MPI_Group all, some;
    MPI_Comm members;
    MPI_Comm_group(comm_, &all);
    MPI_Group_incl(all, ranks.size(), ranks.data(), &some);
    MPI_Comm_create_group(comm_, some, 0, &members);
    MPI_Group_free(&some);
    MPI_Group_free(&all);
    groups_.push_back(members);
    return members;
  }

  std::vector<int> nodes_of(const std::vector<int>& ranks) const {
    std::vector<int> nodes;
    for (const int r : ranks) nodes.push_back(nodes_[r]);
    return nodes;
  }
  static bool on_one_node(const std::vector<int>& nodes) {
    return std::all_of(nodes.begin(), nodes.end(), [&](int n) { return n == nodes[0]; });
  }

  // Operands and results lie in `memory`.
  std::unique_ptr<CollectiveGroup> node_group(const Segments* memory, std::unique_ptr<Segments> control, int member,
                                              int under_way) const {
    return std::make_unique<NodeGroup>(std::vector{memory}, std::move(control), member,
                                       GroupOptions{.under_way = under_way, .spins = spins()});
  }

  std::unique_ptr<CollectiveGroup> hierarchy(MPI_Comm members, int member, int per_node, int under_way) {
    int count = 0;
    MPI_Comm_size(members, &count);
    MPI_Comm here, across;
    MPI_Comm_split(members, member / per_node, member, &here);
    MPI_Comm_split(members, member % per_node, member, &across);
    groups_.insert(groups_.end(), {here, across});
    const auto in_node = [&] { return std::make_unique<Segments>(MPI_Comm_c2f(here)); };
    HierarchyWires wires{
        .arenas = segments_.get(),
        .staging = in_node(),
        .before = in_node(),
        .after = in_node(),
        .across = message_group(MPI_Comm_c2f(across), member / per_node, HierarchicalGroup::slots, spins()),
        .flat = message_group(MPI_Comm_c2f(members), member, under_way, spins())};
    return std::make_unique<HierarchicalGroup>(std::move(wires), member, count, per_node, under_way, spins());
  }

  // That a rank has of its own.
  u64 arena_bytes(const Program& p, int rank, Arena a, bool params) const {
    if (of_params(a) && !params) return 0;
    if (a == Arena::frozen && keeper(p, rank, nodes_) != rank) return 0;
    return (actor_of(p, rank).bytes[a] + 4095) / 4096 * 4096;
  }
  const ActorProgram& actor_of(const Program& p, int rank) const {
    return p.actors[ActorId(rank * p.actors.size() / size_)];
  }
  std::byte* allocate(const Program& p, bool params) {
    u64 all = 0;
    for (std::size_t a = 0; a < arena_count; ++a) all += arena_bytes(p, rank_, Arena(a), params);
    std::byte* own = segments_->allocate(all);
    if (!own)
      throw Error("memory", "rank {} cannot have the memory that it needs; on rank {} that is {} bytes",
                  std::next(hearts_.begin(), segments_->failed())->first, rank_, all)
          .hint("a smaller batch, more microbatches or recompute need less")
          .as(Error::Kind::run);
    return own;
  }
  // Of a rank on this machine, of which every one has allocated with this one.
  ArenaBases laid_out(const Program& p, int rank, bool params, Segments::Address at) const {
    ArenaBases bases = own_arenas(p, rank, params, at);
    if (params) bases[Arena::frozen] = own_arenas(p, keeper(p, rank, nodes_), params, at)[Arena::frozen];
    return bases;
  }
  ArenaBases own_arenas(const Program& p, int rank, bool params, Segments::Address allocated) const {
    std::byte* at = segments_->at(allocated, std::distance(hearts_.begin(), hearts_.find(rank)));
    ArenaBases bases{};
    for (std::size_t k = 0; k < arena_count; ++k) {
      const Arena a = Arena(k);
      if (params || !of_params(a)) bases[a] = at;
      at += arena_bytes(p, rank, a, params);
    }
    return bases;
  }

  std::vector<int> nodes_of_world(int processes) {
    MPI_Comm node;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    int told[2] = {0, ranks_per_node(environment())};
    MPI_Comm_rank(MPI_COMM_WORLD, &told[0]);
    MPI_Bcast(&told[0], 1, MPI_INT, 0, node);
    MPI_Comm_size(node, &on_machine_);
    MPI_Comm_free(&node);
    std::vector<int> all(2 * processes);
    MPI_Allgather(told, 2, MPI_INT, all.data(), 2, MPI_INT, MPI_COMM_WORLD);
    std::map<int, int> on;                      // per machine, processes so far
    std::map<std::pair<int, int>, int> number;  // of nodes
    std::vector<int> of;
    for (int p = 0; p < processes; ++p) {
      const int machine = all[2 * p], per_node = all[2 * p + 1];
      if (per_node != all[1])
        throw Error("ranks", "STRETTO_RANKS_PER_NODE is {} for process {} and {} for process 0", per_node, p, all[1])
            .hint("set it for all of them, or for none");
      const int part = per_node > 0 ? on[machine]++ / per_node : 0;
      of.push_back(number.try_emplace({machine, part}, number.size()).first->second);
    }
    return of;
  }

  void open_hearts() {
    MPI_Comm_split(comm_, nodes_[rank_], rank_, &node_);
    int local = 0, locals = 0;
    MPI_Comm_rank(node_, &local);
    MPI_Comm_size(node_, &locals);
    void* own = nullptr;
    MPI_Win_allocate_shared(sizeof(Heart), 1, MPI_INFO_NULL, node_, &own, &window_);
    Heart* heart = new (own) Heart;
    heart->pid = getpid();
    heart->alive = now();
    std::vector<int> ranks(locals);
    MPI_Allgather(&rank_, 1, MPI_INT, ranks.data(), 1, MPI_INT, node_);
    for (int l = 0; l < locals; ++l) {
      MPI_Aint bytes = 0;
      int unit = 0;
      void* at = nullptr;
      MPI_Win_shared_query(window_, l, &bytes, &unit, &at);
      hearts_[ranks[l]] = static_cast<Heart*>(at);
    }
    MPI_Barrier(node_);
    hearts_open_ = true;
  }

  // When every process here has a core, looking for a short time costs less than sleeping.
  int spins() const { return std::cmp_less_equal(on_machine_, std::thread::hardware_concurrency()) ? 200 : 0; }

  void wait(MPI_Request& request) {
    wait_until([&] {
      int done = 0;
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      return done != 0;
    });
  }
  template <class Done>
  void wait_until(const Done& done) {
    for (Patience p(spins()); !done(); p.pause()) {
      stopped_.check();
      if (const WaitLimit l = limit(); l.seconds > 0 && p.waited() > l.seconds)
        throw Error("watchdog", "rank {} has waited {:.3g} s for the others {}{}", rank_, l.seconds,
                    when[std::size_t(waits_for_.load())], silent())
            .hint("if the work takes that long, raise {}", l.key)
            .as(Error::Kind::run);
    }
  }
  static constexpr std::string_view when[] = {"before the first step", "between two steps", "for a checkpoint"};
  // A start and a checkpoint may take longer than a step, but a process that is at work gives signs of life.
  WaitLimit limit() const {
    const WaitLimit step{timeouts_.step, "parallel.timeout"};
    const WaitLimit all[] = {{timeouts_.start, "parallel.start_timeout"}, step, {timeouts_.saving, "checkpoint.timeout"}};
    const WaitLimit usual = all[std::size_t(waits_for_.load())];
    const bool sooner = step.seconds > 0 && (usual.seconds == 0 || step.seconds < usual.seconds);
    return sooner && hearts_open_ && longest_silence(hearts_) > step.seconds ? step : usual;
  }
  std::string silent() const { return hearts_open_ ? silent_among(hearts_) : ""; }

  static void end_process(const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    std::_Exit(e.exit_code());
  }

  Timeouts timeouts_;
  std::atomic<WaitFor> waits_for_ = WaitFor::start;
  World world_;
  bool ours_ = true;
  MPI_Comm comm_ = MPI_COMM_NULL, node_ = MPI_COMM_NULL;
  std::vector<MPI_Comm> groups_;  // of all that group() has made: there are only so many in a process
  MPI_Win window_ = MPI_WIN_NULL;
  int rank_ = 0, size_ = 1, on_machine_ = 1;  // processes on this machine
  std::vector<int> nodes_;
  Hearts hearts_;
  std::atomic<bool> hearts_open_ = false;  // the alarm may look at them
  std::unique_ptr<Segments> segments_;
  StopFlag stopped_;
  Repeated beating_;
  Alarm alarm_;  // last: its thread looks at the others
};

}  // namespace

bool has_mpi() { return true; }

std::shared_ptr<Peers> mpi_peers(const PeersOptions& options) { return std::make_shared<MpiPeers>(options); }

}  // namespace stretto
