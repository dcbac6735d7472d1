// A model type that is not read: which of those that are comes closest, and what it lacks. For models/hf*.cpp only.
#pragma once
#include <string>
#include <vector>

#include "stretto/formats/fields.h"
#include "stretto/formats/hf_directory.h"
#include "stretto/models/config.h"

namespace stretto {

struct ClosestType {
  std::string name;
  std::vector<Fault> faults;   // keys that it does not know, tensors that are missing, misshapen or surplus
  bool with_tensors = false;   // they were looked at: those of the directory that config.json lies in
  std::string str() const;     // "read as llama, the closest, it differs in ..."
  std::string advice() const;  // "hf_as = "llama" reads it as that, if ..."
};
ClosestType closest_type(const Field& json);

// Tensors that are missing, misshapen, surplus, or not what config.json says.
std::vector<Fault> tensor_faults(const HfWeights&, const ModelConfig&);

}  // namespace stretto
