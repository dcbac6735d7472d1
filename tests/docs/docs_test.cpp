// What the pages say is true: every command runs and prints what an `output` block after it says, every snippet
// compiles, every run file and schedule is accepted, every link leads somewhere. Commands run in a directory that looks
// like a checkout; `stretto train` is cut short after three steps, `make` says what it would do.
#include <gmock/gmock.h>

#include <filesystem>
#include <iostream>
#include <regex>
#include <set>
#include <sstream>

#include "pages.h"
#include "stretto/base/error.h"
#include "stretto/config/run.h"
#include "stretto/schedule/csv.h"
#include "support/command.h"
#include "support/files.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;
using test::all_blocks;
using test::Block;
using test::Folder;
using test::Result;
using testing::ElementsAre;

std::vector<Block> blocks(const std::string& language) {
  std::vector<Block> all = all_blocks();
  std::erase_if(all, [&](const Block& b) { return b.language != language; });
  return all;
}

// mpirun with what root and too few cores need; nothing without an MPI.
const std::string mpirun = std::string(STRETTO_MPIRUN).empty()
                               ? "true"
                               : "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
                                 "OMPI_MCA_rmaps_base_oversubscribe=1 " STRETTO_MPIRUN;

std::string shortened(const std::string& script) {
  static const std::regex train("(^|\n)((mpirun -n [0-9]+ )?build/stretto train [^\n]*)"), make("(^|\n)make "),
      fails("(^|\n)! ([^\n]*)"), ranks("(^|\n)mpirun "), goes_on("\\\\\n *");
  std::string s = std::regex_replace(script, goes_on, "");
  s = std::regex_replace(s, train, "$1$2 --train.steps=3");
  s = std::regex_replace(s, ranks, "$1" + mpirun + " ");
  s = std::regex_replace(s, make, "$1make -C " STRETTO_SOURCE " -n ");
  return std::regex_replace(s, fails, "$1if $2; then echo 'this should fail: $2'; exit 1; fi");
}

TEST(Docs, BlocksAndLinksAreFound) {
  const auto found = test::blocks_of("a\n```sh\nls\ncd\n```\n```\nx\n```\n", "p.md");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].text, "ls\ncd\n");
  EXPECT_EQ(found[0].where(), "p.md:3");
  EXPECT_EQ(found[1].language, "");
  EXPECT_THAT(test::links_of("![a](b.svg) [c](d/e.md#f) [w](https://x.y) [s](#s)"), ElementsAre("b.svg", "d/e.md"));
  EXPECT_THAT(test::links_of("[a](b)\n```cpp\n[](Tensor x) {}\n```\n[c](d)"), ElementsAre("b", "d"));
  EXPECT_EQ(shortened("make test\nbuild/stretto train a.toml\nls\n"),
            "make -C " STRETTO_SOURCE " -n test\nbuild/stretto train a.toml --train.steps=3\nls\n");
  EXPECT_EQ(shortened("build/stretto train a.toml \\\n  --x=1\n"),
            "build/stretto train a.toml --x=1 --train.steps=3\n");
  EXPECT_EQ(shortened("mpirun -n 2 build/stretto train a.toml\n"),
            mpirun + " -n 2 build/stretto train a.toml --train.steps=3\n");
  EXPECT_EQ(test::shell(shortened("! true\ntrue\n"), "/").code, 1);
  EXPECT_EQ(test::shell(shortened("! false\ntrue\n"), "/").code, 0);
}

TEST(Docs, EveryBlockSaysWhatItIs) {
  const std::set<std::string> known{"sh", "output", "cpp", "toml", "csv", "text", "python"};
  for (const Block& b : all_blocks())
    EXPECT_TRUE(known.contains(b.language)) << b.where() << " is tagged '" << b.language << "'";
}

// Threads and processes.
void expect_same_parameters(const std::string& out, const Block& b) {
  static const std::regex line("parameters [0-9a-f]{16}");
  std::vector<std::string> all;
  for (std::sregex_iterator it(out.begin(), out.end(), line), end; it != end; ++it) all.push_back(it->str());
  EXPECT_EQ(all.size(), std::string(STRETTO_MPIRUN).empty() ? 1u : 2u) << b.where() << out;
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), 1u) << b.where() << out;
}

TEST(Docs, EveryCommandRuns) {
  const Folder folder;
  for (const char* name : {"examples", "tests", "bench", "scripts"})
    fs::create_directory_symlink(fs::path(STRETTO_SOURCE) / name, folder / name);
  fs::create_directory_symlink(STRETTO_BINARY, folder / "build");
  fs::copy(STRETTO_SOURCE "/docs", folder / "docs", fs::copy_options::recursive);
  ASSERT_FALSE(blocks("sh").empty());
  Result r;
  for (const Block& b : all_blocks()) {
    if (b.language == "sh") {
      r = test::shell(shortened(b.text), folder.str());
      if (r.error.find("apt-get install python3-jinja2") != r.error.npos) {
        std::cout << b.where() << ": there is no python3 with jinja2, and conversations are left out\n";
        continue;
      }
      EXPECT_EQ(r.code, 0) << b.where() << "\n" << b.text << r.out << r.error;
      if (b.text.find("mpirun ") != std::string::npos) expect_same_parameters(r.out, b);
    }
    if (b.language != "output") continue;
    std::istringstream lines(b.text);
    for (std::string line; std::getline(lines, line);)
      EXPECT_TRUE(line == "..." || r.out.find(line + "\n") != std::string::npos)
          << b.where() << ": not printed: " << line << "\n"
          << r.out;
  }
}

TEST(Docs, EverySnippetCompilesAndProgramsRun) {
  const Folder folder;
  const auto all = blocks("cpp");
  ASSERT_FALSE(all.empty());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool program = all[i].text.find("int main(") != std::string::npos;
    const std::string name = (folder / ("snippet" + std::to_string(i))).string();
    folder.write("snippet" + std::to_string(i) + ".cpp",
                 program ? all[i].text : "#include \"stretto/stretto.h\"\nusing namespace stretto;\n" + all[i].text);
    const Result r = test::shell(program ? STRETTO_COMPILE " -o " + name + " " + name + ".cpp " STRETTO_LINK "\n" + name
                                         : STRETTO_COMPILE " -c -o " + name + ".o " + name + ".cpp",
                                 folder.str());
    EXPECT_EQ(r.code, 0) << all[i].where() << "\n" << all[i].text << r.out << r.error;
  }
}

// Tables and what programs print have the length they have.
TEST(Docs, LinesCanBeReadInAnEditor) {
  for (const fs::path& page : test::pages()) {
    std::istringstream lines(test::text_of(page));
    bool block = false;
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      if (line.starts_with("```")) block = line.size() > 3 && line != "```sh";
      if (block || line.starts_with("|") || line.starts_with("<!--")) continue;
      EXPECT_LE(line.size(), 160u) << page << ":" << number;
    }
  }
}

// What is concluded is what the tables say.
TEST(Docs, ConclusionsAreReadFromTheTables) {
  const Result r = test::shell("scripts/conclusions --print", STRETTO_SOURCE);
  ASSERT_EQ(r.code, 0) << r.error;
  const std::string page = test::text_of(STRETTO_SOURCE "/docs/performance.md");
  EXPECT_NE(page.find("\n" + r.out + "\n## "), std::string::npos) << "scripts/conclusions makes them anew:\n" << r.out;
  EXPECT_GT(std::count(r.out.begin(), r.out.end(), '\n'), 20) << r.error;
  const Result both = test::shell("scripts/conclusions --check", STRETTO_SOURCE);
  EXPECT_EQ(both.code, 0) << both.error;
}

TEST(Docs, TheListOfOpsIsUpToDate) {
  const Result r = test::shell("scripts/ops --print", STRETTO_SOURCE);
  EXPECT_EQ(r.code, 0) << r.error;
  EXPECT_EQ(r.out, test::text_of(STRETTO_SOURCE "/docs/ops.md")) << "scripts/ops makes it anew";
}

TEST(Docs, EveryRunFileIsAccepted) {
  for (const Block& b : blocks("toml")) {
    try {
      parse_run(b.text, b.where());
    } catch (const Error& e) {
      ADD_FAILURE() << e.what();
    }
  }
}

TEST(Docs, EveryScheduleIsRead) {
  for (const Block& b : blocks("csv")) {
    try {
      read_csv(b.text, b.where());
    } catch (const Error& e) {
      ADD_FAILURE() << e.what();
    }
  }
}

TEST(Docs, EveryLinkLeadsSomewhere) {
  for (const fs::path& page : test::pages())
    for (const std::string& link : test::links_of(test::text_of(page)))
      EXPECT_TRUE(fs::exists(page.parent_path() / link)) << page << " links to " << link;
}

}  // namespace
}  // namespace stretto
