// Before step 0 all processes of a run say what they are about to do; it must be the same.
//
//   agree(*peers, description(config, prepared));        // an Error names what differs, and on which rank
#pragma once
#include <string>
#include <vector>

#include "stretto/comm/peers.h"
#include "stretto/run/prepare.h"

namespace stretto {

// "name = value" lines: version and executable, program, data, configuration; where the run goes on from.
std::string description(const RunConfig&, const Prepared&, i64 steps_done);

// The lines of [data], from before there is any.
std::string data_description(const RunConfig&);

// One fault per rank and name that differs from rank 0's, the first few of each rank.
std::vector<Fault> disagreements(const std::vector<std::string>& descriptions);

void agree(Peers&, const std::string& description);

}  // namespace stretto
