// What Python may ask for. A call is a function from JSON to JSON, one line in calls.def; arrays go by their addresses.
//
//   Field simulate(const Arguments& a) { return Field(Field::Table{{"makespan", ...}}); }
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "stretto/config/run.h"
#include "stretto/formats/fields.h"

namespace stretto::python {

class Arguments {
 public:
  explicit Arguments(const Field& all) : all_(all) {}
  const Field* find(std::string_view key) const;  // null: not given, or None
  std::string text(std::string_view key) const;   // "": not given
  i64 whole(std::string_view key, i64 otherwise = 0) const;
  double number(std::string_view key, double otherwise = 0) const;
  bool flag(std::string_view key) const;
  std::vector<std::string> texts(std::string_view key) const;

 private:
  const Field& all_;
};

// "run": a file, or ""; "settings": --section.key=value. Nothing may be open ("auto").
RunConfig run_of(const Arguments&);

Field numbers(const std::vector<double>&);

#define CALL(name) Field name(const Arguments&);
#include "calls.def"
#undef CALL

}  // namespace stretto::python
