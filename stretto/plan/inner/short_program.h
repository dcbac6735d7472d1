// The program from which facts are read: an embedding, a half layer and the rest of its period, one period of layers,
// two, and a head, as stages of one actor, so that nobody waits for a message.
//
//   const ShortProgram p(problem, variant);
//   const PieceFacts two_layers = p.two();
#pragma once
#include <vector>

#include "stretto/plan/inner/facts.h"
#include "stretto/program/overlap/region.h"
#include "stretto/simulate/step_time.h"

namespace stretto {

struct PieceOfShort {
  bool attention = false;                       // the first half of its layer
  double params = 0, gradients = 0, state = 0;  // bytes
};

class ShortProgram {
 public:
  ShortProgram(const PlanProblem&, const Variant&);

  // Times, and bytes of activations; not those of parameters.
  const PieceFacts& embedding() const { return stages_[StageId(0)]; }
  const PieceFacts& attention() const { return stages_[StageId(1)]; }
  const PieceFacts& others() const { return stages_[StageId(2)]; }  // of the same period
  const PieceFacts& one() const { return stages_[StageId(3)]; }     // period
  const PieceFacts& two() const { return stages_[StageId(4)]; }
  const PieceFacts& head() const { return stages_[StageId(5)]; }
  const std::vector<PieceOfShort>& pieces() const { return pieces_; }
  std::vector<PieceOfShort> of_layers() const { return {pieces_.begin() + 1, pieces_.end() - head_parts_}; }
  PieceOfShort all_of_head() const;
  double message() const;
  double before() const { return before_; }
  double tied() const;
  double scratch() const { return scratch_; }
  const std::shared_ptr<const KeptOfPieces>& kept() const { return kept_; }

 private:
  const Program& program() const { return *compiled_.program; }
  void read_ends(const PlayedStep&);
  void read_times(const PlanProblem&, Prices&);
  void read_turns(Prices&);
  const Action* action_of(Region) const;
  double seconds_of(const Origin&, Region, Prices&) const;
  void read_made_again(Prices&);
  void read_tasks(Prices&);
  void read_pieces();
  void read_kept();
  void read_beside();
  void read_stack(const Cluster&);
  void read_kept_by_stack(const Stack&);

  Compiled compiled_;
  int head_parts_ = 1;
  IdVector<StageId, PieceFacts> stages_;
  std::vector<PieceOfShort> pieces_;
  double before_ = 0, scratch_ = 0;
  std::shared_ptr<const KeptOfPieces> kept_;
};

}  // namespace stretto
