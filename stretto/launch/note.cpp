#include "stretto/launch/note.h"

#include <fmt/format.h>

#include <chrono>
#include <fstream>

namespace stretto {
namespace {

namespace fs = std::filesystem;

fs::path note_path(const fs::path& logs, int rank, const char* kind) {
  return logs / fmt::format("rank-{}.{}", rank, kind);
}

// Whole or not at all: it may be read while it is written.
void write_note(const fs::path& path, const std::string& text) {
  const fs::path partial = path.string() + ".new";
  {
    std::ofstream file(partial, std::ios::binary);
    file << text;
  }
  std::error_code ignored;
  fs::rename(partial, path, ignored);
}

}  // namespace

fs::path log_of(const fs::path& logs, int rank) { return note_path(logs, rank, "log"); }

double steady_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void note_pids(const fs::path& logs, int rank, pid_t guardian, pid_t rank_process) {
  write_note(note_path(logs, rank, "pids"), fmt::format("{} {}\n", guardian, rank_process));
}

std::optional<std::pair<pid_t, pid_t>> read_pids(const fs::path& logs, int rank) {
  std::ifstream file(note_path(logs, rank, "pids"));
  pid_t guardian = 0, rank_process = 0;
  if (!(file >> guardian >> rank_process)) return {};
  return std::pair(guardian, rank_process);
}

void note_end(const fs::path& logs, int rank, const RankEnd& e) {
  write_note(note_path(logs, rank, "end"),
             fmt::format("{} {:.6f} {} {}\n{}\n", e.status, e.time, int(e.told), int(e.explained), e.last_line));
}

std::optional<RankEnd> read_end(const fs::path& logs, int rank) {
  std::ifstream file(note_path(logs, rank, "end"));
  RankEnd e;
  int told = 0, explained = 0;
  if (!(file >> e.status >> e.time >> told >> explained)) return {};
  e.told = told != 0;
  e.explained = explained != 0;
  file.ignore();
  std::getline(file, e.last_line);
  return e;
}

fs::path code_path(const fs::path& logs, int rank) { return note_path(logs, rank, "code"); }

int read_code(const fs::path& logs, int rank) {
  int code = 0;
  std::ifstream(code_path(logs, rank)) >> code;
  return code > 0 ? code : 3;
}

void remove_notes(const fs::path& logs, int ranks) {
  std::error_code ignored;
  for (int r = 0; r < ranks; ++r)
    for (const char* kind : {"pids", "end", "code"}) fs::remove(note_path(logs, r, kind), ignored);
}

}  // namespace stretto
