// The communication cells of a CSV file, held against what the schedule implies.
#include <fmt/format.h>

#include <array>
#include <optional>
#include <unordered_map>

#include "stretto/schedule/csv.h"

namespace stretto {

namespace {

bool message_kind(CsvKind k) { return k >= CsvKind::send_f && k <= CsvKind::recv_b; }
bool shard_kind(CsvKind k) { return k == CsvKind::unshard || k == CsvKind::reshard; }

struct CellAt {
  std::uint32_t row = 0, cell = 0;
};

class Communication {
 public:
  Communication(const CsvFile& file, const Schedule& s) : file_(file), s_(s) {}

  std::vector<Fault> check() {
    bool any_message = false, any_shard = false, any_reduce = false;
    for (std::uint32_t r = 0; r < file_.rows.size(); ++r) {
      for (std::uint32_t i = 0; i < file_.rows[r].size(); ++i) {
        const CsvAction& a = file_.rows[r][i];
        any_message |= message_kind(a.kind);
        any_shard |= shard_kind(a.kind);
        any_reduce |= a.kind == CsvKind::reduce_grad;
        if (!a.computes() && !message_kind(a.kind)) continue;
        // I and B both make the gradient that travels: one entry serves for either.
        const auto [first, is_new] = places_[merged(a.kind)].try_emplace(key(a), CellAt{r, i});
        if (!is_new && message_kind(a.kind)) {
          wrong(r, i, "delete one of them", "the cell stands twice: also at {}", position(first->second));
        }
      }
    }
    if (any_message) messages();
    if (any_shard) shards();
    if (any_reduce) reductions();
    return std::move(faults_);
  }

 private:
  static CsvKind merged(CsvKind k) { return k == CsvKind::B ? CsvKind::I : k; }
  static std::uint64_t key(const CsvAction& a) {
    return std::uint64_t{a.microbatch} << 32 | std::uint64_t{a.stage} << 16 | a.segment;
  }
  const CellAt* find(CsvKind k, CsvAction a, int stage) const {
    a.stage = stage;
    const auto& places = places_[k];
    const auto it = places.find(key(a));
    return it == places.end() ? nullptr : &it->second;
  }

  // The stage a message of `a`'s kind goes to or comes from, as written; none at the pipe's end.
  std::optional<int> neighbour(const CsvAction& a, bool up) const {
    const int pipe_begin = a.stage >= s_.stages && s_.pipes() > 1 ? s_.stages : 0;
    const int next = a.stage + (up ? 1 : -1);
    if (next < pipe_begin || next >= pipe_begin + s_.stages) return {};
    return next;
  }

  void messages() {
    for (std::uint32_t r = 0; r < file_.rows.size(); ++r) {
      for (std::uint32_t i = 0; i < file_.rows[r].size(); ++i) {
        const CsvAction& a = file_.rows[r][i];
        if (a.kind == CsvKind::F || a.kind == CsvKind::B || a.kind == CsvKind::I) implied(r, i, a);
        if (message_kind(a.kind)) given(r, i, a);
      }
    }
  }

  // What a computing cell needs around it: a receive before it and a send after it, where its neighbours are
  // elsewhere.
  void implied(std::uint32_t r, std::uint32_t i, const CsvAction& a) {
    const bool forward = a.kind == CsvKind::F;
    const CsvKind kind = merged(a.kind);
    if (const auto from = neighbour(a, !forward)) {
      const CellAt* producer = find(kind, a, *from);
      const CsvKind receive = forward ? CsvKind::recv_f : CsvKind::recv_b;
      if (producer && producer->row != r && !find(receive, a, a.stage)) missing(r, i, receive, a, "before");
    }
    if (const auto to = neighbour(a, forward)) {
      const CellAt* consumer = find(kind, a, *to);
      const CsvKind send = forward ? CsvKind::send_f : CsvKind::send_b;
      if (consumer && consumer->row != r && !find(send, a, a.stage)) missing(r, i, send, a, "after");
    }
  }

  // What a communication cell needs: the action it serves in the same row on its right side, and a partner elsewhere.
  void given(std::uint32_t r, std::uint32_t i, const CsvAction& a) {
    const bool send = a.kind == CsvKind::send_f || a.kind == CsvKind::send_b;
    const bool forward = a.kind == CsvKind::send_f || a.kind == CsvKind::recv_f;
    const CsvKind kind = forward ? CsvKind::F : CsvKind::I;
    const CellAt* served = find(kind, a, a.stage);
    const char* side = send ? "after" : "before";
    if (!served || served->row != r) {
      return wrong(r, i, "delete the cell, or move it to the row that computes the stage",
                   "the row has no {} of stage {}, microbatch {}", forward ? "forward" : "backward", a.stage,
                   a.microbatch);
    }
    if (send ? served->cell > i : served->cell < i) {
      wrong(r, i, fmt::format("move it {} {}", side, at(*served)), "it stands on the wrong side of {}", at(*served));
    }
    const std::optional<int> other = neighbour(a, send == forward);
    const CellAt* partner = other ? find(kind, a, *other) : nullptr;
    if (!other) {
      wrong(r, i, "delete the cell", "stage {} is at the end of the pipe: there is nothing to {}", a.stage,
            send ? "send" : "receive");
    } else if (!partner) {
      wrong(r, i, "delete the cell", "no row has the other end, stage {}, microbatch {}", *other, a.microbatch);
    } else if (partner->row == r) {
      wrong(r, i, "delete the cell", "stages {} and {} are on the same actor: no message is needed", a.stage, *other);
    }
  }

  void shards() {
    for (std::uint32_t r = 0; r < file_.rows.size(); ++r) {
      std::unordered_map<std::uint16_t, bool> whole;
      for (std::uint32_t i = 0; i < file_.rows[r].size(); ++i) {
        const CsvAction& a = file_.rows[r][i];
        if (a.kind == CsvKind::unshard) {
          if (whole[a.stage]) wrong(r, i, "delete the cell", "stage {} is unsharded already", a.stage);
          whole[a.stage] = true;
        } else if (a.kind == CsvKind::reshard) {
          if (!whole[a.stage]) wrong(r, i, "delete the cell", "stage {} is not unsharded", a.stage);
          whole[a.stage] = false;
        } else if (a.computes() && !whole[a.stage]) {
          wrong(r, i, fmt::format("add {}UNSHARD before it", a.stage), "stage {} is not unsharded here", a.stage);
          whole[a.stage] = true;
        }
      }
    }
  }

  // One reduction per stage and row, after everything that adds to its gradient.
  void reductions() {
    for (std::uint32_t r = 0; r < file_.rows.size(); ++r) {
      std::unordered_map<std::uint16_t, std::uint32_t> last;
      std::unordered_map<std::uint16_t, int> reduced;
      const auto& row = file_.rows[r];
      for (std::uint32_t i = 0; i < row.size(); ++i) {
        if (row[i].kind == CsvKind::B || row[i].kind == CsvKind::W) last[row[i].stage] = i;
      }
      for (std::uint32_t i = 0; i < row.size(); ++i) {
        if (row[i].kind != CsvKind::reduce_grad) continue;
        const auto it = last.find(row[i].stage);
        if (it == last.end()) {
          wrong(r, i, "delete the cell", "the row computes no gradient of stage {}", row[i].stage);
        } else if (it->second > i) {
          wrong(r, i, fmt::format("move it after {}", cell(row[it->second], file_.dialect)),
                "gradients of stage {} are still added after it", row[i].stage);
        }
        if (reduced[row[i].stage]++) wrong(r, i, "delete the cell", "stage {} is reduced twice", row[i].stage);
      }
      for (const auto& [stage, i] : last) {
        if (!reduced.contains(stage)) {
          wrong(r, i, fmt::format("add {}REDUCE_GRAD after it", stage), "the gradient of stage {} is never reduced",
                stage);
        }
      }
    }
  }

  void missing(std::uint32_t r, std::uint32_t i, CsvKind kind, CsvAction a, std::string_view side) {
    a.kind = kind;
    const std::string name = cell(a, file_.dialect);
    wrong(r, i, fmt::format("add {} {} it, or leave out all communication cells: they are inferred", name, side),
          "{} is missing", name);
  }

  std::string at(const CellAt& p) const { return cell(file_.rows[p.row][p.cell], file_.dialect); }
  std::string position(const CellAt& p) const {
    return fmt::format("line {}, column {}", p.row + 1, file_.rows[p.row][p.cell].column);
  }

  template <class... A>
  void wrong(std::uint32_t r, std::uint32_t i, std::string hint, fmt::format_string<A...> what, A&&... a) {
    faults_.push_back(fault(fmt::format("{}, {}, {}", file_.name, position({r, i}), at({r, i})), std::move(hint), what,
                            std::forward<A>(a)...));
  }

  const CsvFile& file_;
  const Schedule& s_;
  EnumArray<CsvKind, std::unordered_map<std::uint64_t, CellAt>, 12> places_ = {};
  std::vector<Fault> faults_;
};

}  // namespace

std::vector<Fault> check_communication(const CsvFile& file, const Schedule& s) {
  return Communication(file, s).check();
}

}  // namespace stretto
