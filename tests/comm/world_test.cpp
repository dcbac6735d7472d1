#include "stretto/comm/world.h"

#include <gmock/gmock.h>

#include "stretto/base/error.h"

namespace stretto {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string refusal(const Environment& e, const WorldFlags& flags = {}) {
  try {
    find_world(e, flags);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(World, NobodySpeaksThereIsOneProcess) {
  EXPECT_EQ(find_world({}), World{});
  EXPECT_EQ(find_world({{"PATH", "/bin"}, {"WORLD_SIZE", "1"}}), World{});
  EXPECT_EQ(find_world({}, {.size = 1}), World{});
  EXPECT_EQ(find_world({}, {.rank = 0, .size = 1}), World{});
}

TEST(World, HalfOfWhatMustBeSaidIsRefused) {
  EXPECT_EQ(refusal({{"RANK", "3"}}),
            "[ranks] the environment has RANK = '3' and no WORLD_SIZE; hint: set both or unset both, or start the run "
            "with mpirun or srun");
  EXPECT_THAT(refusal({{"WORLD_SIZE", "2"}}), HasSubstr("WORLD_SIZE = '2' and no RANK"));
  EXPECT_THAT(refusal({{"WORLD_SIZE", "2"}, {"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}), HasSubstr("no RANK"));
  EXPECT_THAT(refusal({}, {.rank = 0}), AllOf(HasSubstr("command line says rank 0"), HasSubstr("leave --rank away")));
}

TEST(World, EveryLauncherIsUnderstood) {
  const auto found = [](const Environment& e) {
    const World w = find_world(e);
    return std::vector{w.rank, w.size};
  };
  EXPECT_THAT(found({{"RANK", "1"}, {"WORLD_SIZE", "4"}}), ElementsAre(1, 4));
  EXPECT_THAT(found({{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "8"}}), ElementsAre(3, 8));
  EXPECT_THAT(found({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}), ElementsAre(0, 2));
  EXPECT_THAT(found({{"SLURM_PROCID", "5"}, {"SLURM_STEP_NUM_TASKS", "6"}}), ElementsAre(5, 6));
  // A job's script is not a step: it is one process, however many tasks the job has.
  EXPECT_THAT(found({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "6"}}), ElementsAre(0, 1));
}

TEST(World, SlurmCountsDaemonsUnderMpirun) {
  const World w = find_world({{"OMPI_COMM_WORLD_RANK", "5"},
                              {"OMPI_COMM_WORLD_SIZE", "8"},
                              {"SLURM_PROCID", "1"},
                              {"SLURM_STEP_NUM_TASKS", "2"}});
  EXPECT_EQ(w.rank, 5);
  EXPECT_EQ(w.size, 8);
}

TEST(World, DisagreementNamesBoth) {
  EXPECT_THAT(
      refusal({{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}}),
      AllOf(HasSubstr("RANK, WORLD_SIZE say rank 1 of 4"),
            HasSubstr("OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE say 1 of 2")));
  const Environment four{{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}};
  EXPECT_THAT(refusal(four, {.size = 8}), AllOf(HasSubstr("command line says 8"), HasSubstr("PMI_SIZE say 4")));
  EXPECT_THAT(refusal(four, {.rank = 2}), AllOf(HasSubstr("command line says rank 2"), HasSubstr("say 1 of 4")));
  EXPECT_EQ(refusal(four, {.rank = 1, .size = 4}), "");
  EXPECT_THAT(refusal({}, {.size = 8}), AllOf(HasSubstr("no launcher"), HasSubstr("mpirun -n 8")));
}

TEST(World, NonsenseIsRefused) {
  EXPECT_THAT(refusal({{"PMI_RANK", "one"}, {"PMI_SIZE", "4"}}), HasSubstr("PMI_RANK = 'one'"));
  EXPECT_THAT(refusal({{"PMI_RANK", "4"}, {"PMI_SIZE", "4"}}), HasSubstr("PMI_RANK = 4 and PMI_SIZE = 4"));
  EXPECT_THAT(refusal({{"PMI_RANK", "0"}, {"PMI_SIZE", "99999999999999"}}), HasSubstr("PMI_SIZE"));
}

TEST(World, TheMeshMustFit) {
  const World w{.rank = 0, .size = 4, .source = "PMI_RANK, PMI_SIZE"};
  EXPECT_NO_THROW(check_world(w, {{"pipe", 2}, {"tensor", 2}}));
  try {
    check_world(w, {{"pipe", 3}});
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), AllOf(HasSubstr("4 processes (PMI_RANK, PMI_SIZE)"), HasSubstr("pipe=3 has 3 ranks")));
  }
  try {
    check_world(w, {});
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), AllOf(HasSubstr("the run has one rank"), HasSubstr("start one process, or change")));
  }
}

TEST(World, NeighboursShareANode) {
  EXPECT_THAT(place_ranks(std::vector{0, 0, 1, 1}), ElementsAre(0, 1, 2, 3));
  // Processes dealt out to two nodes in turn: those of one node become one tensor group.
  EXPECT_THAT(place_ranks(std::vector{0, 1, 0, 1}), ElementsAre(0, 2, 1, 3));
  EXPECT_THAT(place_ranks(std::vector{1, 0, 0, 1}), ElementsAre(0, 2, 3, 1)) << "process 0 stays rank 0";
}

TEST(World, ThePlacementIsSaid) {
  const Mesh mesh{{"pipe", 2}, {"tensor", 2}};
  EXPECT_EQ(placement_str(mesh, std::vector{0, 0, 0, 0}), "4 processes on 1 node");
  EXPECT_EQ(placement_str(mesh, std::vector{0, 0, 1, 1}),
            "4 processes on 2 nodes: ranks 0-1, 2-3; tensor within nodes; pipe between nodes");
}

}  // namespace
}  // namespace stretto
