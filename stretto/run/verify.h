// Trains the same steps serially and as a run says, and compares every loss, gradient and parameter. Where sums are
// taken in another order, only losses and the first step's gradients can be held to a tolerance: optimizers make much
// of little, and an element whose gradient is nothing but rounding moves as far as any other.
//
//   Verification v = verify(read_run("run.toml"), {.steps = 3});
//   fmt::print("{}", v.str());
//   if (v.first) fmt::print("{}\n", v.first->str());
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "stretto/config/run.h"
#include "stretto/train/trainer.h"

namespace stretto {

struct VerifyOptions {
  i64 steps = 3;
  // The largest |a-b| that is allowed, as a share of the tensor's largest element. None: bit-equal when actors are one
  // rank each and the schedule adds gradients in ascending order, else 1e-5, or 1e-10 in f64 and 0.05 in bf16.
  std::optional<double> tolerance = {};
  // To try out whether a mistake is found: called after each step of the run that is verified, before it is compared.
  std::function<void(Trainer&, i64 step)> plant = {};
};

// One tensor that differs, or the loss.
struct Difference {
  i64 step = 0;
  std::string kind, name;    // "gradient", "h.0/attn/qkv"; "loss", ""
  std::vector<i64> element;  // the first that differs by more than is allowed
  i64 wrong = 0, elements = 0;
  double serial = 0, parallel = 0;  // of that element
  double worst = 0;                 // of all, as a share of the tensor's largest
  std::string str() const;          // "step 2: gradient of 'wte' differs first at [3, 17]: ..."
};

// The worst of one kind in one step.
struct Worst {
  std::string name;
  double difference = 0;
};
struct VerifiedStep {
  i64 step = 0;
  double serial_loss = 0, loss = 0;
  Worst gradient, parameter;
  int wrong = 0;  // losses and tensors that had to agree
};

struct Verification {
  double tolerance = 0;  // 0: every bit
  std::string schedule;
  i64 tensors = 0;
  std::vector<VerifiedStep> steps;
  std::optional<Difference> first;  // none: all is well
  std::string str() const;          // a table, and what was compared
};

// Goes on to the last step after a difference, so that the table shows what becomes of it.
Verification verify(const RunConfig&, const VerifyOptions& = {});

}  // namespace stretto
