// Holds the #include lines of stretto/ against the table of folders in docs/architecture.md.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "support/files.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

struct Room {
  std::set<std::string> may;  // rooms, closed folders such as kernels/async, or single headers such as kernels/device.h
  bool all_above = false;
  bool above_the_line = false;
};
using Table = std::map<std::string, Room>;

// Lines such as `  ops/        base ir                           THE op table`, up to the end of the block.
Table read_table(const std::string& page) {
  static const std::regex row(R"(^  (\w+)/ +(.+?)(?:   *.*)?$)"), line_mark("^  ── the line.*");
  Table table;
  std::istringstream lines(page);
  bool above = true;
  for (std::string line; std::getline(lines, line);) {
    std::smatch m;
    if (std::regex_match(line, line_mark)) above = false;
    if (!std::regex_match(line, m, row)) continue;
    Room room{.above_the_line = above};
    const std::string may = m[2];
    if (may == "all above") {
      room.all_above = true;
      for (const auto& [name, other] : table) room.may.insert(name);
    } else if (may != "-") {
      std::istringstream words(may);
      for (std::string word; words >> word;) room.may.insert(word);
    }
    table[m[1]] = room;
  }
  return table;
}

// Kernels, MPI and threads stay below the line; headers that are slow to compile stay out of headers.
std::string forbidden_system_header(const Room& room, const std::string& file, const std::string& header) {
  static const std::set<std::string> below{"mpi.h", "thread", "future", "pthread.h"};
  if (file == "base/threads.h") return "";  // which is for folders below the line, too
  static const std::regex heavy("(nlohmann|toml\\+\\+|CLI)/.*");
  if (room.above_the_line && below.contains(header)) return "is for folders below the line";
  if (header == "mpi.h" && file.find("comm/mpi/") == std::string::npos) return "is for comm/mpi/ only";
  if (file.ends_with(".h") && std::regex_match(header, heavy)) return "is for .cpp files only";
  return "";
}

// What a file includes; one with an empty header stands for the file itself.
struct Include {
  std::string folder, file, header;
  int line = 0;
  bool own = false;  // of stretto/
  std::string target() const { return header.substr(0, header.find('/')); }
  bool closed() const { return std::count(header.begin(), header.end(), '/') > 1; }  // in a folder inside of a room
  std::string parent() const { return header.substr(0, header.rfind('/')); }
  // What the table would have to name.
  std::vector<std::string> wanted() const {
    if (!closed()) return {target(), header};
    return {parent(), header};
  }
  std::string where() const { return file + ":" + std::to_string(line) + ": "; }
};

std::vector<Include> includes_of(const fs::path& root, int depth = 2) {
  static const std::regex own(R"re(^#include "stretto/(\w+/.+)".*)re"), system(R"(^#include <(.+)>.*)");
  std::vector<Include> all;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    const std::string extension = entry.path().extension();
    if (extension != ".h" && extension != ".cpp" && extension != ".def") continue;
    const fs::path relative = fs::relative(entry.path(), root);
    if (std::distance(relative.begin(), relative.end()) < depth) continue;  // stretto.h holds everything
    Include here{.folder = *relative.begin(), .file = relative.string()};
    all.push_back(here);  // a file is of a folder, whatever it includes
    std::ifstream file(entry.path());
    for (std::string text; std::getline(file, text);) {
      ++here.line;
      std::smatch m;
      here.own = std::regex_match(text, m, own);
      if (!here.own && !std::regex_match(text, m, system)) continue;
      here.header = m[1];
      all.push_back(here);
    }
  }
  return all;
}

std::vector<std::string> violations(const fs::path& root, const Table& table) {
  std::vector<std::string> all;
  for (const Include& i : includes_of(root)) {
    const auto at = table.find(i.folder);
    if (at == table.end()) {
      if (i.header.empty()) all.push_back(i.file + ": the table has no folder " + i.folder);
      continue;
    }
    if (i.header.empty()) continue;
    const Room& room = at->second;
    if (!i.own) {
      const std::string why = forbidden_system_header(room, i.file, i.header);
      if (!why.empty()) all.push_back(i.where() + "<" + i.header + "> " + why);
    } else if (i.header == "base/threads.h" && room.above_the_line && i.folder != "base") {
      all.push_back(i.where() + i.header + " is for folders below the line");
    } else if (i.target() != i.folder) {
      const auto names = [&](const std::string& wanted) { return room.may.contains(wanted); };
      const std::vector<std::string> wanted = i.wanted();
      if (std::none_of(wanted.begin(), wanted.end(), names))
        all.push_back(i.where() + i.folder + " may not include " + i.header);
    }
  }
  std::sort(all.begin(), all.end());
  return all;
}

// What the table allows and no file of the folder needs; base is for everyone.
std::vector<std::string> unused(const fs::path& root, const Table& table) {
  std::map<std::string, std::set<std::string>> used;
  for (const Include& i : includes_of(root)) {
    if (i.own) used[i.folder].insert({i.target(), i.parent(), i.header});
    used[i.folder];
  }
  std::vector<std::string> all;
  for (const auto& [folder, headers] : used) {
    const auto room = table.find(folder);
    if (room == table.end() || room->second.all_above) continue;
    for (const std::string& may : room->second.may)
      if (may != "base" && !headers.contains(may)) all.push_back(folder + " includes nothing of " + may);
  }
  return all;
}

// Open headers that nobody outside of their room includes, directly or in another open header: they belong into inner/.
// An op's header is open whoever includes it.
std::vector<std::string> only_inside(const fs::path& stretto, const std::vector<fs::path>& around) {
  std::vector<Include> all = includes_of(stretto, 1);
  for (const fs::path& root : around)
    for (Include& i : includes_of(root, 1)) i.folder = "", all.push_back(i);
  const auto is_open = [](const std::string& file) {
    return file.ends_with(".h") && std::count(file.begin(), file.end(), '/') == 1;
  };
  std::set<std::string> needed, headers;
  for (const Include& i : all) {
    if (i.header.empty() && !i.folder.empty() && is_open(i.file) && i.folder != "ops") headers.insert(i.file);
    if (i.own && (i.folder != i.target() || is_open(i.file))) needed.insert(i.header);
  }
  std::vector<std::string> lonely;
  std::ranges::set_difference(headers, needed, std::back_inserter(lonely));
  return lonely;
}

const char* const architecture_page = R"(
stretto/                     one library
  base/       -                                 errors
  ir/         base                              Graph
  both/       all above                         x
  ── the line: nothing above links kernels ──
  kernels/    base ir                           device.h
  comm/       base kernels/device.h             Transport
  top/        base comm comm/mpi                x
)";

TEST(Includes, TheTableIsRead) {
  const Table table = read_table(architecture_page);
  ASSERT_EQ(table.size(), 6u);
  EXPECT_THAT(table.at("base").may, IsEmpty());
  EXPECT_THAT(table.at("both").may, ElementsAre("base", "ir"));
  EXPECT_THAT(table.at("comm").may, ElementsAre("base", "kernels/device.h"));
  EXPECT_THAT(table.at("top").may, ElementsAre("base", "comm", "comm/mpi"));
  EXPECT_TRUE(table.at("both").above_the_line);
  EXPECT_FALSE(table.at("kernels").above_the_line);
}

TEST(Includes, ViolationsAreFound) {
  const test::Folder folder;
  folder.write("all.h", "#include \"stretto/kernels/device.h\"\n");
  folder.write("base/a.h", "#include \"stretto/base/b.h\"\n#include \"stretto/ir/graph.h\"\n#include <vector>\n");
  folder.write("comm/mpi/a.cpp",
               "#include <mpi.h>\n#include \"stretto/kernels/device.h\"\n#include \"stretto/kernels/kernel.h\"\n");
  folder.write("comm/b.cpp", "#include <mpi.h>\n#include <thread>\n");
  folder.write("ir/a.cpp", "#include <thread>\n#include \"stretto/base/a.h\"\n#include <toml++/toml.h>\n");
  folder.write("ir/b.cpp", "#include \"stretto/base/threads.h\"\n");
  folder.write("base/threads.h", "#include <thread>\n");
  folder.write("ir/a.h", "#include <nlohmann/json.hpp>\n");
  folder.write("other/a.cpp", "\n");
  folder.write("comm/c.cpp", "#include \"stretto/comm/inner/b.h\"\n");
  folder.write("top/a.cpp",
               "#include \"stretto/comm/b.h\"\n#include <mpi.h>\n#include \"stretto/comm/mpi/b.h\"\n"
               "#include \"stretto/comm/inner/b.h\"\n");
  EXPECT_THAT(violations(folder.str(), read_table(architecture_page)),
              ElementsAre("base/a.h:2: base may not include ir/graph.h", "comm/b.cpp:1: <mpi.h> is for comm/mpi/ only",
                          "comm/mpi/a.cpp:3: comm may not include kernels/kernel.h",
                          "ir/a.cpp:1: <thread> is for folders below the line",
                          "ir/a.h:1: <nlohmann/json.hpp> is for .cpp files only",
                          "ir/b.cpp:1: base/threads.h is for folders below the line",
                          "other/a.cpp: the table has no folder other", "top/a.cpp:2: <mpi.h> is for comm/mpi/ only",
                          "top/a.cpp:4: top may not include comm/inner/b.h"));
}

TEST(Includes, PermissionsThatNobodyUsesAreFound) {
  const test::Folder folder;
  folder.write("ir/a.cpp", "#include \"stretto/ir/b.h\"\n");
  folder.write("kernels/cpu/a.cpp", "\n");
  folder.write("comm/a.h", "#include \"stretto/base/b.h\"\n#include \"stretto/kernels/kernel.h\"\n");
  folder.write("both/a.h", "");
  EXPECT_THAT(unused(folder.str(), read_table(architecture_page)),
              ElementsAre("comm includes nothing of kernels/device.h", "kernels includes nothing of ir"));
}

TEST(Includes, HeadersForTheirRoomAloneAreFound) {
  const test::Folder folder;
  folder.write("stretto/stretto.h", "#include \"stretto/ir/said.h\"\n");
  for (const char* name : {"said", "other", "behind", "app", "own", "inner/closed"})
    folder.write("stretto/ir/" + std::string(name) + ".h", "\n");
  folder.write("stretto/ir/a.cpp", "#include \"stretto/ir/own.h\"\n");
  folder.write("stretto/ir/other.h", "#include \"stretto/ir/behind.h\"\n");
  folder.write("stretto/comm/a.cpp", "#include \"stretto/ir/other.h\"\n");
  folder.write("apps/a.cpp", "#include \"stretto/ir/app.h\"\n");
  EXPECT_THAT(only_inside(folder / "stretto", {folder / "apps"}), ElementsAre("ir/own.h"));
}

TEST(Includes, HeadersForTheirRoomAloneAreInner) {
  std::vector<fs::path> around;
  for (const char* part : {"/apps", "/python", "/examples", "/bench"})
    around.push_back(STRETTO_SOURCE + std::string(part));
  EXPECT_THAT(only_inside(STRETTO_SOURCE "/stretto", around), IsEmpty());
}

TEST(Includes, ProgramsAroundTheLibraryUseOpenHeadersOnly) {
  for (const std::string part : {"/apps", "/python", "/examples"})
    for (const Include& i : includes_of(STRETTO_SOURCE + part, 1))
      EXPECT_FALSE(i.own && i.closed() && i.header != "kernels/cpu/products.h") << part << "/" << i.where() << i.header;
}

TEST(Includes, TheReadmeOfTheRoomsHasEachOfThemOnce) {
  static const std::regex row(R"(^\| `(\w+)/` \|.*\| `([\w/.]+)` \|$)");
  std::istringstream lines(test::text_of(STRETTO_SOURCE "/stretto/README.md"));
  std::set<std::string> listed, there;
  for (std::string line; std::getline(lines, line);) {
    std::smatch m;
    if (!std::regex_match(line, m, row)) continue;
    EXPECT_TRUE(listed.insert(m[1]).second) << m[1];
    EXPECT_TRUE(fs::exists(STRETTO_SOURCE "/stretto/" + m[1].str() + "/" + m[2].str())) << line;
  }
  for (const auto& entry : fs::directory_iterator(STRETTO_SOURCE "/stretto"))
    if (entry.is_directory()) there.insert(entry.path().filename());
  EXPECT_EQ(listed, there);
}

TEST(Includes, EveryFolderNeedsWhatTheArchitectureAllows) {
  const Table table = read_table(test::text_of(STRETTO_SOURCE "/docs/architecture.md"));
  EXPECT_THAT(unused(STRETTO_SOURCE "/stretto", table), IsEmpty());
}

TEST(Includes, EveryFolderIncludesOnlyWhatTheArchitectureAllows) {
  const Table table = read_table(test::text_of(STRETTO_SOURCE "/docs/architecture.md"));
  ASSERT_TRUE(table.contains("base") && table.contains("runtime") && table.contains("config"));
  EXPECT_THAT(violations(STRETTO_SOURCE "/stretto", table), IsEmpty());
}

}  // namespace
}  // namespace stretto
