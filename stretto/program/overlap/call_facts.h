// What is the same in every run of a body, per call: which bytes of its buffers it touches, and a collective's axes.
//
//   CallFacts facts(program.mesh);
//   const CallFacts::OfCall& x = facts.of(body)[call];          // found once
#pragma once
#include <map>
#include <string>
#include <vector>

#include "stretto/fuse/calls.h"
#include "stretto/ir/layout.h"
#include "stretto/ir/spans.h"

namespace stretto {

class CallFacts {
 public:
  explicit CallFacts(const Mesh& mesh) : mesh_(mesh) {}  // it must outlive this
  struct OfCall {
    std::vector<ByteSpans> in, out;
    std::vector<std::string> axes = {};
  };
  const IdVector<CallId, OfCall>& of(const Calls& body);

 private:
  const Mesh& mesh_;
  std::map<const Calls*, IdVector<CallId, OfCall>> known_;
};

}  // namespace stretto
