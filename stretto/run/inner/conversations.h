// Runs on conversations: the day that templates may ask for, and who renders. Between processes only the first does.
//
//   settle_conversations(config, peers);                       // before anything is read
//   corpus.others = others_of(peers);
#pragma once
#include <optional>

#include "stretto/comm/peers.h"
#include "stretto/config/run.h"
#include "stretto/data/from_first.h"

namespace stretto {

// data.date, unless it is given: the day on which the run starts, the same on all ranks. Refused: ranks of which some
// read other conversations. Does nothing where the data is none; `peers` may be null.
void settle_conversations(RunConfig&, Peers* peers);

std::optional<FromFirst> others_of(Peers*);  // none: there are no others

}  // namespace stretto
