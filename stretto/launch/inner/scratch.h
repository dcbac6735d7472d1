// A directory in shared memory for the files that MPI makes there. MPI removes them at the end of a run that ends well;
// the launch, or when it was killed its last guardian, removes the directory however the run ends.
//
//   make_scratch("stretto-4f…");  ...  remove_scratch("stretto-4f…");
#pragma once
#include <optional>
#include <string>

namespace stretto {

std::optional<std::string> make_scratch(const std::string& name);  // its path; none: it cannot be made here
void remove_scratch(const std::string& name);

}  // namespace stretto
