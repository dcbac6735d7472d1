// What the software of a run does that costs depend on and that is no part of a program: facts of a stack, as a TOML
// file has them (stacks/*.toml). The default, `stretto`, says nothing: everything goes as the program has it.
//
//   Stack s = read_stack("megatron-2021");
//   if (s.hidden.sums) ...    // a share: the stack's; none: as the program has it
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace stretto {

struct Stack {
  std::string name = "stretto";
  // Attention. Kept: it holds all scores; bytes moved per score forward and backward, and kept until backward.
  bool kept = false;
  double scores_forward = 9, scores_backward = 11, scores_kept = 5;
  std::string kernel = {};  // else: which of the device's [attention] it is; none: the device's own
  // Parts of collectives and messages that take no time of their own, as a share; none: as the program has it.
  struct Hidden {
    std::optional<double> tensor, exchanges, sums, messages, gathers;
    bool operator==(const Hidden&) const = default;
  } hidden = {};
  double beside = 0;             // what goes on beside kernels slows them down by this share of its own time
  bool one_wire = false;         // gathers and sums over the same ranks wait for each other
  bool cut_messages = false;     // of a value that ranks of an actor hold alike each sends a part, gathered on arrival
  bool cut_exchanges = false;    // likewise of rows for experts that tensor ranks hold alike
  double gradient_bytes = 0;     // of a number of a gradient, in memory and on the wire; 0: as the program has it
  bool whole_layers = false;     // full recompute makes all of a layer again; else what backward reads
  bool joined_backward = false;  // a B gives its gradients to the stage before when all of it is done
  bool free_update = false;      // schedules with W: an actor updates without waiting for the others
  // Parameters that are cut stay gathered through a step with a pipeline, and gradients are scattered once in it.
  bool keeps_gathered = false;
  bool joined_products = false;   // products of one operand (queries, keys, values; a gated MLP's two) are one
  bool narrow_gathers = false;    // where products are made in fewer bits, what is gathered for them is of 8
  bool balanced_context = false;  // ranks of a context axis have early and late positions: each sees as many keys
  // What selective recompute makes again: what the program does; attention; every other product and all that is cheap.
  enum class Selective : std::uint8_t { program, attention, products } selective = Selective::program;
  double masks = 0;  // bytes kept per element that a half layer adds (dropout)
  // Memory where it is other than the program's.
  struct Memory {
    bool copies = true;  // parameters of 16 bits are kept beside those that are updated; else made where they are used
    bool context = false;  // parameters, gradients and states are cut by ranks of the context axis too
    double logits = 0;     // bytes that the loss holds per logit, beside the logits and their gradient
    double reserved = 1;   // what the allocator takes, in parts of what is used
    bool operator==(const Memory&) const = default;
  } memory = {};
  double passes = 1;  // bytes of passes over elements, in parts of the program's
  double update = 1;  // bytes of norms, clipping and update, in parts of the program's
  // Bytes that a loss moves per logit, in passes of its own, forward and backward; 0: the program's.
  double logits = 0;
  double floor = 0;                            // seconds: no layer's phase is shorter, whatever its kernels take
  double step = 0;                             // seconds per step beside
  double growth = 0;                           // how much longer a step gets with every doubling of the nodes
  double reserve = 0;                          // bytes of memory that are not for the run
  double factor = 1;                           // of all of it: fitted to runs
  std::map<std::string, double> factors = {};  // likewise, by device
  bool operator==(const Stack&) const = default;
};

// A name of stacks/, or a file. What is wrong in it is refused with file, line and key.
Stack read_stack(const std::string& name_or_file);

}  // namespace stretto
