#include "stretto/formats/record_file.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <csignal>

#include "stretto/base/error.h"
#include "support/child.h"
#include "support/files.h"
#include "support/message.h"

namespace stretto {
namespace {

using testing::HasSubstr;

TEST(RecordFile, AppendsToWhatIsThere) {
  const test::Folder folder;
  folder.write("f", "a\n");
  RecordFile file(folder / "f");
  file.append("b\n");
  EXPECT_EQ(test::text_of(folder / "f"), "a\nb\n");
  EXPECT_EQ(file.trouble(), "");
}

TEST(RecordFile, WaitsForRoomAndNeverWritesHalfARecord) {
  const test::Folder folder;
  const test::Ended e = test::in_child([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    test::limit(RLIMIT_FSIZE, 25);
    RecordFile file(folder / "f");
    std::string seen;  // the limit is one for standard error, too
    for (const char* record : {"0123456789\n", "abcdefghij\n", "ABCDEFGHIJ\n", "987\n"}) {
      file.append(record);
      seen += test::text_of(folder / "f") + "|" + file.trouble() + "\n";
    }
    test::limit(RLIMIT_FSIZE, 100000);
    file.append("end\n");
    std::fprintf(stderr, "%s%s|%s", seen.c_str(), test::text_of(folder / "f").c_str(), file.trouble().c_str());
  });
  const std::string two = "0123456789\nabcdefghij\n",
                    trouble = "[" + (folder / "f").string() + "] cannot be written: File too large";
  EXPECT_EQ(e.code, 0);
  EXPECT_EQ(e.error, "0123456789\n|\n" + two + "|\n" + two + "|" + trouble + "\n" + two + "|" + trouble + "\n" + two +
                         "ABCDEFGHIJ\n987\nend\n|");
}

TEST(RecordFile, APipeIsRefusedAndNotWaitedFor) {
  const test::Folder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(refusal_of([&] { RecordFile f(folder / "pipe"); }), HasSubstr("/pipe] cannot be opened for writing: "));
  EXPECT_THAT(refusal_of([&] { RecordFile f("/dev/null"); }), HasSubstr("[/dev/null] is no file"));
  EXPECT_THAT(refusal_of([&] { RecordFile f(folder / "none/f"); }), HasSubstr("No such file or directory"));
}

}  // namespace
}  // namespace stretto
