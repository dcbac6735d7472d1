#include "usage.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <vector>

#include "stretto/base/day.h"
#include "stretto/base/text.h"
#include "stretto/config/describe.h"

namespace stretto::app {
namespace {

template <class T>
bool reads_as(const std::string& text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

CLI::Validator number(double least, bool open) {
  return {[least, open](const std::string& text) {
            double v = 0;
            if (reads_as(text, v) && std::isfinite(v) && (open ? v > least : v >= least)) return std::string();
            return fmt::format("'{}' is not a number {} {}", text, open ? "above" : "of at least", least);
          },
          ""};
}

std::string full_name(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent && parent->get_parent() ? full_name(*parent) + " " + command.get_name() : command.get_name();
}

std::vector<std::string> subcommands(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* one : command.get_subcommands({})) names.push_back(one->get_name());
  return names;
}

// The settings of a run that "--pipe" or another tool's "--batch-size" may mean.
std::vector<std::string> settings_meant(const CLI::App& command, const std::string& word) {
  if (!word.starts_with("--") || !command.get_allow_extras()) return {};  // the command takes none
  std::vector<std::string> all = keys_named(word.substr(2));
  for (std::string& key : all) key.insert(0, "--");
  return all;
}

// What is different where another tool's option stands for one of ours: its value must not be taken over.
std::string note_on(const std::string& word) {
  for (const Renamed& r : synonyms())
    if (word.starts_with("--") && r.is(word.substr(2))) return std::string(r.note);
  return "";
}

// What CLI11 says, without its words for programmers.
std::string said(const CLI::ParseError& e) {
  const std::string what = e.what(), kind = e.get_name();
  const auto before = [&](std::string_view end) { return what.substr(0, what.find(end)); };
  if (kind == "RequiredError" && what.ends_with(" is required")) return before(" is required") + " is missing";
  if (kind == "ExcludesError") {
    std::string pair = what;
    if (const std::size_t at = pair.find(" excludes "); at != pair.npos) pair.replace(at, 10, " and ");
    return pair + " exclude each other";
  }
  if (kind == "ConversionError" && what.starts_with("Could not convert: ")) {
    const std::string rest = what.substr(19);
    const std::size_t equals = rest.find(" = ");
    if (equals != rest.npos)
      return fmt::format("{}: '{}' cannot be read", rest.substr(0, equals), rest.substr(equals + 3));
  }
  if (kind == "ArgumentMismatch" && what.find("required") != what.npos && what.find("missing") != what.npos)
    return before(":") + " has no value";
  if (kind == "ArgumentMismatch" && what.find("At Most 1") != what.npos) return before(":") + " is given twice";
  return what;
}

}  // namespace

CLI::Validator whole_number(long long least, long long most) {
  return {[least, most](const std::string& text) {
            long long v = 0;  // stays 0 where there is no number
            if (reads_as(text, v) && v >= least && v <= most) return std::string();
            const bool open = most >= std::numeric_limits<int>::max() && v <= most;
            return fmt::format("'{}' is not a whole number {}", text,
                               open ? fmt::format("of at least {}", least) : fmt::format("from {} to {}", least, most));
          },
          ""};
}

CLI::Validator number_above(double least) { return number(least, true); }
CLI::Validator number_from(double least) { return number(least, false); }

CLI::Validator day() {
  return {[](const std::string& text) {
            return is_day(text) ? "" : fmt::format("'{}' is no day such as 2026-11-18", text);
          },
          ""};
}

CLI::Validator size_of_file() {
  return {[](const std::string& text) {
            u64 bytes = 0;
            const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
            std::string unit = text.substr(end);
            std::transform(unit.begin(), unit.end(), unit.begin(), [](unsigned char c) { return std::tolower(c); });
            constexpr std::pair<std::string_view, u64> units[] = {
                {"", 1}, {"b", 1}, {"kb", 1'000}, {"mb", 1'000'000}, {"gb", 1'000'000'000}, {"tb", 1'000'000'000'000}};
            const bool right = reads_as(text.substr(0, end), bytes) && bytes > 0;
            for (const auto& [name, factor] : units)
              if (right && name == unit && !__builtin_mul_overflow(bytes, factor, &bytes)) return std::string();
            return fmt::format("'{}' is not a size such as 500MB or 5GB", text);
          },
          ""};
}

CLI::Validator one_of(std::initializer_list<const char*> words) {
  return {[all = std::vector<std::string>(words.begin(), words.end())](const std::string& text) {
            if (std::find(all.begin(), all.end(), text) != all.end()) return std::string();
            const auto near = nearest(text, all);
            return fmt::format("'{}' is none of {}{}", text, join(all, ", "),
                               near ? fmt::format(" (did you mean '{}'?)", *near) : "");
          },
          ""};
}

std::vector<std::string> with_mark(const CLI::App& app, std::vector<std::string> words) {
  if (words.empty() || words[0] != "launch" || std::find(words.begin(), words.end(), "--") != words.end()) return words;
  const CLI::App* launch = app.get_subcommand(words[0]);
  const std::vector<std::string> commands = subcommands(app);
  for (std::size_t i = 1; i < words.size(); ++i) {
    const CLI::Option* before = words[i - 1].starts_with('-') ? launch->get_option_no_throw(words[i - 1]) : nullptr;
    if (before && before->get_items_expected_max() > 0) continue;  // its value
    if (words[i] != app.get_name() && std::find(commands.begin(), commands.end(), words[i]) == commands.end()) continue;
    words.insert(words.begin() + std::ptrdiff_t(i), "--");
    break;
  }
  return words;
}

const CLI::App& named_command(const CLI::App& app) {
  const std::vector<CLI::App*> below = app.get_subcommands();
  return below.empty() ? app : named_command(*below[0]);
}

Error usage_error(const CLI::App& app, const CLI::ParseError& e) {
  const CLI::App& command = named_command(app);
  const std::vector<std::string> names = subcommands(command);
  const std::string name = full_name(command);
  if (!names.empty()) {
    const std::vector<std::string> words = command.remaining();
    const auto near = words.empty() ? std::nullopt : nearest(words[0], names);
    return Error(name, "{}", words.empty() ? "no command is given" : fmt::format("there is no command '{}'", words[0]))
        .hint("{}there are {}; see {} --help", near ? fmt::format("did you mean '{}'? ", *near) : "", join(names, ", "),
              &command == &app ? name : "stretto " + name)
        .as(Error::Kind::usage);
  }
  // A misspelt option is what is wrong, not that the one it stands for is missing.
  if (e.get_name() == "RequiredError")
    for (const std::string& word : command.remaining())
      if (word.starts_with("--") && word.find('.') == word.npos) return unexpected(command, word);
  if (e.get_exit_code() ==
      int(CLI::ExitCodes::ExtrasError)) {  // "The following arguments were not expected: -- --pip=2"
    const std::string what = e.what();
    for (std::size_t at = what.find(": "); at != what.npos; at = what.find(' ', at + 1)) {
      const std::size_t from = what.find_first_not_of(": ", at);
      const std::string word = what.substr(std::min(from, what.size()), what.find(' ', from) - from);
      if (word != "--" && !word.empty()) return unexpected(command, word);
    }
  }
  return Error(name, "{}", said(e)).hint("see stretto {} --help", name).as(Error::Kind::usage);
}

void refuse_beside_run(const CLI::App& command, std::initializer_list<std::string_view> groups) {
  std::vector<std::string> given;
  for (const CLI::Option* o : command.get_options())
    if (o->count() > 0 && std::find(groups.begin(), groups.end(), o->get_group()) != groups.end())
      given.push_back(o->get_name());
  if (given.empty()) return;
  throw Error(full_name(command), "{} {} of a schedule that is given by --schedule, not of a run", join(given, ", "),
              given.size() == 1 ? "is an option" : "are options")
      .hint("a run is changed by its settings, e.g. --parallel.pipe=4 --train.microbatches=8")
      .as(Error::Kind::usage);
}

// A flag that was given and may have a value, which is written behind a '='; "": none.
std::string flag_with_value(const CLI::App& command) {
  for (const char* flag : {"--resume", "--chat"})
    if (command.get_option_no_throw(flag) && command.count(flag) > 0) return flag;
  return "";
}

Error unexpected(const CLI::App& command, const std::string& argument) {
  const std::string name = full_name(command), word = argument.substr(0, argument.find('='));
  std::vector<std::string> known;
  for (const CLI::Option* o : command.get_options())
    for (const std::string& one : o->get_lnames()) known.push_back("--" + one);
  std::string hint = "settings are given as --section.key=value, e.g. --train.steps=10";
  const std::vector<std::string> keys = settings_meant(command, word);
  if (word.starts_with("--") && word.find('.') != word.npos)
    hint = fmt::format("write its value after it: {}=VALUE", word);
  else if (const std::string note = note_on(word); !keys.empty() && !note.empty())
    hint = fmt::format("did you mean {}=VALUE, {}?", join(keys, " or "), note);
  else if (!keys.empty())
    hint = fmt::format("did you mean {}{}?", join(keys, " or "),
                       word.size() < argument.size() ? argument.substr(word.size()) : "=VALUE");
  else if (const auto near = word.starts_with("--") ? nearest(word, known) : std::nullopt)
    hint = fmt::format("did you mean '{}'?", *near);
  else if (const std::string flag = flag_with_value(command); !word.starts_with("-") && !flag.empty())
    hint = fmt::format("did you mean {}={}?", flag, word);
  return Error(name, "unexpected argument '{}'", argument)
      .hint("{}; see stretto {} --help", hint, name)
      .as(Error::Kind::usage);
}

}  // namespace stretto::app
