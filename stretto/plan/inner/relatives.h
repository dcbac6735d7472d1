// What layouts whose facts are known say about one that differs in rows of a microbatch or recompute alone: it takes
// and keeps at least so much. Facts cost a compile; most layouts need none, because nothing of them would be chosen.
//
//   Relatives relatives(predictor, variants);
//   if (const StageFacts* f = relatives.least(variant)) Planned at_least = predictor.by_stages(keys, *f);
//
// With more rows every kernel and every collective takes a constant and so much per row, or the longer of two such
// times: two numbers of rows bound all larger ones. What is kept is so much per row. Whoever makes something again
// takes no less time than who does not. That calls of few rows may be ordered otherwise is 4% at most (a test).
#pragma once
#include <map>
#include <set>
#include <vector>

#include "stretto/plan/prediction.h"

namespace stretto {

class Relatives {
 public:
  Relatives(Predictor&, const std::vector<Variant>&);

  // Those of the first turns bound the others.
  std::size_t turn(const Variant&) const;
  // By what is known now; null: by nothing. It stays where it is.
  const StageFacts* least(const Variant&);

 private:
  std::optional<StageFacts> with_more_rows(const Variant&, std::size_t points);
  const StageFacts* known(const Variant&);

  Predictor& predictor_;
  std::map<Variant, std::set<i64>> rows_;  // of layouts that are the same but for them
  std::map<Variant, StageFacts> least_;
};

}  // namespace stretto
