// The command line: parses, calls the library, prints. Exit codes: 0 success, 1 the input is wrong, 2 wrong usage,
// 3 failed while running.
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <system_error>

#include "commands.h"
#include "failure.h"
#include "mpi_program.h"
#include "resource_limits.h"
#include "stretto/base/error.h"
#include "stretto/base/text.h"
#include "stretto/formats/interrupt.h"
#include "stretto/kernels/processor.h"
#include "stretto/launch/last_word.h"
#include "usage.h"

namespace {

using namespace stretto;

void refuse_unknown_command(const CLI::App& app, const std::string& name) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  if (name.starts_with('-') || std::find(names.begin(), names.end(), name) != names.end()) return;
  const auto near = nearest(name, names);
  throw Error("stretto", "there is no command '{}'", name)
      .hint("{}there are {}", near ? fmt::format("did you mean '{}'? ", *near) : "", join(names, ", "))
      .as(Error::Kind::usage);
}

// Files that are opened later must not get the numbers of the standard streams: what is printed would go into them.
void open_standard_streams() {
  for (const int fd : {0, 1, 2})
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd) std::_Exit(int(Error::Kind::run));
}

int failed(int code, const std::string& text) {
  std::fflush(stdout);
  say_last_word(code, text);
  std::fprintf(stderr, "%s\n", text.c_str());
  return code;
}

// What is thrown where nothing may be, as in functions of libraries that say noexcept and copy a string.
[[noreturn]] void end_with_failure() {
  std::set_terminate(std::abort);
  const std::exception_ptr thrown = std::current_exception();
  if (!thrown) std::abort();
  const app::Failure f = app::failure_of(thrown);
  std::_Exit(failed(f.code, f.text));
}

int output_failed(int error) {
  return failed(int(Error::Kind::run),
                fmt::format("[output] standard output cannot be written: {}; hint: is the disk full?",
                            std::generic_category().message(error)));
}

// A result that was printed and lost is a failure too.
int finished(int code) {
  errno = 0;
  std::cout.flush();
  const bool lost = std::fflush(stdout) != 0 || std::ferror(stdout) || !std::cout;
  return lost && code == 0 ? output_failed(errno ? errno : EIO) : code;
}

int run(int argc, char** argv) {
  CLI::App app{"Stretto trains large models with pipeline and hybrid parallelism."};
  app.name("stretto");
  app.require_subcommand(1);
  app.set_help_all_flag("--help-all", "the help of every command");
  app.set_version_flag("--version", "stretto " STRETTO_VERSION, "which version this is");
#define COMMAND(name) app::add_##name(app);
#include "commands.def"
#undef COMMAND
  try {
    if (argc > 1) refuse_unknown_command(app, argv[1]);
    std::vector<std::string> words = app::with_mark(app, {argv + 1, argv + argc});
    std::reverse(words.begin(), words.end());  // as CLI11 wants them
    app.parse(std::move(words));
    return finished(0);
  } catch (const CLI::Success& e) {  // help, version
    app.exit(e);
    return finished(0);
  } catch (const Interrupted& i) {
    i.end();
  } catch (const CLI::ParseError& e) {
    return failed(int(Error::Kind::usage), app::usage_error(app, e).what());
  } catch (...) {
    const app::Failure f = app::failure_of(std::current_exception());
    if (f.kind == Error::Kind::bug && std::ferror(stdout)) return output_failed(errno);  // thrown by fmt::print
    return failed(f.code, f.text);
  }
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_streams();
  std::set_terminate(end_with_failure);
  try {
    check_kernels_run_here();
    app::become_program_with_mpi(argv);
    app::meet_limits();
    keep_last_word();
    return run(argc, argv);
  } catch (...) {
    keep_last_word();
    const app::Failure f = app::failure_of(std::current_exception());
    return failed(f.code, f.text);
  }
}
