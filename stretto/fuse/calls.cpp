#include "stretto/fuse/calls.h"

#include <utility>

namespace stretto {
namespace {

// Bytes from the start of its buffer to the end of the last element.
i64 reach_of(const Ref& r) {
  i64 elements = 1;
  for (std::size_t d = 0; d < r.view.dims.size(); ++d) elements += (r.view.sizes[d] - 1) * r.view.strides[d];
  return r.start + elements * i64(size_of(r.view.dtype));
}

class CallChecker {
 public:
  explicit CallChecker(const Calls& c) : c_(c), written_(c.buffers.size(), false) {
    for (BufferId b : c.buffers.ids()) written_[b] = c.buffers[b].argument() != nullptr;
  }
  std::vector<Fault> run() {
    for (const KernelCall& k : c_.calls) check(k);
    return std::move(faults_);
  }

 private:
  void check(const KernelCall& k) {
    const Node& n = c_.graph.node(k.node);
    for (std::size_t i = 0; i < k.in.size(); ++i) {
      if (const Ref& in = k.in[i]; !in.buffer || !written_[*in.buffer])
        refuse(n, fmt::format("operand {} is read before it is written", i));
      else
        inside(n, in, c_.graph.type(n.operands[i]), "an operand");
    }
    for (std::size_t r = 0; r < k.out.size(); ++r) {
      const Ref& out = k.out[r];
      if (!out.buffer) continue;
      for (const Ref& in : k.in)
        if (!n.op->into && in.buffer == out.buffer && fills(out) && !same_elements(in, out))
          refuse(n, "a result is written over elements of an operand that are read later");
      inside(n, out, n.results[r], "a result");
      written_[*out.buffer] = true;
    }
  }
  void inside(const Node& n, const Ref& r, const Type& t, std::string_view role) {
    if (r.start < 0 || std::cmp_greater(reach_of(r), c_.buffers[*r.buffer].bytes))
      refuse(n, fmt::format("{} reaches beyond its buffer", role));
    if (r.view.dims != t.dims) refuse(n, fmt::format("{} has other dims than its view", role));
  }
  bool fills(const Ref& r) const {
    return r.start == 0 && r.view.elements() * size_of(r.view.dtype) == c_.buffers[*r.buffer].bytes;
  }
  void refuse(const Node& n, std::string what) {
    faults_.push_back({.where = fmt::format("fuse {}", n.op->name), .what = std::move(what)});
  }

  const Calls& c_;
  IdVector<BufferId, bool> written_;
  std::vector<Fault> faults_;
};

std::string str_of(const Calls& c, const std::vector<Ref>& refs) {
  constexpr char letters[] = {'t', 'a', 'r'};  // as the alternatives of BodyBuffer::role
  std::string s;
  for (const Ref& r : refs) {
    if (!s.empty()) s += ", ";
    if (!r.buffer)
      s += "-";
    else
      s += fmt::format("{}{}{}", letters[c.buffers[*r.buffer].role.index()], r.buffer->value,
                       r.start ? fmt::format("+{}", r.start) : "");
  }
  return s;
}

}  // namespace

bool same_elements(const Ref& from, const Ref& to) {
  if (from.start != to.start) return false;
  for (std::size_t d = 0; d < to.view.dims.size(); ++d)
    if (to.view.sizes[d] > 1 && from.view.stride(to.view.dims[d]) != to.view.strides[d]) return false;
  return true;
}

std::vector<Fault> verify(const Calls& c) { return CallChecker(c).run(); }

std::string Calls::str() const {
  std::string s;
  for (const KernelCall& c : calls) {
    const Node& n = graph.node(c.node);
    const std::string attrs = n.attrs.str(graph);
    s += fmt::format("  {} = {}({}){}{}{}\n", str_of(*this, c.out), n.op->name, str_of(*this, c.in),
                     attrs.empty() ? "" : " ", attrs, c.accumulate ? " accumulate" : "");
  }
  return s;
}

}  // namespace stretto
