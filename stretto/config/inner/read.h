// The fields of a RUN.toml -> RunConfig, with every mistake in it.
//
//   RunConfig run = run_of(read_toml_file("run.toml"), {});
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "stretto/config/run.h"
#include "stretto/formats/fields.h"

namespace stretto {

// `start`: the run's name, keys that are taken out because a planner chooses them, the folder of its file.
RunConfig run_of(const Field& root, RunConfig start);
// [parallel] alone, for a model that is there already.
ParallelSection parallel_section_of(const Field& root, const ModelConfig& model);

// Of a directory of weights that is not there: "gpt2" and "owner/name" are names of the Hub.
std::string advice_on_model(const std::string& name, const std::filesystem::path& beside);

}  // namespace stretto
