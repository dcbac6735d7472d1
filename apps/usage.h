// What is wrong with a command line, in the form of all other messages:
//
//   command.add_option("--actors", actors, "...")->type_name("P")->check(whole_number(1));
//   ... catch (const CLI::ParseError& e) { throw usage_error(app, e); }
//
// prints `[check] --actors: 'x' is not a whole number of at least 1; hint: see stretto check --help`.
#pragma once
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "commands.h"
#include "stretto/base/error.h"

namespace stretto::app {

// Checks without a name in the help: the option's type says what it takes.
inline constexpr long long any_count = 1'000'000'000'000'000'000;  // two of them can be added
CLI::Validator whole_number(long long least, long long most = std::numeric_limits<int>::max());
CLI::Validator number_above(double least);  // finite
CLI::Validator number_from(double least);   // finite
CLI::Validator size_of_file();              // 500MB, 5GB: before CLI::AsSizeValue, whose messages are for programmers
CLI::Validator day();                       // 2026-11-18
// Before a transformer that would print its own table: `->transform(...)->transform(one_of({"now", "old"}))`.
CLI::Validator one_of(std::initializer_list<const char*> words);

// `launch -n 2 train RUN.toml`: with "--" before the command that is to be launched, whose options are not launch's.
std::vector<std::string> with_mark(const CLI::App& app, std::vector<std::string> words);

// The command that was named, with its subcommand: "bench comm".
const CLI::App& named_command(const CLI::App& app);
Error usage_error(const CLI::App& app, const CLI::ParseError&);
// Options that are declared while one of these lives stand under its title in the help.
class OptionGroup {
 public:
  OptionGroup(CLI::App& command, const char* title) : command_(command) { command.option_defaults()->group(title); }
  ~OptionGroup() { command_.option_defaults()->group("Options"); }
  OptionGroup(const OptionGroup&) = delete;
  OptionGroup& operator=(const OptionGroup&) = delete;

 private:
  CLI::App& command_;
};
// How a schedule is made or read, and what its actions take: that means nothing beside a run.
inline constexpr const char *of_schedule = "Of a schedule", *of_times = "Of its times";
// Options of these groups that are given become an Error of usage.
void refuse_beside_run(const CLI::App& command, std::initializer_list<std::string_view> groups);
// The option, or setting, that was probably meant by an argument that is none.
Error unexpected(const CLI::App& command, const std::string& argument);

}  // namespace stretto::app
