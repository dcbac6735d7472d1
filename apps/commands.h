// One command is one file apps/<name>.cpp with `void add_<name>(CLI::App& app)` and one line in commands.def.
// add_* declares a subcommand whose callback does the work and throws Error on failure; main turns that into a
// message and an exit code. Callbacks call the library and print; they hold no logic of their own.
#pragma once
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

namespace stretto::app {

#define COMMAND(name) void add_##name(CLI::App& app);
#include "commands.def"
#undef COMMAND

}  // namespace stretto::app
