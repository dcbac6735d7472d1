#include "run_file.h"

#include "usage.h"

namespace stretto::app {
namespace {

std::vector<std::string> settings_of(const CLI::App& command) {
  const std::vector<std::string> settings = command.remaining();
  for (const std::string& s : settings) {
    const std::size_t equals = s.find('=');
    if (s.starts_with("--") && equals != s.npos && s.substr(0, equals).find('.') != s.npos) continue;
    throw unexpected(command, s);
  }
  return settings;
}

}  // namespace

void RunFile::declare(CLI::App& command) {
  command.add_option("RUN.toml", file, "the run; without it every setting has its default");
  command.allow_extras();  // the settings, which read() looks at
  command.footer("Any setting of RUN.toml can be given as --section.key=value, e.g. --train.steps=10.");
}

bool RunFile::given(const CLI::App& command) const { return !file.empty() || !settings_of(command).empty(); }

RunConfig RunFile::read(const CLI::App& command) const { return read_run(file, settings_of(command)); }

}  // namespace stretto::app
