// A graph's file with anything in it that does not belong there: an Error that says where, or a model.
#include <gtest/gtest.h>

#include <random>

#include "stretto/formats/mapped_file.h"
#include "stretto/graphs/graph_file.h"
#include "support/property.h"

namespace stretto {
namespace {

std::string exported() { return std::string(MappedFile(STRETTO_SOURCE "/tests/files/graphs/nanogpt.json").text()); }

bool is_model(const std::string& text) {
  try {
    Trace t;
    model_of(parse_graph(text, "hostile.json"))(t);
    return true;
  } catch (const Error& e) {
    EXPECT_FALSE(e.faults().empty());
    EXPECT_NE(e.exit_code(), 70) << e.what();
    return false;
  }
}

// One place of the text is another: a word of JSON, a word of the file, nothing, or what stands somewhere else.
std::string changed(const std::string& text, std::mt19937& random) {
  static const std::vector<std::string> words{"-1",        "0",          "9223372036854775807",
                                              "1e308",     "2.5",        "null",
                                              "true",      "[]",         "{}",
                                              "\"\"",      "\"seq\"",    "\"x\"",
                                              "[[",        "}",          "\"in\"",
                                              "86",        "\"rename\"", "1099511627776",
                                              "\"param\"", "\"over\""};
  const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '"'; };
  std::size_t from = below(text.size()), to = from;
  while (to < text.size() && is_word(text[to])) ++to;
  while (from > 0 && is_word(text[from - 1])) --from;
  std::string put;
  if (const std::size_t way = below(4); way == 0)
    put = text.substr(below(text.size()), below(40));
  else if (way < 3)
    put = words[below(words.size())];
  return text.substr(0, from) + put + text.substr(to);
}

TEST(HostileGraphs, TheFileItselfIsAModel) { EXPECT_TRUE(is_model(exported())); }

TEST(HostileGraphs, EveryBeginningEndsInAnError) {
  const std::string text = exported();
  for (std::size_t n = 0; n + 1 < text.size(); n += 97) EXPECT_FALSE(is_model(text.substr(0, n))) << n;
}

TEST(HostileGraphs, ChangedFilesEndInAnErrorOrAModel) {
  const std::string text = exported();
  std::mt19937 random(7);
  int models = 0;
  const int cases = asked_cases(2000);
  for (int i = 0; i < cases; ++i) {
    std::string other = changed(text, random);
    for (int more = i % 3; more > 0; --more) other = changed(other, random);
    models += is_model(other);
  }
  EXPECT_GT(models, 0);
  EXPECT_LT(models, cases);
}

TEST(HostileGraphs, AMillionNodesAndSizesThatOverflowAreRefused) {
  std::string nodes;
  for (int i = 0; i < 1'000'000; ++i) nodes += R"({"op":"iota","dim":"a"},)";
  nodes.pop_back();
  const auto file = [](const std::string& dims, const std::string& all) {
    return R"({"version":1,"dims":[)" + dims + R"(],"nodes":[)" + all +
           R"(],"loss":[{"kind":"mean","name":"loss","in":[0]}]})";
  };
  EXPECT_FALSE(is_model(file(R"({"name":"a","size":2})", nodes)));
  const std::string huge = R"({"name":"a","size":1000000000000},{"name":"b","size":1000000000000})";
  EXPECT_FALSE(is_model(file(huge, R"({"op":"param","name":"p","dims":["a","b"]})")));
  EXPECT_FALSE(is_model(file(R"({"name":"a","size":9223372036854775807})", R"({"op":"iota","dim":"a"})")));
}

}  // namespace
}  // namespace stretto
