// Names of files in a run file are those of the current directory, as on the command line. One that is not there may
// lie beside the run file, so that a folder with a run and its data can be used from anywhere.
//
//   Field run = look_beside(read_toml_file("examples/quickstart.toml"), "examples/quickstart.toml");
//   // data.path = "data/tales.txt" is now "examples/data/tales.txt"
#pragma once
#include <filesystem>

#include "stretto/formats/fields.h"

namespace stretto {

Field look_beside(Field run, const std::filesystem::path& file);
// The folder that is looked in beside the current one; "" when it is the same.
std::filesystem::path folder_beside(const std::filesystem::path& file);

}  // namespace stretto
