#include "stretto/base/pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace stretto {
namespace {

const std::size_t large_page = Pages::whole(1);

TEST(Pages, AreWholeZeroAndStartAtALargeOne) {
  EXPECT_EQ(large_page, std::size_t(2) << 20);
  EXPECT_EQ(Pages::whole(large_page), large_page);
  EXPECT_EQ(Pages::whole(large_page + 1), 2 * large_page);
  std::optional<Pages> pages = Pages::map(large_page + 1);
  ASSERT_TRUE(pages);
  pages->touch();
  EXPECT_EQ(pages->bytes(), 2 * large_page);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pages->at()) % large_page, 0u);
  for (std::size_t i = 0; i < 2 * large_page; i += 1024) EXPECT_EQ(pages->at()[i], std::byte{0});
  pages->at()[2 * large_page - 1] = std::byte{7};
}

TEST(Pages, OfAFileAreSeenByAllWhoMapIt) {
  const int file = memfd_create("pages", MFD_CLOEXEC);
  ASSERT_GE(file, 0);
  ASSERT_EQ(ftruncate(file, large_page), 0);
  std::optional<Pages> one = Pages::map_file(large_page, file), other = Pages::map_file(large_page, file);
  close(file);
  ASSERT_TRUE(one && other);
  EXPECT_NE(one->at(), other->at());
  one->at()[5000] = std::byte{5};
  EXPECT_EQ(other->at()[5000], std::byte{5});
  other->touch();
  EXPECT_EQ(one->at()[5000], std::byte{0});
}

TEST(Pages, NoneWhenThereIsNoRoom) {
  EXPECT_FALSE(Pages::map(std::size_t(1) << 60));
  EXPECT_FALSE(Pages::map_file(large_page, 1 << 20)) << "no such file";
}

// A mapping is given back once: by who has it at the end.
TEST(Pages, GoWithTheirOwner) {
  const auto mapped = [](const std::byte* at) { return msync(const_cast<std::byte*>(at), 4096, MS_ASYNC) == 0; };
  std::byte* at = nullptr;
  {
    std::optional<Pages> first = Pages::map(1);
    at = first->at();
    const Pages second = *std::move(first);
    first.reset();
    EXPECT_TRUE(mapped(at));
  }
  EXPECT_FALSE(mapped(at));
}

}  // namespace
}  // namespace stretto
