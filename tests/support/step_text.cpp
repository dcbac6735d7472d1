#include "support/step_text.h"

#include "stretto/base/match.h"
#include "stretto/base/text.h"
#include "stretto/ir/op.h"

namespace stretto::test {

std::string text(const Binding& b) {
  const auto named = [](std::string_view name, auto id) { return fmt::format("{}{}", name, id.value); };
  return match(
      b, [&](ParamId i) { return named("param", i); }, [&](InputId i) { return named("input", i); },
      [&](ScalarId i) { return named("scalar", i); }, [&](ValueId i) { return named("value", i); },
      [&](AccumulatorId i) { return named("gradient", i); }, [&](BucketId i) { return named("bucket", i); },
      [&](OutputId i) { return named("output", i); }, [&](AllMicrobatches i) { return named("outputs", i.output); },
      [&](StateId i) { return fmt::format("state{}.{}", i.param.value, i.which); },
      [&](SquareId i) { return named("square", i); }, [](AllSquares) { return std::string("squares"); });
}

namespace {
std::string name(const Task& t) { return fmt::format("{}{}", name_of(t.part), t.piece.value_or(PieceId(0)).value); }
std::string texts(const auto& all) {
  std::vector<std::string> words;
  for (const Binding& b : all) words.push_back(text(b));
  return join(words, " ");
}
}  // namespace

std::string line(const Task& t) {
  std::vector<std::string> ops;
  for (const Node& n : t.body->nodes)
    if (n.op->leaf != Leaf::argument) ops.push_back(std::string(n.op->name));
  return fmt::format("{}: {} -> {} | {}", name(t), texts(t.inputs), texts(t.outputs), join(ops, " "));
}

std::vector<std::string> lines(const Step& s) {
  std::vector<std::string> all;
  for (const Task& t : s.tasks) all.push_back(line(t));
  return all;
}

std::vector<std::string> values(const Step& s) {
  std::vector<std::string> all;
  for (const CrossValue& v : s.values) {
    std::vector<std::string> readers;
    for (auto c : v.consumers) readers.push_back(name(s.tasks[c]));
    all.push_back(fmt::format("{} -> {}", name(s.tasks[v.producer]), join(readers, " ")));
  }
  return all;
}

}  // namespace stretto::test
