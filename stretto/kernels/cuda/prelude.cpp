// What stands at the head of every kernel's text: elements in memory and in registers, sums over a block in one order,
// random words, faults.
#include "stretto/kernels/cuda/text.h"

namespace stretto {

std::string_view cuda_prelude() {
  return R"cuda(
typedef long long i64;
typedef unsigned long long u64;
struct Now { u64 random; i64 step, first_row; int overwrite; unsigned instruction, call; };
struct Fault { int taken; unsigned instruction, call; i64 value, limit; };

// An element of bf16 is stored only: it is computed in float and rounded to the nearest, once.
struct bf16 {
  unsigned short bits;
  bf16() = default;
  __device__ __forceinline__ explicit bf16(float f) {
    const unsigned u = __float_as_uint(f);
    bits = (u & 0x7fffffffu) > 0x7f800000u ? (u >> 16) | 0x40 : (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  }
  __device__ __forceinline__ operator float() const { return __uint_as_float((unsigned)bits << 16); }
};
template <class T> __device__ __forceinline__ T get(const T* p) { return *p; }
__device__ __forceinline__ float get(const bf16* p) { return float(*p); }
template <class T, class V> __device__ __forceinline__ void store(T* p, V v, bool add = false) { *p = T(add ? V(get(p)) + v : v); }

constexpr unsigned whole_warp = 0xffffffffu;
template <class T> __device__ __forceinline__ T larger(T a, T b) { return a > b || a != a ? a : b; }
template <class T> __device__ __forceinline__ T warp_sum(T v) {
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(whole_warp, v, d);
  return v;
}
template <class T> __device__ __forceinline__ T warp_max(T v) {
  for (int d = 16; d > 0; d /= 2) v = larger(v, __shfl_xor_sync(whole_warp, v, d));
  return v;
}
// Over all threads of a block of whole warps; `part` has room for one element per warp.
template <class T> __device__ __forceinline__ T block_sum(T v, T* part) {
  v = warp_sum(v);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  T s = part[0];
  for (unsigned k = 1; k < blockDim.x / 32; ++k) s += part[k];
  __syncthreads();
  return s;
}
template <class T> __device__ __forceinline__ T block_max(T v, T* part) {
  v = warp_max(v);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  T s = part[0];
  for (unsigned k = 1; k < blockDim.x / 32; ++k) s = larger(s, part[k]);
  __syncthreads();
  return s;
}
template <class T> __device__ __forceinline__ T lowest();
template <> __device__ __forceinline__ float lowest<float>() { return -__int_as_float(0x7f800000); }
template <> __device__ __forceinline__ double lowest<double>() { return -__longlong_as_double(0x7ff0000000000000ll); }
template <> __device__ __forceinline__ int lowest<int>() { return -2147483647 - 1; }
template <class T> __device__ __forceinline__ T no_number() { return T(__int_as_float(0x7fc00000)); }

// An id, a label, a position; what is outside of [0, limit) is noted, the first of a step only.
__device__ __forceinline__ bool within(i64 value, i64 limit, const Now& now, Fault* fault) {
  if (value >= 0 && value < limit) return true;
  if (atomicCAS(&fault->taken, 0, 1) == 0) {
    fault->instruction = now.instruction, fault->call = now.call, fault->value = value, fault->limit = limit;
  }
  return false;
}
)cuda";
}

}  // namespace stretto
