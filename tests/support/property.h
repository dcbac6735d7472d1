// Property tests with a number of cases of their own: `EXPECT_TRUE(holds("what must be true", 10000, [] { ... }));`
#pragma once
#include <rapidcheck.h>

#include <cstdlib>
#include <iostream>

namespace stretto {

// STRETTO_LONG=1 in the environment asks for ten times as many cases, STRETTO_SHORT=1 for a fifth.
inline int asked_cases(int cases) {
  const auto set = [](const char* name) {
    const char* value = std::getenv(name);
    return value && *value == '1';
  };
  return set("STRETTO_LONG") ? 10 * cases : set("STRETTO_SHORT") ? (cases + 4) / 5 : cases;
}

template <class Property>
bool holds(const char* name, int cases, Property&& property) {
  rc::detail::TestMetadata metadata;
  metadata.id = metadata.description = name;
  rc::detail::TestParams params = rc::detail::configuration().testParams;
  params.maxSuccess = asked_cases(cases);
  const auto result = rc::detail::checkTestable(std::forward<Property>(property), metadata, params);
  std::cerr << "- " << name << "\n";
  rc::detail::printResultMessage(result, std::cerr);
  std::cerr << "\n";
  return result.template is<rc::detail::SuccessResult>();
}

}  // namespace stretto
