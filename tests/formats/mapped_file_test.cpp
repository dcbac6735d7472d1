#include "stretto/formats/mapped_file.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "support/child.h"
#include "support/files.h"

namespace stretto {
namespace {

// Somebody else cuts the file while it is read; also the second half of two that lie side by side.
TEST(MappedFile, OneThatIsCutOffIsNamed) {
  const test::Folder folder;
  for (const char* name : {"a.bin", "b.bin"}) folder.write(name, std::string(1 << 20, 'x'));
  const test::Ended e = test::in_child([&] {
    report_cut_files();
    MappedFile first(folder / "a.bin");
    const MappedFile other(folder / "b.bin"), file = std::move(first);
    std::filesystem::resize_file(folder / "a.bin", 100);
    for (const MappedFile* f : {&other, &file})
      if (f->bytes()[(1 << 20) - 1] != std::byte{'x'}) std::fprintf(stderr, "other bytes\n");
  });
  EXPECT_EQ(e.code, 3);
  EXPECT_EQ(e.error, "[" + (folder / "a.bin").string() +
                         "] has been cut off, or cannot be read any more, while it is in use; hint: bring the whole "
                         "file back; a run goes on from its newest checkpoint with --resume\n");
}

// Whoever may read everything becomes somebody who may not.
TEST(MappedFile, OneThatMayNotBeReadIsNamedWithWhatToDo) {
  const test::Folder folder;
  folder.write("secret.bin", "x");
  std::filesystem::permissions(folder / "secret.bin", std::filesystem::perms::none);
  const test::Ended e = test::in_child([&] {
    if (geteuid() == 0 && seteuid(65534) != 0) std::abort();
    try {
      MappedFile file(folder / "secret.bin");
    } catch (const Error& error) {
      std::fprintf(stderr, "%s", error.what());
    }
  });
  EXPECT_THAT(e.error, testing::AllOf(testing::HasSubstr("secret.bin] cannot be opened: Permission denied"),
                                      testing::HasSubstr("hint: allow reading it")));
}

}  // namespace
}  // namespace stretto
