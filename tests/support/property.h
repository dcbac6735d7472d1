// Property tests with a number of cases of their own: `EXPECT_TRUE(holds("what must be true", 10000, [] { ... }));`
#pragma once
#include <rapidcheck.h>

#include <cstdlib>
#include <iostream>

namespace stretto {

// STRETTO_LONG=1 in the environment asks for ten times as many cases.
template <class Property>
bool holds(const char* name, int cases, Property&& property) {
  rc::detail::TestMetadata metadata;
  metadata.id = metadata.description = name;
  rc::detail::TestParams params = rc::detail::configuration().testParams;
  const char* asked = std::getenv("STRETTO_LONG");
  params.maxSuccess = asked && *asked == '1' ? 10 * cases : cases;
  const auto result = rc::detail::checkTestable(std::forward<Property>(property), metadata, params);
  std::cerr << "- " << name << "\n";
  rc::detail::printResultMessage(result, std::cerr);
  std::cerr << "\n";
  return result.template is<rc::detail::SuccessResult>();
}

}  // namespace stretto
