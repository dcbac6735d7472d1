// Runs PTX on the CPU, thread by thread: the very code that a driver would get, with what a GPU does not tell. Refused,
// with kernel, thread and line:
//
//   - accesses outside of all memory, of a device that is not reached, outside of shared memory, misaligned ones
//   - a word that two threads write, or one writes and another reads, with no barrier of theirs between
//   - barriers, shuffles and votes that not all threads come to
//   - an address, a number that is stored or a branch that comes from a register nobody has written; compilers do write
//     instructions that read one and do not use what they read
//
//   DeviceMemory memory;
//   memory.add(address, bytes, lies_here);
//   PtxMachine machine(memory);
//   machine.launch(module.kernel("add"), {.grid = 4, .block = 128}, parameters);
//
// Shared memory begins as rubbish. Arithmetic is as exact as can be, where a chip's is approximate.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "support/cuda/ptx.h"

namespace stretto::test {

struct DeviceBlock {
  std::uint64_t address = 0, bytes = 0;
  std::byte* real = nullptr;
  int device = 0;
};
// What kernels may touch: addresses, and where what they stand for lies.
class DeviceMemory {
 public:
  void add(std::uint64_t address, std::uint64_t bytes, std::byte* real, int device = 0);
  void remove(std::uint64_t address);
  const DeviceBlock* find(std::uint64_t address, std::uint64_t bytes) const;  // null: not all of it is there

 private:
  std::map<std::uint64_t, DeviceBlock> blocks_;
};

struct PtxGrid {
  unsigned grid = 1, block = 1;
  std::size_t shared = 0;  // dynamic
};

class PtxMachine {
 public:
  explicit PtxMachine(const DeviceMemory& memory) : memory_(memory) {}
  // `parameters`: one pointer each, as the driver takes them.
  void launch(const PtxKernel&, const PtxGrid&, const void* const* parameters);
  std::uint64_t executed = 0;
  std::uint64_t reaches = ~std::uint64_t(0);  // memory of which devices: a bit for each

 private:
  using I = PtxInstruction;
  enum State : std::uint8_t { running, at_barrier, at_warp, over };
  struct Thread {
    std::size_t pc = 0;
    State state = running;
    PtxBits* registers = nullptr;
    std::uint8_t* written = nullptr;  // per register, a bit per two bytes
  };
  // Who touched two bytes last, and when: epochs grow with every barrier, block and launch, and never begin again.
  struct Touch {
    std::uint32_t writer = 0, written = 0, reader = 0, read = 0, first_read = 0;
  };

  void begin_block(unsigned block);
  void run_block();
  bool run_warp(unsigned first, unsigned last);
  void run_thread(unsigned);
  void leave_barrier();
  static constexpr std::uint8_t all_written = 15;
  PtxBits value(const Thread& t, PtxOperand r) const {
    return r < 0 ? kernel_->constants[std::size_t(-1 - r)] : t.registers[r];
  }
  std::uint8_t written(const Thread& t, PtxOperand r) const { return r < 0 ? all_written : t.written[r]; }
  PtxBits get(const Thread&, const I&, PtxOperand) const;  // of a register that must have been written
  void set(Thread& t, PtxOperand r, PtxBits v, std::uint8_t written = all_written) const {
    t.registers[r] = v, t.written[r] = written;
  }
  void compute(const I&, Thread&) const;
  void pack(const I&, Thread&) const;
  std::byte* at(const I&, unsigned thread, std::uint64_t address, std::size_t bytes, bool writes);
  void touch(const I&, unsigned thread, Touch&, bool writes) const;
  void load(const I&, unsigned thread);
  void store(const I&, unsigned thread);
  void atomic(const I&, unsigned thread);
  void together(const I&, unsigned first, unsigned last);
  void shuffle(const I&, unsigned first, unsigned last);
  void ballot(const I&, unsigned first, unsigned last);
  void mma(const I&, unsigned first);
  [[noreturn]] void fail(const I&, unsigned thread, const std::string& what) const;

  const DeviceMemory& memory_;
  const PtxKernel* kernel_ = nullptr;
  PtxGrid grid_;
  unsigned block_ = 0;
  std::vector<unsigned char> parameters_, shared_;
  std::vector<Touch> shared_touches_;
  std::unordered_map<std::uint64_t, std::vector<Touch>> touches_;  // by the address of a block of memory
  const DeviceBlock* newest_ = nullptr;                            // that was found; most accesses follow each other
  std::vector<Touch>* newest_touches_ = nullptr;
  std::uint32_t epoch_ = 0, first_of_launch_ = 0, first_of_block_ = 0;
  std::vector<Thread> threads_;
  std::vector<PtxBits> registers_;
  std::vector<std::uint8_t> written_;
};

}  // namespace stretto::test
