// Which process of how many this is, and which rank of the mesh it becomes.
//
//   World w = find_world(environment(), {});       // {.rank = 3, .size = 8, .source = "PMI_RANK, PMI_SIZE"}
//   std::vector<int> ranks = place_ranks(std::vector{0, 1, 0, 1});   // processes 0 and 2 share a node: ranks 0 and 1
//
// In this order: the command line, torchrun's variables, Open MPI's, PMI's (MPICH and its relatives), Slurm's. Where
// two of them speak, they must say the same; Slurm's count daemons when another launcher started the processes, so they
// are heard only when nobody else speaks.
#pragma once
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stretto/ir/layout.h"

namespace stretto {

using Environment = std::map<std::string, std::string>;
Environment environment();  // of this process

struct World {
  int rank = 0, size = 1;
  std::string source = "";  // the variables that said so; "": nobody did, there is one process
  bool operator==(const World&) const = default;
};
struct WorldFlags {
  std::optional<int> rank = {}, size = {};  // of the command line
};
World find_world(const Environment&, const WorldFlags& = {});

// STRETTO_RANKS_PER_NODE: how many processes of a machine are to be taken for a node; 0: all of them.
int ranks_per_node(const Environment&);

// The mesh must have one rank per process.
void check_world(const World&, const Mesh&);

// Per process, its rank, given the node of each: processes of a node get consecutive ranks, which are neighbours along
// the mesh's last axes. With the axes in the order pipe, data, expert, tensor that keeps tensor groups, then experts',
// then data's within a node.
std::vector<int> place_ranks(std::span<const int> node_of_process);

// "4 ranks on 2 nodes: 0-1, 2-3; tensor within nodes, pipe between them"
std::string placement_str(const Mesh&, std::span<const int> node_of_rank);

}  // namespace stretto
