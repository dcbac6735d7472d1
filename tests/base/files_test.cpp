#include "stretto/base/files.h"

#include <gmock/gmock.h>

#include "support/child.h"
#include "support/files.h"
#include "support/message.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Files, WhatIsThere) {
  const test::Folder folder;
  folder.write("b.txt", "three");
  fs::create_directory(folder / "a");
  fs::create_symlink(folder / "a", folder / "link");
  fs::create_symlink("nowhere", folder / "dangling");
  EXPECT_TRUE(is_there(folder / "b.txt"));
  EXPECT_FALSE(is_there(folder / "c"));
  EXPECT_FALSE(is_there(folder / "b.txt/below"));
  EXPECT_FALSE(is_there(folder / "dangling"));
  EXPECT_TRUE(is_folder(folder / "link"));
  EXPECT_FALSE(is_folder(folder / "b.txt"));
  EXPECT_TRUE(is_link(folder / "link") && is_link(folder / "dangling"));
  EXPECT_FALSE(is_link(folder / "a"));
  EXPECT_TRUE(is_empty_folder(folder / "a"));
  EXPECT_FALSE(is_empty_folder(folder.str()) || is_empty_folder(folder / "b.txt"));
  EXPECT_EQ(file_bytes(folder / "b.txt"), 5u);
  EXPECT_THAT(entries_of(folder.str()),
              ElementsAre(folder / "a", folder / "b.txt", folder / "dangling", folder / "link"));
  EXPECT_THAT(entries_of(folder / "none"), IsEmpty());
}

TEST(Files, WhatCannotBeKnownIsSaidWithThePath) {
  const test::Folder folder;
  fs::create_symlink("self", folder / "self");
  const fs::path longest = folder / std::string(300, 'x');
  for (const auto& ask : {+[](const fs::path& p) { is_there(p); }, +[](const fs::path& p) { is_folder(p); },
                          +[](const fs::path& p) { entries_of(p); }, +[](const fs::path& p) { file_bytes(p); }}) {
    EXPECT_THAT(refusal_of([&] { ask(folder / "self"); }), HasSubstr("self] cannot be looked at: Too many levels"));
    EXPECT_THAT(refusal_of([&] { ask(longest); }), HasSubstr("cannot be looked at: File name too long"));
  }
}

TEST(Files, WithoutPermission) {
  if (!test::can_become_nobody()) GTEST_SKIP() << "only root can become a user without rights";
  const test::Folder folder;
  fs::create_directory(folder / "closed");
  folder.write("closed/a", "");
  fs::permissions(folder.str(), fs::perms(0755));
  fs::permissions(folder / "closed", fs::perms(0700));
  const test::Ended e = test::in_child([&] {
    test::become_nobody();
    for (const auto& f : {+[](const fs::path& p) { is_there(p / "a"); }, +[](const fs::path& p) { entries_of(p); },
                          +[](const fs::path& p) { make_folders(p / "b"); }})
      std::fprintf(stderr, "%s\n", refusal_of([&] { f(folder / "closed"); }).c_str());
  });
  EXPECT_EQ(e.code, 0);
  const std::string closed = (folder / "closed").string();
  EXPECT_EQ(e.error, "[" + closed + "/a] cannot be looked at: Permission denied\n[" + closed +
                         "] cannot be read: Permission denied\n[" + closed + "/b] cannot be made: Permission denied\n");
}

TEST(Files, FoldersAreMadeAsAShellMakesThem) {
  const test::Folder folder;
  EXPECT_TRUE(make_folders(folder / "a/./b//c/../d/"));
  EXPECT_TRUE(is_folder(folder / "a/b/c") && is_folder(folder / "a/b/d"));
  EXPECT_TRUE(is_folder(folder / "a/./b//c/../d/"));
  EXPECT_FALSE(make_folders(folder / "a/b"));
  folder.write("file", "");
  EXPECT_THAT(refusal_of([&] { make_folders(folder / "file/below"); }), HasSubstr("cannot be made: Not a directory"));
  remove_tree(folder / "a");
  remove_tree(folder / "a");
  EXPECT_FALSE(is_there(folder / "a"));
}

}  // namespace
}  // namespace stretto
