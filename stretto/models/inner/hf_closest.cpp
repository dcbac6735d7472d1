#include "stretto/models/inner/hf_closest.h"

#include "stretto/base/files.h"
#include "stretto/base/text.h"
#include "stretto/models/hf.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;

// None: there are none beside config.json, or they cannot be read, which is said when they are asked for.
std::optional<HfWeights> weights_beside(const Field& json) {
  if (!json.source.file) return std::nullopt;
  const fs::path folder = fs::path(*json.source.file).parent_path();
  try {
    return HfWeights(folder.empty() ? "." : folder);
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::vector<Fault> faults_as(const Field& json, const std::string& type, const std::optional<HfWeights>& weights) {
  try {
    const HfConfig read = parse_hf_config(json, type);
    return weights ? tensor_faults(*weights, read.config) : std::vector<Fault>();
  } catch (const Error& e) {
    return e.faults();
  }
}

}  // namespace

ClosestType closest_type(const Field& json) {
  const std::optional<HfWeights> weights = weights_beside(json);
  // One that cannot even read config.json says little about the tensors: it comes last.
  const auto distance = [&](const std::vector<Fault>& faults) {
    const bool of_keys = !faults.empty() && !(weights && faults.front().where == weights->directory().string());
    return std::pair(of_keys, faults.size());
  };
  ClosestType best;
  for (const std::string& type : hf_type_names()) {
    std::vector<Fault> faults = faults_as(json, type, weights);
    if (best.name.empty() || distance(faults) < distance(best.faults))
      best = {.name = type, .faults = std::move(faults), .with_tensors = weights.has_value()};
  }
  return best;
}

std::string ClosestType::str() const {
  constexpr std::size_t most = 4;
  if (faults.empty())
    return fmt::format("all of its keys{} are those of '{}'", with_tensors ? " and tensors" : "", name);
  std::vector<std::string> some;
  for (std::size_t i = 0; i < faults.size() && i < most; ++i) some.push_back(faults[i].what);
  return fmt::format("from '{}', the closest, it differs in this: {}{}", name, join(some, "; "),
                     faults.size() > most ? fmt::format("; and {} more", faults.size() - most) : "");
}

std::string ClosestType::advice() const {
  if (!faults.empty()) return "a model that is one of these under another name can be read with --model.hf_as=TYPE";
  return fmt::format(
      "if it computes what '{0}' computes, --model.hf_as={0} of a run reads it as that, and --hf-as={0} of convert, "
      "eval "
      "and generate",
      name);
}

}  // namespace stretto
