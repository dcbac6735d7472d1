// The whole C interface: stretto_call("simulate_run", "{...}", buffers, count) gives {"result": ...} or {"error": ...}
// as text, which stretto_free() takes back. Arguments name arrays by their place among the buffers, which are read or
// filled during the call. Nothing is thrown across it.
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>

#include "calls.h"
#include "stretto/kernels/processor.h"

namespace stretto::python {
namespace {

using Call = Field (*)(const Arguments&);
const std::map<std::string_view, Call>& calls() {
  static const std::map<std::string_view, Call> all{
#define CALL(name) {#name, name},
#include "calls.def"
#undef CALL
  };
  return all;
}

Field error_field(const Error& e) {
  Field::Array faults;
  for (const Fault& f : e.faults())
    faults.push_back(Field::Table{{"where", f.where}, {"what", f.what}, {"hint", f.hint}});
  return Field::Table{{"error", Field::Table{{"faults", faults}, {"text", e.what()}, {"code", e.exit_code()}}}};
}

Field answer(const char* name, const char* arguments, std::span<const Memory> memory) try {
  static const bool checked = (check_kernels_run_here(), true);
  (void)checked;
  const auto it = calls().find(name);
  if (it == calls().end()) throw Error("stretto_call", "there is no call of that name").hint("they are in calls.def");
  const Field given = read_json(arguments, "arguments");
  return Field::Table{{"result", it->second(Arguments(given, memory))}};
} catch (const Error& e) {
  return error_field(e);
} catch (const std::bad_alloc&) {
  return error_field(
      Error("memory", "out of memory").hint("a smaller batch, more microbatches or recompute need less"));
} catch (const std::exception& e) {
  return error_field(Error("internal", "{}", e.what()).as(Error::Kind::bug));
}

}  // namespace

RunConfig run_of(const Arguments& a) {
  RunConfig run = read_run(a.text("run"), a.texts("settings"));
  if (!run.searched.empty())
    throw Error("run", "'{}' is \"auto\"", run.searched.front())
        .hint("stretto.plan(...).best[0].settings says what to use");
  return run;
}

Field numbers(const std::vector<double>& all) { return Field::Array(all.begin(), all.end()); }

}  // namespace stretto::python

#define STRETTO_PUBLIC __attribute__((visibility("default")))

extern "C" {

struct stretto_buffer {
  void* data;
  long long bytes;
};

STRETTO_PUBLIC char* stretto_call(const char* name, const char* arguments, const stretto_buffer* buffers,
                                  long long count) {
  std::vector<stretto::python::Memory> memory;
  for (long long i = 0; i < count; ++i)
    memory.emplace_back(static_cast<std::byte*>(buffers[i].data), std::size_t(buffers[i].bytes));
  const std::string text = stretto::write_json(stretto::python::answer(name, arguments, memory));
  char* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy) std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

STRETTO_PUBLIC void stretto_free(char* text) { std::free(text); }

STRETTO_PUBLIC const char* stretto_version() { return STRETTO_VERSION; }
}
