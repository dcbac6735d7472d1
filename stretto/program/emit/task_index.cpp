#include "stretto/program/emit/task_index.h"

namespace stretto {
namespace {

bool of_accumulator(const Task& t) { return !t.inputs.empty() && as<AccumulatorId>(t.inputs[ArgumentId(0)]); }

}  // namespace

TaskIndex::TaskIndex(const Step& s) {
  sum_of.resize(s.buckets.size());
  const auto put = [&](TaskId id, const Task& t) {
    of_piece.try_emplace(t.part, s.piece_ids().size()).first->second[*t.piece] = id;
  };
  for (TaskId id : s.tasks.ids()) {
    const Task& t = s.tasks[id];
    switch (t.part) {
      case Part::count:
        counts.push_back(id);
        break;
      case Part::scale:
        scales.push_back(id);
        break;
      case Part::total:
        (s.outputs[std::get<OutputId>(t.about)].count ? count_totals : totals).push_back(id);
        break;
      case Part::U:
        break;
      case Part::carry:
        carries[{*t.piece, std::get<Level>(t.about)}] = id;
        break;
      case Part::S:
        if (of_accumulator(t))
          scatters.push_back(id);
        else
          put(id, t);
        break;
      case Part::F:
      case Part::R:
      case Part::I:
      case Part::W:
      case Part::A:
        put(id, t);
        break;
      case Part::sum:
        sum_of[std::get<BucketId>(t.about)] = id;
        break;
      case Part::norm:
        norm_of[t.param()] = id;
        [[fallthrough]];
      case Part::combine:
      case Part::finite:
      case Part::clip:
      case Part::update:
        epilogue[t.part].push_back(id);
        break;
    }
  }
}

}  // namespace stretto
