// An actor's code as a list that a test can change.
//
//   changed(program.actors[actor], [](InstructionList& code) { std::swap(code[first], code[second]); });
#pragma once
#include "stretto/program/program.h"

namespace stretto::test {

using InstructionList = IdVector<InstructionId, Instruction>;

inline InstructionList list_of(const Code& code) { return InstructionList(code.written_out()); }

template <class Change>
void changed(ActorProgram& a, Change change) {
  InstructionList code = list_of(a.code);
  change(code);
  a.code = Code(code.list());
}

}  // namespace stretto::test
