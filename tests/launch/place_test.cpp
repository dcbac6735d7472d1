#include "stretto/launch/inner/place.h"

#include <gmock/gmock.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "stretto/base/error.h"
#include "stretto/launch/launch.h"

namespace stretto {
namespace {

using testing::Contains;

template <class F>
pid_t in_child(F f) {
  const pid_t child = fork();
  if (child == 0) _exit(f());
  return child;
}
int code_of_end(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
std::optional<Place> next_place(const Places& places, pid_t mpirun) {
  pollfd fd{places.fd(), POLLIN, 0};
  poll(&fd, 1, 10000);
  return places.next(mpirun);
}

TEST(Place, HasWhatTheHolderHas) {
  const Places places;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t holder = in_child([&] {
    const rlimit limit{.rlim_cur = 12345, .rlim_max = 12345};
    setrlimit(RLIMIT_FSIZE, &limit);
    dup2(ends[0], 0);
    setenv("PMI_FD", std::to_string(ends[1]).c_str(), 1);
    return hold_place(places.name(), 3);
  });
  std::optional<Place> place = next_place(places, holder);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->rank, 3);
  EXPECT_EQ(place->holder, holder);
  ASSERT_TRUE(place->wire);
  ASSERT_EQ(write(place->wire->get(), "word", 4), 4);
  char word[5] = "";
  EXPECT_EQ(read(place->input.get(), word, 4), 4);
  EXPECT_STREQ(word, "word");
  EXPECT_THAT(environment_of(*place), Contains("PATH=" + std::string(std::getenv("PATH"))));
  const pid_t rank = in_child([&] {
    adopt_limits(*place);
    rlimit limit{};
    getrlimit(RLIMIT_FSIZE, &limit);
    return limit.rlim_cur == 12345 ? 0 : 1;
  });
  EXPECT_EQ(code_of_end(rank), 0);
  leave(*place, 7);
  EXPECT_EQ(code_of_end(holder), 7);
  close(ends[0]), close(ends[1]);
}

TEST(Place, IsLeftWhenTheLaunchIsGone) {
  auto places = std::make_unique<Places>();
  const std::string name = places->name();
  const pid_t holder = in_child([&] { return hold_place(name, 0); });
  {
    const std::optional<Place> place = next_place(*places, holder);
    ASSERT_TRUE(place);
  }
  EXPECT_EQ(code_of_end(holder), 127);
  places.reset();
  EXPECT_THROW(hold_place(name, 0), Error);
}

TEST(Place, IsLeftWhenWhoStartedTheHolderIsGone) {
  const Places places;
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t starter = in_child([&] {
    in_child([&] { return hold_place(places.name(), 0); });
    ::pause();
    return 0;
  });
  std::optional<Place> place = next_place(places, starter);
  ASSERT_TRUE(place);
  kill(starter, SIGKILL);
  code_of_end(starter);
  EXPECT_EQ(code_of_end(place->holder), 127);
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}

// A process of the same user, and one of another.
TEST(Place, IsForWhomMpirunHasStarted) {
  const Places places;
  const pid_t mpirun = in_child([] {
    ::pause();
    return 0;
  });
  const auto call = [&](uid_t user) {
    const pid_t stranger = in_child([&] {
      if (user != geteuid() && setuid(user) != 0) return 2;
      try {
        return hold_place(places.name(), 0);
      } catch (const Error&) {
        return 127;
      }
    });
    EXPECT_FALSE(next_place(places, mpirun));
    EXPECT_EQ(code_of_end(stranger), 127);
  };
  call(geteuid());
  if (geteuid() == 0) call(65534);
  kill(mpirun, SIGKILL);
  code_of_end(mpirun);
}

TEST(Place, HasANameThatNobodyElseHas) {
  for (const char* name : {"", "stretto-", "../../home", "stretto-../../home",
                           "stretto-0123456789abcdef0123456789abcdeX", "stretto-0123456789abcdef0123456789abcdef/.."})
    EXPECT_THROW(hold_place(name, 0), Error) << name;
}

}  // namespace
}  // namespace stretto
