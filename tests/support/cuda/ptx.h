// PTX as NVRTC writes it, read into instructions. What this reader does not know it refuses with its line: an unknown
// instruction is an error here and no surprise on a device.
//
//   const PtxModule module(text);
//   module.kernel("add").code[3].line
//
// Local memory and functions that are called are refused too: no kernel of ours needs them, and both are slow.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace stretto::test {

using PtxBits = std::uint64_t;                        // of a register; of a narrow one the others are zero
using PtxValue = PtxBits (*)(const PtxBits* inputs);  // what an instruction computes that looks at registers only
PtxValue ptx_value(const std::string& name);          // "add.rn.f32"; null: there is none
std::vector<std::string> ptx_value_names();

enum class PtxSpace : std::uint8_t { global, shared, parameter };

// A register where it is not below zero, else a constant: -1 - its place.
using PtxOperand = std::int32_t;

struct PtxInstruction {
  enum Does : std::uint8_t { compute, pack, unpack, load, store, atomic, branch, barrier, shuffle, ballot, mma, leave };
  Does does = compute;
  PtxSpace space = PtxSpace::global;
  std::uint8_t bytes = 4;  // of an element that is loaded, stored, packed
  bool extend = false;     // a load of a signed type
  char how = 0;            // shuffle: b, i, u, d
  bool guard_not = false;
  std::uint8_t reads_of_second = 15;  // compute: a bit per two bytes of the second operand that count
  PtxOperand guard = -1;              // below zero: none
  std::int32_t target = 0;            // of a branch
  std::int32_t line = 0;
  std::int64_t offset = 0;   // of an address
  PtxValue value = nullptr;  // compute; atomic: of what is there and the operands
  std::vector<PtxOperand> out, in;
};

// Registers that have their values from the start come first.
enum PtxSpecial : PtxOperand {
  tid_x,
  tid_y,
  tid_z,
  ntid_x,
  ntid_y,
  ntid_z,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  laneid,
  special_registers
};

struct PtxParameter {
  std::uint32_t at = 0, bytes = 0;
};

struct PtxKernel {
  std::string name;
  std::vector<PtxInstruction> code;
  std::vector<PtxParameter> parameters;
  std::vector<PtxBits> constants;
  std::vector<std::string> registers;  // their names
  std::uint32_t shared = 0;            // bytes
  std::uint32_t parameter_bytes() const {
    return parameters.empty() ? 0 : parameters.back().at + parameters.back().bytes;
  }
};

class PtxModule {
 public:
  explicit PtxModule(std::string_view text);  // std::runtime_error with the line
  const PtxKernel& kernel(const std::string& name) const;

 private:
  std::map<std::string, PtxKernel> kernels_;
};

}  // namespace stretto::test
