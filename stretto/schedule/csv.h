// Schedules as CSV in the notation PyTorch writes: one row per actor, one cell per action, no header.
//
//   Schedule s = read_csv("0F0,0B0\n", "mine.csv");
//   std::string text = write_csv(s);
//
// A Schedule holds no idle slots and no messages; UNSHARD, RESHARD and REDUCE_GRAD are its marks. CsvFile keeps all, so
// that a file survives unchanged, and its communication can be held against what the schedule implies:
//
//   CsvFile f = parse_csv(text, "mine.csv");                        // f.str() == text
//   Schedule s = schedule_of(f);
//   refuse(check_communication(f, s));
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/base/error.h"
#include "stretto/schedule/schedule.h"

namespace stretto {

// What B means. now: B full backward, I input gradient. old: B input gradient, BW full backward. Never guessed.
enum class CsvDialect : std::uint8_t { now, old };

// How a file numbers the stages of a bidirectional schedule.
enum class CsvPipes : std::uint8_t {
  one,      // it is not bidirectional
  two,      // stages S..2S-1 are the up pipe's 0..S-1
  logical,  // both pipes use 0..S-1; microbatches from m/2 up belong to the up pipe
  detect,   // two when most microbatches stay in one half of the stages (no one-pipe schedule does that), else one
};

struct CsvOptions {
  CsvDialect dialect = CsvDialect::now;
  CsvPipes pipes = CsvPipes::one;
  int stages = 0, microbatches = 0;  // what the schedule should have (stages of one pipe); 0: told from the cells
};

enum class CsvKind : std::uint8_t {
  F,
  B,
  I,
  W,
  R,  // in the order of Phase
  send_f,
  recv_f,
  send_b,
  recv_b,
  unshard,
  reshard,
  reduce_grad,
  idle,  // an empty cell
};

struct CsvAction {
  CsvKind kind = CsvKind::idle;
  std::uint16_t stage = 0;    // as written: the up pipe's stages are not yet told apart
  std::uint16_t segment = 0;  // sequence segment, written ".2" after the microbatch
  std::uint32_t microbatch = 0;
  std::uint32_t overlap = 0;  // as in Action: 1, 2, ... per row
  std::uint32_t column = 0;   // where it was read, from 1, in bytes; not part of equality

  bool computes() const { return kind <= CsvKind::R; }
  bool operator==(const CsvAction& o) const {
    return kind == o.kind && stage == o.stage && segment == o.segment && microbatch == o.microbatch &&
           overlap == o.overlap;
  }
};

struct CsvFile {
  std::string name;                          // for messages; not part of equality
  std::vector<std::vector<CsvAction>> rows;  // one per actor
  CsvDialect dialect = CsvDialect::now;
  bool crlf = false, final_newline = true;

  std::string str() const;  // the text, byte for byte for a file without stray blanks
  bool operator==(const CsvFile& o) const {
    return rows == o.rows && dialect == o.dialect && crlf == o.crlf && final_newline == o.final_newline;
  }
};

std::string cell(const CsvAction&, CsvDialect = CsvDialect::now);

// Syntax only. Throws an Error with all cells that are none: "[mine.csv, line 2, column 17, cell '2X3'] ...".
CsvFile parse_csv(std::string_view text, std::string_view file_name, CsvDialect = CsvDialect::now);

// The computing cells as a schedule. A stage is placed on the row that has most of its actions; a stage or microbatch
// with far fewer actions than the others is left outside of stages and microbatches, for validate() to name.
Schedule schedule_of(const CsvFile&, const CsvOptions& = {});

// SEND, RECV, UNSHARD, RESHARD and REDUCE_GRAD cells against what the schedule implies. A file without any has no
// fault.
std::vector<Fault> check_communication(const CsvFile&, const Schedule&);

// All three in a row; the schedule itself is not validated.
Schedule read_csv(std::string_view text, std::string_view file_name, const CsvOptions& = {});

CsvFile csv_of(const Schedule&, CsvDialect = CsvDialect::now);
std::string write_csv(const Schedule&, CsvDialect = CsvDialect::now);

}  // namespace stretto
