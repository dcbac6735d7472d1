// A model of one's own: a small transformer with a memory, written with named dimensions, trained on any text. The
// layout splits the memory's slots, a dim that only this model has, as it splits heads and the feed-forward width.
//
//   custom_model [text file] [steps] [ranks]
#include <fmt/format.h>

#include <cstdlib>

#include "stretto/data/sequences.h"
#include "stretto/stretto.h"

using namespace stretto;

constexpr i64 batch_rows = 8, sequence_length = 64;  // sequences per step, tokens per sequence

const Dim model{"model", 64}, heads{"heads", 4}, head{"head", 16}, ff{"ff", 256}, vocab{"vocab", 256},
    slots{"slots", 128};

// Keys and values carry their own name for the sequence, so that a query meets all of them.
Tensor attend(Trace& t, Tensor x, const Dim& seq) {
  const Dim keys = seq.whole("keys");
  const auto project = [&](const char* name) { return contract(x, t.param(name, {model, heads, head}), model); };
  const Tensor q = project("q"), k = rename(project("k"), seq, keys), v = rename(project("v"), seq, keys);
  const Tensor mixed = attention(q, k, v, {.query = seq, .key = keys, .head = head});
  return contract(mixed, t.param("out", {heads, head, model}), {heads, head});
}

Tensor feed_forward(Trace& t, Tensor x) {
  const Tensor gate = silu(contract(x, t.param("gate", {model, ff}), model));
  return contract(gate * contract(x, t.param("up", {model, ff}), model), t.param("down", {ff, model}), ff);
}

// Learned rows that every token looks up. Split over ranks, each holds some slots: the softmax then sends a maximum and
// a sum per token, the product with the values one sum.
Tensor recall(Trace& t, Tensor x) {
  const Tensor weights = softmax(contract(x, t.param("keys", {model, slots}), model), slots);
  return contract(weights, t.param("values", {slots, model}), slots);
}

Loss my_model(Trace& t) {
  const Dim batch = t.batch("batch", batch_rows), seq = t.size("seq", sequence_length);
  const Tensor table = t.param("table", {vocab, model});
  Tensor x = embedding(table, t.ids("ids", {batch, seq}), vocab) + t.param("positions", {seq, model});
  for (int i = 0; i < 2; ++i) {
    const Scope layer(t, "layer", i);  // names are layer.0.q, layer.1.q, ...
    x = boundary(x + attend(t, rms_norm(x, t.gain("gain_1", model), model), seq));
    const Tensor normed = rms_norm(x, t.gain("gain_2", model), model);
    x = boundary(x + feed_forward(t, normed) + recall(t, normed));
  }
  x = rms_norm(x, t.gain("gain", model), model);
  return cross_entropy(contract(x, table, model), t.ids("targets", {batch, seq}),
                       vocab);  // the table, used again: tied
}

int main(int argc, char** argv) try {
  const std::string file = argc > 1 ? argv[1] : "examples/data/tales.txt";
  const i64 steps = argc > 2 ? std::atoi(argv[2]) : 200;
  const int ranks = argc > 3 ? std::atoi(argv[3]) : 2;
  const TrainingRows training(open_corpus({.path = {file}}, sequence_length),
                              {.length = sequence_length, .batch = batch_rows});
  const Parallel parallel{
      .mesh = {{"wide", ranks}},
      .layout = {{"slots", "wide"}, {"heads", "wide"}, {"ff", "wide"}, {"vocab", "wide"}},
  };
  Trainer trainer(compile(my_model, adamw({.lr = 3e-3}), {.microbatches = 2, .clip = 1.0}, parallel));
  for (i64 step = 1; step <= steps; ++step) {
    const Rows rows = training.at(step);
    const StepResult r =
        trainer.step({{"ids", Array::of<std::int32_t>(rows.ids, {batch_rows, sequence_length})},
                      {"targets", Array::of<std::int32_t>(rows.targets, {batch_rows, sequence_length})}});
    if (step == 1 || step % 50 == 0) fmt::print("{}\n", r.str());
  }
  return 0;
} catch (const Error& e) {
  fmt::print(stderr, "{}\n", e.what());
  return e.exit_code();
}
