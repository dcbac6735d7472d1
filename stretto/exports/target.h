// Other software that trains: what of a plan it has a counterpart for, and a plan as its own arguments. One target is
// one file of this folder and one line in targets.def.
//
//   const Target& target = target_named("megatron");
//   RunConfig open = for_target(run, target);            // only what it has a counterpart for is searched
//   write_file("best.sh", target.text(planned));
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/config/run.h"
#include "stretto/plan/problem.h"

namespace stretto {

// The layers that a stage takes, all of them whole.
struct StageLayers {
  bool embedding = false, head = false;
  i64 first = 0, layers = 0;
  bool operator==(const StageLayers&) const = default;
};

// A plan that is to be written.
struct PlanToWrite {
  ModelConfig model;
  i64 batch = 1;  // sequences per step, all ranks together
  DType dtype = f32;
  double clip = 0;
  RunKeys keys;
  std::vector<StageLayers> stages = {};    // more than one: of a pipeline
  std::vector<std::string> comments = {};  // lines on how it came about
  i64 rows() const { return keys.rows(batch); }
};

// What a key of ours is called there, and the file of that version which says so.
struct Counterpart {
  std::string_view ours, theirs, source;
};
// Schedules, and kinds of recompute, that both have; theirs "": it needs no word.
struct SameName {
  std::string_view ours, theirs;
};

struct Target {
  std::string_view name, version;  // "megatron", "megatron-core 0.16.1"
  std::string_view extension;      // of the file: ".sh"
  std::span<const Counterpart> keys;
  std::span<const SameName> schedules, recompute;
  std::span<const int> zero;
  bool tensor = true, context = true, expert = true;  // may these axes have more than one rank?
  bool sequence = true;                               // may tensor ranks share positions between products?
  bool whole_stages = false;                          // stages take equally many layers, and nothing else can be said
  // Why these keys together have no counterpart; "": they have one.
  std::string (*refuses)(const ModelConfig&, const RunKeys&) = nullptr;
  std::string (*text)(const PlanToWrite&) = nullptr;

  std::string title() const;     // "megatron (megatron-core 0.16.1)"
  std::string left_out() const;  // what of ours is not there: "schedules gpipe, zb-v; zero 2, 3"
};

std::span<const Target* const> export_targets();
// What is none is refused with those that there are; so is one with a version that is not known.
const Target& target_named(std::string_view name);

// The run with less to choose from. What is fixed and has no counterpart is refused by name.
RunConfig for_target(RunConfig, const Target&);
// May it be searched? Beside what for_target() has taken away.
bool has_counterpart(const Target&, const ModelConfig&, const RunKeys&);

// Stages of a model of so many layers, of an embedding and a head; none when a stage would take a part of a layer.
std::vector<StageLayers> whole_layers(const std::vector<int>& pieces_per_stage, i64 layers);
std::vector<int> pieces_of(const std::vector<StageLayers>&);
// The nearest cuts that take whole layers: down, up, the nearer one.
std::vector<std::vector<int>> nearest_whole(const std::vector<int>& pieces_per_stage, i64 layers);

}  // namespace stretto
