// The calls of Python. A call is a function from JSON to JSON, one line in calls.def; arrays are memory beside it.
//
//   Field simulate(const Arguments& a) { return Field(Field::Table{{"makespan", ...}}); }
//
// Nothing that comes is trusted: an argument of another type, size or name is an Error that names it.
#pragma once
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stretto/base/array.h"
#include "stretto/config/run.h"
#include "stretto/formats/fields.h"

namespace stretto::python {

using Memory = std::span<std::byte>;

class Arguments {
 public:
  Arguments(const Field& all, std::span<const Memory> memory) : all_(all), memory_(memory) {}
  bool has(std::string_view key) const { return find(key) != nullptr; }
  // What is not given, or None, is what stands second.
  std::string text(std::string_view key, std::string otherwise = "") const;
  i64 whole(std::string_view key, i64 otherwise = 0, i64 least = std::numeric_limits<i64>::min(),
            i64 most = std::numeric_limits<i64>::max()) const;
  int count(std::string_view key, int otherwise = 0) const;  // from 0 up
  double number(std::string_view key, double otherwise = 0) const;
  bool flag(std::string_view key) const;
  std::vector<std::string> texts(std::string_view key) const;
  std::vector<i64> wholes(std::string_view key) const;
  std::map<std::string, i64> sizes(std::string_view key) const;       // {"batch": 2}
  std::map<std::string, double> numbers(std::string_view key) const;  // {"lr": 0.1}
  Arguments table(std::string_view key) const;                        // must be there
  std::vector<std::pair<std::string, Arguments>> tables(std::string_view key) const;
  Memory memory(std::string_view key) const;  // that the number of a buffer stands for; must be there

 private:
  const Field* find(std::string_view key) const;  // null: not given, or None
  const Field& all_;
  std::span<const Memory> memory_;
};

// {"dtype": "f32", "sizes": [2, 3], "buffer": 0}
Array array_of(const Arguments&);

// "run": a file, or ""; "settings": --section.key=value. Nothing may be open ("auto").
RunConfig run_of(const Arguments&);

Field numbers(const std::vector<double>&);

#define CALL(name) Field name(const Arguments&);
#include "calls.def"
#undef CALL

}  // namespace stretto::python
