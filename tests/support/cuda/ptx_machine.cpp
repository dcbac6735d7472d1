#include "support/cuda/ptx_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <stdexcept>

namespace stretto::test {
namespace {

constexpr std::uint32_t several = 0xffffffff;  // readers
constexpr std::size_t grain = 2;               // bytes that are watched together

}  // namespace

void DeviceMemory::add(std::uint64_t address, std::uint64_t bytes, std::byte* real, int device) {
  blocks_[address] = {address, bytes, real, device};
}
void DeviceMemory::remove(std::uint64_t address) { blocks_.erase(address); }
const DeviceBlock* DeviceMemory::find(std::uint64_t address, std::uint64_t bytes) const {
  auto it = blocks_.upper_bound(address);
  if (it == blocks_.begin()) return nullptr;
  const DeviceBlock& b = (--it)->second;
  return address - b.address <= b.bytes && bytes <= b.bytes - (address - b.address) ? &b : nullptr;
}

void PtxMachine::fail(const I& i, unsigned thread, const std::string& what) const {
  throw std::runtime_error(
      fmt::format("{}, block {}, thread {}, PTX line {}: {}", kernel_->name, block_, thread, i.line, what));
}

void PtxMachine::launch(const PtxKernel& k, const PtxGrid& grid, const void* const* parameters) {
  kernel_ = &k, grid_ = grid, newest_ = nullptr;
  parameters_.assign(k.parameter_bytes(), 0);
  for (std::size_t i = 0; i < k.parameters.size(); ++i)
    std::memcpy(&parameters_[k.parameters[i].at], parameters[i], k.parameters[i].bytes);
  threads_.assign(grid.block, {});
  registers_.resize(grid.block * k.registers.size()), written_.resize(registers_.size());
  for (unsigned t = 0; t < grid.block; ++t) {
    threads_[t].registers = &registers_[t * k.registers.size()];
    threads_[t].written = &written_[t * k.registers.size()];
  }
  first_of_launch_ = epoch_ + 1;
  for (unsigned b = 0; b < grid.grid; ++b) begin_block(b), run_block();
}

void PtxMachine::begin_block(unsigned block) {
  block_ = block, first_of_block_ = ++epoch_;
  shared_.assign(kernel_->shared + grid_.shared, 0x7f);
  shared_touches_.assign(shared_.size() / grain + 1, {});
  std::fill(written_.begin(), written_.end(), 0);
  for (unsigned t = 0; t < grid_.block; ++t) {
    Thread& thread = threads_[t];
    thread.pc = 0, thread.state = running;
    const std::array<PtxBits, special_registers> values{t, 0, 0,          grid_.block, 1, 1,     block,
                                                        0, 0, grid_.grid, 1,           1, t % 32};
    std::copy(values.begin(), values.end(), thread.registers);
    std::fill_n(thread.written, special_registers, all_written);
  }
}

void PtxMachine::run_block() {
  while (true) {
    for (unsigned first = 0; first < grid_.block; first += 32)
      while (run_warp(first, std::min(grid_.block, first + 32))) {
      }
    if (std::all_of(threads_.begin(), threads_.end(), [](const Thread& t) { return t.state == over; })) return;
    leave_barrier();
  }
}

// True: its threads were together and go on.
bool PtxMachine::run_warp(unsigned first, unsigned last) {
  std::optional<unsigned> one;
  for (unsigned t = first; t < last; ++t) {
    if (threads_[t].state == running) run_thread(t);
    if (threads_[t].state == at_warp && !one) one = t;
  }
  if (!one) return false;
  const I& i = kernel_->code[threads_[*one].pc];
  for (unsigned t = first; t < last; ++t)
    if (threads_[t].state != at_warp || threads_[t].pc != threads_[*one].pc)
      fail(i, t, fmt::format("not all threads of the warp come here together; thread {} does", *one));
  together(i, first, last);
  for (unsigned t = first; t < last; ++t) ++threads_[t].pc, threads_[t].state = running;
  return true;
}

void PtxMachine::leave_barrier() {
  const auto waits =
      std::find_if(threads_.begin(), threads_.end(), [](const Thread& t) { return t.state == at_barrier; });
  for (const Thread& t : threads_)
    if (t.state != at_barrier || t.pc != waits->pc)
      fail(kernel_->code[waits->pc], unsigned(&t - threads_.data()), "a barrier that not all threads come to");
  ++epoch_;
  for (Thread& t : threads_) ++t.pc, t.state = running;
}

PtxBits PtxMachine::get(const Thread& t, const I& i, PtxOperand r) const {
  if (written(t, r) != all_written) [[unlikely]]
    fail(i, unsigned(&t - threads_.data()),
         fmt::format("register {} comes from one that nobody has written", kernel_->registers[std::size_t(r)]));
  return value(t, r);
}

void PtxMachine::compute(const I& i, Thread& t) const {
  std::array<PtxBits, 4> x;
  bool known = true;
  for (std::size_t k = 0; k < i.in.size(); ++k) {
    x[k] = value(t, i.in[k]);
    const std::uint8_t needed = k == 1 ? i.reads_of_second : all_written;
    known = known && (written(t, i.in[k]) & needed) == needed;
  }
  set(t, i.out[0], i.value(x.data()), known ? all_written : 0);
}

void PtxMachine::pack(const I& i, Thread& t) const {
  PtxBits v = 0;
  std::uint8_t known = all_written;
  for (std::size_t k = i.in.size(); k-- > 0;) {
    v = v << (8 * i.bytes) | value(t, i.in[k]);
    const std::uint8_t halves = std::uint8_t((1 << std::max(1, i.bytes / 2)) - 1);
    if (written(t, i.in[k]) != all_written) known &= std::uint8_t(~(halves << (k * i.bytes / 2)));
  }
  set(t, i.out[0], v, known);
}

void PtxMachine::run_thread(unsigned number) {
  Thread& t = threads_[number];
  for (const std::vector<I>& code = kernel_->code; t.pc < code.size(); ++t.pc) {
    const I& i = code[t.pc];
    ++executed;
    if (i.guard >= 0 && bool(get(t, i, i.guard) & 1) == i.guard_not) continue;
    switch (i.does) {
      case I::compute:
        compute(i, t);
        break;
      case I::pack:
        pack(i, t);
        break;
      case I::unpack: {
        const PtxBits v = get(t, i, i.in[0]), mask = (PtxBits(1) << (8 * i.bytes)) - 1;
        for (std::size_t k = 0; k < i.out.size(); ++k) set(t, i.out[k], v >> (8 * i.bytes * k) & mask);
        break;
      }
      case I::load:
        load(i, number);
        break;
      case I::store:
        store(i, number);
        break;
      case I::atomic:
        atomic(i, number);
        break;
      case I::branch:
        t.pc = std::size_t(i.target) - 1;
        break;
      case I::barrier:
        t.state = at_barrier;
        return;
      case I::shuffle:
      case I::ballot:
      case I::mma:
        t.state = at_warp;
        return;
      case I::leave:
        t.state = over;
        return;
    }
  }
  t.state = over;
}

// Blocks run one after the other: what is older than a block's first epoch, and of this launch, another block did.
void PtxMachine::touch(const I& i, unsigned thread, Touch& t, bool writes) const {
  const auto other_block = [&](std::uint32_t when) { return when >= first_of_launch_ && when < first_of_block_; };
  if (other_block(t.written) || (t.written == epoch_ && t.writer != thread))
    fail(i, thread,
         fmt::format("a race: it {} what thread {} of {} block writes", writes ? "writes" : "reads", t.writer,
                     other_block(t.written) ? "another" : "this"));
  if (writes && ((t.read >= first_of_launch_ && other_block(t.first_read)) || (t.read == epoch_ && t.reader != thread)))
    fail(i, thread, "a race: it writes what another thread reads");
  if (writes) {
    t.writer = thread, t.written = epoch_;
  } else {
    if (t.read < first_of_launch_) t.first_read = epoch_;
    t.reader = t.read == epoch_ && t.reader != thread ? several : thread;
    t.read = epoch_;
  }
}

std::byte* PtxMachine::at(const I& i, unsigned thread, std::uint64_t address, std::size_t bytes, bool writes) {
  if (address % bytes) fail(i, thread, fmt::format("a misaligned access of {} bytes", bytes));
  std::vector<Touch>* touches = &shared_touches_;
  std::byte* real = reinterpret_cast<std::byte*>(shared_.data());
  std::uint64_t from = address;
  if (i.space == PtxSpace::shared) {
    if (address + bytes > shared_.size()) fail(i, thread, "an access outside of shared memory");
  } else {
    if (!newest_ || address < newest_->address || address + bytes > newest_->address + newest_->bytes) {
      newest_ = memory_.find(address, bytes);
      if (!newest_) fail(i, thread, fmt::format("it {} outside of all memory", writes ? "writes" : "reads"));
      if (!(reaches >> newest_->device & 1))
        fail(i, thread, fmt::format("it {} memory of device {}", writes ? "writes" : "reads", newest_->device));
      newest_touches_ = &touches_[newest_->address];
      newest_touches_->resize(newest_->bytes / grain + 1);
    }
    real = newest_->real, from = address - newest_->address, touches = newest_touches_;
  }
  if (i.does != I::atomic)
    for (std::uint64_t k = from / grain; k <= (from + bytes - 1) / grain; ++k) touch(i, thread, (*touches)[k], writes);
  return real + from;
}

void PtxMachine::load(const I& i, unsigned thread) {
  Thread& t = threads_[thread];
  const std::uint64_t address = get(t, i, i.in[0]) + std::uint64_t(i.offset);
  const std::byte* p = i.space == PtxSpace::parameter ? reinterpret_cast<const std::byte*>(parameters_.data()) + address
                                                      : at(i, thread, address, i.bytes * i.out.size(), false);
  for (const PtxOperand out : i.out) {
    PtxBits v = 0;
    std::memcpy(&v, p, i.bytes);
    if (i.extend && i.bytes == 1) v = std::uint32_t(std::int8_t(v));
    if (i.extend && i.bytes == 2) v = std::uint32_t(std::int16_t(v));
    set(t, out, v);
    p += i.bytes;
  }
}

void PtxMachine::store(const I& i, unsigned thread) {
  const Thread& t = threads_[thread];
  std::byte* p = at(i, thread, get(t, i, i.in[0]) + std::uint64_t(i.offset), i.bytes * (i.in.size() - 1), true);
  for (std::size_t k = 1; k < i.in.size(); ++k, p += i.bytes) {
    const PtxBits v = get(t, i, i.in[k]);
    std::memcpy(p, &v, i.bytes);
  }
}

void PtxMachine::atomic(const I& i, unsigned thread) {
  Thread& t = threads_[thread];
  std::byte* p = at(i, thread, get(t, i, i.in[0]) + std::uint64_t(i.offset), i.bytes, true);
  std::array<PtxBits, 4> x{};
  std::memcpy(x.data(), p, i.bytes);
  for (std::size_t k = 1; k < i.in.size(); ++k) x[k] = get(t, i, i.in[k]);
  const PtxBits v = i.value(x.data());
  std::memcpy(p, &v, i.bytes);
  set(t, i.out[0], x[0]);
}

void PtxMachine::together(const I& i, unsigned first, unsigned last) {
  if (i.does == I::mma) {
    if (last - first < 32) fail(i, first, "a product of matrices by less than a warp");
    return mma(i, first);
  }
  const PtxBits all = last - first == 32 ? 0xffffffff : (PtxBits(1) << (last - first)) - 1;
  for (unsigned t = first; t < last; ++t)
    if ((get(threads_[t], i, i.in.back()) & all) != all) fail(i, t, "a mask that leaves out threads that come here");
  i.does == I::shuffle ? shuffle(i, first, last) : ballot(i, first, last);
}

void PtxMachine::shuffle(const I& i, unsigned first, unsigned last) {
  std::array<PtxBits, 32> old{};
  for (unsigned t = first; t < last; ++t) old[t - first] = get(threads_[t], i, i.in[0]);
  for (unsigned t = first; t < last; ++t) {
    const unsigned lane = t - first, by = unsigned(get(threads_[t], i, i.in[1]));
    const unsigned clamp = unsigned(get(threads_[t], i, i.in[2])) & 31;
    const unsigned from = i.how == 'b' ? lane ^ by : i.how == 'i' ? by & 31 : i.how == 'u' ? lane - by : lane + by;
    const bool there = i.how == 'u' ? from <= lane && from >= clamp : from <= clamp;
    if (there && first + from >= last) fail(i, t, "a shuffle from a thread that is not there");
    set(threads_[t], i.out[0], old[there ? from : lane]);
    if (i.out.size() > 1) set(threads_[t], i.out[1], there);
  }
}

void PtxMachine::ballot(const I& i, unsigned first, unsigned last) {
  PtxBits votes = 0;
  for (unsigned t = first; t < last; ++t) votes |= (get(threads_[t], i, i.in[0]) & 1) << (t - first);
  for (unsigned t = first; t < last; ++t) set(threads_[t], i.out[0], votes);
}

// m16n8k16: 16 x 16 by 16 x 8, bf16 operands two to a register, sums in f32 in ascending order.
void PtxMachine::mma(const I& i, unsigned first) {
  float a[16][16], b[16][8], c[16][8];
  const auto half = [](PtxBits v, int h) { return std::bit_cast<float>(std::uint32_t(v >> (16 * h) & 0xffff) << 16); };
  for (unsigned lane = 0; lane < 32; ++lane) {
    const Thread& t = threads_[first + lane];
    const unsigned g = lane / 4, q = lane % 4;
    for (unsigned r = 0; r < 4; ++r) {
      for (unsigned h = 0; h < 2; ++h) a[g + 8 * (r & 1)][2 * q + 8 * (r / 2) + h] = half(get(t, i, i.in[r]), int(h));
      c[g + 8 * (r / 2)][2 * q + r % 2] = std::bit_cast<float>(std::uint32_t(get(t, i, i.in[6 + r])));
    }
    for (unsigned r = 0; r < 2; ++r)
      for (unsigned h = 0; h < 2; ++h) b[2 * q + 8 * r + h][g] = half(get(t, i, i.in[4 + r]), int(h));
  }
  for (auto& row : c)
    for (unsigned n = 0; n < 8; ++n)
      for (unsigned k = 0; k < 16; ++k) row[n] += a[&row - c][k] * b[k][n];
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned r = 0; r < 4; ++r)
      set(threads_[first + lane], i.out[r],
          std::bit_cast<std::uint32_t>(c[lane / 4 + 8 * (r / 2)][2 * (lane % 4) + r % 2]));
}

}  // namespace stretto::test
