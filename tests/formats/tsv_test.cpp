#include "stretto/formats/tsv.h"

#include <gmock/gmock.h>

#include "support/files.h"
#include "support/message.h"

namespace stretto {
namespace {

using test::Folder;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Tsv, RowsKnowTheirLinesAndCellsTheirColumns) {
  const Folder folder;
  folder.write("a.tsv", "run\tseconds\r\n\r\na.toml\t0.5\r\nb.toml\n");
  const TsvTable table = read_tsv((folder / "a.tsv").string(), "");
  EXPECT_THAT(table.columns, ElementsAre("run", "seconds"));
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.rows[0].line, 3) << "an empty line is left out, and counted";
  EXPECT_EQ(table.rows[0].cell(table.column("seconds")), "0.5") << "without the \\r";
  EXPECT_EQ(table.rows[1].cell(table.column("seconds")), "") << "a row may be short";
  EXPECT_EQ(table.rows[1].cell(table.column("bytes")), "") << "there is no such column";
}

TEST(Tsv, MistakesAreNamed) {
  const Folder folder;
  const auto says = [&](const char* text) {
    folder.write("a.tsv", text);
    return refusal_of([&] { read_tsv((folder / "a.tsv").string(), "name the columns"); });
  };
  EXPECT_THAT(says(""), HasSubstr("a.tsv] its first line is empty; hint: name the columns"));
  EXPECT_THAT(says("a\tb\ta\n"), HasSubstr("a.tsv:1] the column 'a' stands there twice"));
  EXPECT_THAT(refusal_of([&] { read_tsv(folder.str(), ""); }), HasSubstr("is a directory, not a file"));
}

}  // namespace
}  // namespace stretto
