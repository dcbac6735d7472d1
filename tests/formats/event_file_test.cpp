#include "stretto/formats/event_file.h"

#include <gmock/gmock.h>

#include <cmath>

#include "stretto/formats/fields.h"
#include "stretto/formats/mapped_file.h"
#include "support/files.h"
#include "support/message.h"

namespace stretto {
namespace {

using test::Folder;
using testing::HasSubstr;
namespace fs = std::filesystem;

const fs::path tensorboard_folder = fs::path(STRETTO_TEST_DATA) / "tensorboard";

TEST(EventFile, ChecksumOfTheStandard) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(""), 0u);
}

// The same scalars at the same times give the same bytes as the two known writers.
TEST(EventFile, SameBytesAsTorchAndTensorboardX) {
  const Field scalars = read_json_file(tensorboard_folder / "expected.json");
  const auto same = [&](const std::string& folder, const std::string& name, const std::string& writer) {
    Folder dir;
    {
      EventFile events(dir.str(), {.wall_time = 1700000000.0, .name = name, .writer = writer});
      for (std::size_t i = 0; i < 5; ++i)
        for (const auto& [tag, points] : *scalars.table()) {
          const auto& point = *(*points.array())[i].array();
          events.scalar(tag, std::get<i64>(point[0].value), std::stod(std::get<std::string>(point[1].value)),
                        std::get<double>(point[2].value));
        }
    }
    EXPECT_TRUE(MappedFile(dir / name).text() == MappedFile(tensorboard_folder / folder / name).text()) << folder;
  };
  same("torch", "events.out.tfevents.1700000000.host.1.0", "tensorboard.summary.writer.event_file_writer");
  same("tensorboardX", "events.out.tfevents.1700000000.host", "");
}

TEST(EventFile, IsWholeAfterEveryRecordAndNamedAsTensorBoardWants) {
  Folder dir;
  EventFile events(dir.str());
  EXPECT_THAT(events.path().filename().string(),
              testing::MatchesRegex("events\\.out\\.tfevents\\.[0-9]{10}\\..+\\.[0-9]+\\.0"));
  std::size_t size = MappedFile(events.path()).bytes().size();
  EXPECT_GT(size, 0u);
  for (int step = 0; step < 3; ++step) {
    events.scalar("loss", step, 1.5);
    // length and its checksum, wall time, step (absent when 0), summary, checksum
    size += 8 + 4 + 9 + (step ? 2 : 0) + 2 + 2 + 6 + 5 + 4;
    EXPECT_EQ(MappedFile(events.path()).bytes().size(), size);
  }
}

TEST(EventFile, NamesADirectoryThatIsNotThere) {
  EXPECT_THAT(refusal_of([] { EventFile events("/nowhere/at/all"); }),
              HasSubstr("cannot be created: No such file or directory"));
}

}  // namespace
}  // namespace stretto
