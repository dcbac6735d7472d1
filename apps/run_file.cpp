#include "run_file.h"

#include <filesystem>

#include "usage.h"

#include "stretto/base/files.h"

namespace stretto::app {
namespace {

std::vector<std::string> settings_of(const CLI::App& command) {
  const std::vector<std::string> settings = command.remaining();
  for (const std::string& s : settings) {
    const std::size_t equals = s.find('=');
    const bool key = s.starts_with("--") && equals != s.npos && s.substr(0, equals).find('.') != s.npos;
    if (key || s == "--parallel=auto") continue;
    throw unexpected(command, s);
  }
  return settings;
}

}  // namespace

void RunFile::declare(CLI::App& command) {
  command.add_option("RUN.toml", file, "the run; without it every setting has its default");
  command.allow_extras();  // the settings, which read() looks at
  command.footer(
      "Any setting of RUN.toml can be given as --section.key=value, e.g. --train.steps=10;\n"
      "--parallel=auto: how the run is spread over this machine is chosen by prediction.");
}

bool RunFile::given(const CLI::App& command) const {
  const bool changed = !settings_of(command).empty();  // a misspelt option's value may be what is taken for a file
  return changed || !file.empty();
}

std::string config_of_run(const std::string& from, const std::vector<std::string>& settings) {
  std::vector<std::string> places;
  for (const std::string& s : settings)
    if (s.starts_with("--log.dir=")) places.push_back(s);
  const std::string directory = from.empty() ? read_run("", places).log.dir : from;
  const std::filesystem::path file = std::filesystem::path(directory) / "config.toml";
  return !directory.empty() && is_there(file) ? file.string() : "";
}

void RunFile::find(const std::string& from, const CLI::App& command) {
  if (file.empty()) file = config_of_run(from, settings_of(command));
}

RunConfig RunFile::read(const CLI::App& command) const { return read_run(file, settings_of(command)); }

RunConfig RunFile::read_open(const CLI::App& command) const { return read_open_run(file, settings_of(command)); }

std::vector<std::string> settings_only(const CLI::App& command, std::string_view section) {
  const std::vector<std::string> settings = settings_of(command);
  for (const std::string& s : settings)
    if (!s.starts_with(fmt::format("--{}.", section)))
      throw Error(command.get_name(), "unexpected argument '{}'", s)
          .hint("of the settings only those of [{}] are for this command; see stretto {} --help", section,
                command.get_name())
          .as(Error::Kind::usage);
  return settings;
}

Mesh mesh_of(const ParallelSection& s) {
  Mesh mesh = parallel_of(s, ProductType::as_kept).mesh;
  for (const Axis& a : layout_of(s.names, {}).mesh) mesh.push_back(a);
  return mesh;
}

void refuse_input(std::string_view command, const std::string& output, const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs)
    if (is_same(output, input))
      throw Error(command, "{} would be written over {}, which is read", output, input).hint("choose another name");
}

RunSizes sizes_of(const ModelConfig& model, int ranks) {
  return {.ranks = ranks, .context = model.context, .width = model.width};
}

}  // namespace stretto::app
