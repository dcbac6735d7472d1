// `stretto completion`: a script that completes commands, options and keys of runs in a shell, made from the tables of
// all of them.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "commands.h"
#include "stretto/base/text.h"
#include "stretto/config/describe.h"
#include "usage.h"

namespace stretto::app {
namespace {

bool is_word(std::string_view text) {
  return !text.empty() &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == text.npos;
}

// The words among what a key takes: "true or false", "f32, bf16", "gpipe, 1f1b, or a CSV file".
std::vector<std::string> words_of(std::string_view takes) {
  if (takes == "true or false") return {"true", "false"};
  std::vector<std::string> words;
  while (!takes.empty()) {
    const std::size_t comma = std::min(takes.find(", "), takes.size());
    if (const std::string_view part = takes.substr(0, comma); is_word(part)) words.emplace_back(part);
    takes.remove_prefix(std::min(comma + 2, takes.size()));
  }
  return words.size() > 1 ? words : std::vector<std::string>();
}

struct Completed {
  std::string command;                   // "train", "bench comm"; "" is the program itself
  std::vector<std::string> words, keys;  // commands and options; --section.key=
};

void add_command(const CLI::App& app, const std::string& name, std::vector<Completed>& all) {
  Completed c{.command = name};
  for (const CLI::App* below : app.get_subcommands({})) c.words.push_back(below->get_name());
  for (const CLI::Option* o : app.get_options())
    for (const std::string& word : o->get_lnames()) c.words.push_back("--" + word);
  const bool run = app.get_option_no_throw("RUN.toml") != nullptr;
  if (run || (app.get_allow_extras() && name != "launch"))  // without a run there are layouts to choose only
    for (const KeyInfo& k : all_keys())
      if (run || k.name.starts_with("parallel.")) c.keys.push_back(fmt::format("--{}=", k.name));
  all.push_back(std::move(c));
  for (const CLI::App* below : app.get_subcommands({}))
    add_command(*below, name.empty() ? below->get_name() : name + " " + below->get_name(), all);
}

// Which command the words up to here name: cases of "$command:$word".
std::string cases_of_commands(const std::vector<Completed>& all) {
  std::string text = "      'launch:--') command='' ;;\n";
  for (const Completed& c : all)
    if (!c.command.empty() && c.command.find(' ') == c.command.npos)
      text += fmt::format("      'launch:{0}') command='{0}' ;;\n", c.command);
  for (const Completed& c : all) {
    if (c.command.empty()) continue;
    const std::size_t space = c.command.rfind(' ');
    const std::string above = space == c.command.npos ? "" : c.command.substr(0, space);
    const std::string last = space == c.command.npos ? c.command : c.command.substr(space + 1);
    text += fmt::format("      '{}:{}') command='{}' ;;\n", above, last, c.command);
  }
  return text;
}

std::string cases_of_values(std::string_view form) {
  std::string text;
  for (const KeyInfo& k : all_keys())
    if (const std::vector<std::string> words = words_of(k.takes); !words.empty())
      text += fmt::format(fmt::runtime(form), fmt::arg("key", "--" + k.name), fmt::arg("words", join(words, " ")));
  return text;
}

// The script with its tables in place of their names.
std::string filled(std::string script, std::initializer_list<std::pair<std::string_view, std::string>> tables) {
  for (const auto& [name, table] : tables) script.replace(script.find(name), name.size(), table);
  return script;
}

constexpr std::string_view bash_form = R"sh(# Completion of stretto for bash; made by: stretto completion bash
_stretto() {
  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command='' word key='' words='' keys=''
  COMPREPLY=()
  # bash cuts --key=value into three words
  if [[ $current == '=' ]]; then key=$before current=''
  elif [[ $before == '=' ]]; then key=${COMP_WORDS[COMP_CWORD-2]}
  fi
  if [[ $key ]]; then
    case $key in
@VALUES@      *) return ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    return
  fi
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$command:$word" in
@COMMANDS@    esac
  done
  case $command in
@OPTIONS@  esac
  if [[ $current == --*.* ]]; then
    COMPREPLY=($(compgen -W "$keys" -- "$current"))
    compopt -o nospace 2> /dev/null
  elif [[ $current == -* || $words != -* ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    if [[ $current == --* && $keys ]]; then  # one section at a time
      COMPREPLY+=($(compgen -W "$(for word in $keys; do echo "${word%%.*}."; done | sort -u)" -- "$current"))
      [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *. ]] && compopt -o nospace 2> /dev/null
    fi
  fi
  return 0
}
complete -o default -F _stretto stretto
)sh";

constexpr std::string_view zsh_form = R"sh(#compdef stretto
# Completion of stretto for zsh; made by: stretto completion zsh
_stretto() {
  local command='' word
  for word in ${words[2,CURRENT-1]}; do
    case "$command:$word" in
@COMMANDS@    esac
  done
  if [[ ${words[CURRENT]} == --*=* ]]; then
    case ${words[CURRENT]%%=*} in
@VALUES@      *) compset -P '*='; _files ;;
    esac
    return
  fi
  case $command in
@OPTIONS@  esac
}
if [[ $funcstack[1] == _stretto ]]; then _stretto "$@"; else compdef _stretto stretto; fi
)sh";

std::string bash_script(const std::vector<Completed>& all) {
  std::string options;
  for (const Completed& c : all)
    options += fmt::format("    '{}') words='{}' keys='{}' ;;\n", c.command, join(c.words, " "), join(c.keys, " "));
  return filled(std::string(bash_form), {{"@VALUES@", cases_of_values("      {key}) words='{words}' ;;\n")},
                                         {"@COMMANDS@", cases_of_commands(all)},
                                         {"@OPTIONS@", options}});
}

std::string zsh_script(const std::vector<Completed>& all) {
  std::string options;
  for (const Completed& c : all) {
    options += fmt::format("    '{}') compadd -- {};", c.command, join(c.words, " "));
    if (!c.keys.empty()) options += fmt::format(" compadd -S '' -- {};", join(c.keys, " "));
    options += c.command.empty() ? ";\n" : " _files ;;\n";
  }
  return filled(std::string(zsh_form),
                {{"@COMMANDS@", cases_of_commands(all)},
                 {"@VALUES@", cases_of_values("      {key}) compset -P '*='; compadd -- {words} ;;\n")},
                 {"@OPTIONS@", options}});
}

}  // namespace

void add_completion(CLI::App& app) {
  CLI::App* command = app.add_subcommand("completion", "a script that completes commands, options and keys in a shell");
  const auto shell = std::make_shared<std::string>();
  command->add_option("SHELL", *shell, "bash or zsh")
      ->required()
      ->type_name("bash|zsh")
      ->check(one_of({"bash", "zsh"}));
  command->footer("eval \"$(stretto completion bash)\" in ~/.bashrc, or the same with zsh in ~/.zshrc.");
  command->callback([shell, &app] {
    std::vector<Completed> all;
    add_command(app, "", all);
    fmt::print("{}", *shell == "bash" ? bash_script(all) : zsh_script(all));
  });
}

}  // namespace stretto::app
