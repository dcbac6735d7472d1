// What a rank's guardian writes down for who launched it, one small file each: rank-3.pids while it runs, rank-3.end
// when it has ended.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>

namespace stretto {

struct RankEnd {
  int status = 0;          // as waitpid gave it
  double time = 0;         // steady clock
  bool told = false;       // it was ended because others had failed
  bool explained = false;  // the last line says why
  std::string last_line;   // of its standard error, if it wrote any
};

void note_pids(const std::filesystem::path& logs, int rank, pid_t guardian, pid_t rank_process);
std::optional<std::pair<pid_t, pid_t>> read_pids(const std::filesystem::path& logs, int rank);
void note_end(const std::filesystem::path& logs, int rank, const RankEnd&);
std::optional<RankEnd> read_end(const std::filesystem::path& logs, int rank);
// The exit code that a rank is about to end with: it writes it to the file that this variable names.
constexpr const char* code_variable = "STRETTO_CODE_FILE";
std::filesystem::path code_path(const std::filesystem::path& logs, int rank);
int read_code(const std::filesystem::path& logs, int rank);  // 3 if there is none

void remove_notes(const std::filesystem::path& logs, int ranks);

std::filesystem::path log_of(const std::filesystem::path& logs, int rank);
double steady_now();

}  // namespace stretto
