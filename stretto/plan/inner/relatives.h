// Lower bounds for a layout from measured ones that differ only in microbatch size or recompute. Facts cost a compile;
// most layouts need none, because nothing of them would be chosen.
//
//   Relatives relatives(predictor, variants);
//   if (const StageFacts* f = relatives.least(variant)) Planned at_least = predictor.by_stages(keys, *f);
//
// Every kernel and every collective takes a constant and a time per row, or the longer of two such times: two numbers
// of rows bound all larger ones. Bytes that are kept grow with the rows. A layout with recompute takes no less time
// than the same one without it. Calls of few rows may have another order, which changes a step by 4% at most (a test).
#pragma once
#include <map>
#include <set>
#include <vector>

#include "stretto/plan/inner/prediction.h"

namespace stretto {

class Relatives {
 public:
  Relatives(Predictor&, const std::vector<Variant>&);

  // Layouts of lower turns bound those of higher ones.
  std::size_t turn(const Variant&) const;
  // From the facts that are known now; null: none of them bounds it. The pointer stays valid.
  const StageFacts* least(const Variant&);

 private:
  std::optional<StageFacts> with_more_rows(const Variant&, std::size_t points);
  const StageFacts* known(const Variant&);

  Predictor& predictor_;
  std::map<Variant, std::set<i64>> rows_;  // of layouts that are the same but for them
  std::map<Variant, StageFacts> least_;
};

}  // namespace stretto
