// Gradients that go to another actor when a step ends take the room of activations there.
//
//   say_when_there_is_room(program);      // before its order is settled
//
// An actor that gets some tells their senders, after the first backward that follows its last forward: from then
// on it holds fewer activations with every action. The message is empty; gradients are sent when it has come. So the
// memory for them need not be there while the actor holds the most.
#pragma once
#include "stretto/program/program.h"

namespace stretto {

void say_when_there_is_room(Program&);

}  // namespace stretto
