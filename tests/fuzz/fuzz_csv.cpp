// Any bytes as a schedule: refused with an Error, or cells that survive writing, a schedule that survives its CSV, and
// a validator and a proof that come to an end.
#include <cstdint>

#include "stretto/schedule/csv.h"
#include "stretto/schedule/prove.h"
#include "stretto/schedule/validate.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stretto;
  const CsvOptions options{.dialect = CsvDialect(size % 2), .pipes = CsvPipes(size / 2 % 4)};
  try {
    const CsvFile file = parse_csv({reinterpret_cast<const char*>(data), size}, "fuzz", options.dialect);
    if (parse_csv(file.str(), "fuzz", options.dialect) != file) __builtin_trap();
    const Schedule s = schedule_of(file, options);
    check_communication(file, s);
    const CsvOptions again{
        .pipes = s.pipes() > 1 ? CsvPipes::two : CsvPipes::one, .stages = s.stages, .microbatches = s.microbatches};
    if (options.pipes != CsvPipes::logical && schedule_of(parse_csv(write_csv(s), "fuzz"), again) != s)
      __builtin_trap();
    const Validation v = validate(s, {.memory = 2});
    marked_rows(s, v);
    v.str();
    if (!validate(s).ok()) return 0;
    for (const Matching matching : {Matching::tagged, Matching::channel, Matching::pair}) {
      const Proof p = prove(s, {.capacity = int(size % 3), .matching = matching});
      if (!p.smallest) __builtin_trap();  // a valid schedule runs at some capacity
    }
  } catch (const Error& e) {
    if (e.kind() != Error::Kind::input) __builtin_trap();
  }
  return 0;
}
