#include "stretto/base/pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace stretto {
namespace {

TEST(Pages, AreWholeZeroAndStartAtALargeOne) {
  EXPECT_EQ(whole_pages(1), kLargePage);
  EXPECT_EQ(whole_pages(kLargePage), kLargePage);
  EXPECT_EQ(whole_pages(kLargePage + 1), 2 * kLargePage);
  std::byte* const at = map_pages(kLargePage + 1);
  ASSERT_NE(at, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(at) % kLargePage, 0u);
  for (std::size_t i = 0; i < 2 * kLargePage; i += kPage) EXPECT_EQ(at[i], std::byte{0});
  at[2 * kLargePage - 1] = std::byte{7};
  EXPECT_EQ(munmap(at, whole_pages(kLargePage + 1)), 0);
}

TEST(Pages, OfAFileAreSeenByAllWhoMapIt) {
  const int file = memfd_create("pages", MFD_CLOEXEC);
  ASSERT_GE(file, 0);
  ASSERT_EQ(ftruncate(file, off_t(kLargePage)), 0);
  std::byte *const one = map_pages(kLargePage, file), *const other = map_pages(kLargePage, file);
  ASSERT_NE(one, nullptr);
  ASSERT_NE(other, nullptr);
  EXPECT_NE(one, other);
  one[kPage + 3] = std::byte{5};
  EXPECT_EQ(other[kPage + 3], std::byte{5});
  munmap(one, kLargePage);
  munmap(other, kLargePage);
  close(file);
}

TEST(Pages, NullWhenThereIsNoRoom) {
  EXPECT_EQ(map_pages(std::size_t(1) << 60), nullptr);
  EXPECT_EQ(map_pages(kLargePage, 1 << 20), nullptr) << "no such file";
}

}  // namespace
}  // namespace stretto
