// Options of commands that read a model from a directory.
#pragma once
#include "commands.h"
#include "stretto/saved/model_directory.h"

namespace stretto::app {

void add_load_options(CLI::App& command, LoadOptions&);  // which must outlive it

}  // namespace stretto::app
