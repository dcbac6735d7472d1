#include "support/cuda/ptx.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <stdexcept>

namespace stretto::test {
namespace {

using Words = std::vector<std::string>;

[[noreturn]] void fail(int line, const std::string& what) {
  throw std::runtime_error(fmt::format("PTX line {}: {}", line, what));
}

Words split(std::string_view text, std::string_view at) {
  Words all;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t begin = text.find_first_not_of(at, i);
    if (begin == text.npos) break;
    const std::size_t end = std::min(text.find_first_of(at, begin), text.size());
    all.emplace_back(text.substr(begin, end - begin));
    i = end;
  }
  return all;
}

std::uint8_t bytes_of_type(std::string_view type, int line) {
  const std::string_view size = type.substr(type.find_first_of("0123456789"));
  if (size == "8") return 1;
  if (size == "16") return 2;
  if (size == "32") return 4;
  if (size == "64") return 8;
  fail(line, fmt::format("no type {}", type));
}

// A list of operands: each a word, or several in braces.
std::vector<Words> operands_of(std::string_view text) {
  std::vector<Words> all;
  std::string word;
  bool inside = false;
  const auto flush = [&] {
    if (word.empty()) return;
    inside ? all.back().push_back(word) : all.push_back({word});
    word.clear();
  };
  for (const char c : text) {
    if (c == '{')
      all.emplace_back(), inside = true;
    else if (c == '}')
      flush(), inside = false;
    else if (c == ',')
      flush();
    else if (c != ' ' && c != '\t')
      word += c;
  }
  flush();
  return all;
}

class Reader {
 public:
  explicit Reader(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      line_of(text.substr(at, end - at));
      at = end + 1;
    }
    if (kernel_) fail(line_, "a kernel that does not end");
  }
  std::map<std::string, PtxKernel> kernels;

 private:
  void line_of(std::string_view text) {
    ++line_;
    text = text.substr(0, text.find("//"));
    const std::size_t first = text.find_first_not_of(" \t\r");
    if (first == text.npos) return;
    text = text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
    if (text.starts_with(".visible .entry")) return begin(text);
    if (text.starts_with(".func")) fail(line_, "functions that are called are not for kernels of ours");
    if (text.starts_with(".global")) return;  // constants that nobody reads; who does finds no name
    if (text.starts_with(".extern .shared")) return dynamic_shared(text);
    if (!kernel_) return;  // .version, .target, .address_size
    if (text == "{") return void(++depth_);
    if (text == "}") return --depth_ == 0 ? end() : void();
    if (depth_ == 0) return parameter(text);
    for (const std::string& statement : split(text, ";")) this->statement(statement);
  }
  void begin(std::string_view text) {
    const std::string name = split(text.substr(text.find(".entry") + 6), " (\t")[0];
    kernel_ = &kernels[name];
    kernel_->name = name;
    registers_.clear(), labels_.clear(), parameters_.clear(), jumps_.clear();
    static const Words special{"%tid.x",   "%tid.y",   "%tid.z",    "%ntid.x",   "%ntid.y",   "%ntid.z", "%ctaid.x",
                               "%ctaid.y", "%ctaid.z", "%nctaid.x", "%nctaid.y", "%nctaid.z", "%laneid"};
    for (const std::string& s : special) reg(s);
  }
  void end() {
    for (const auto& [at, label] : jumps_) {
      if (!labels_.contains(label)) fail(kernel_->code[at].line, "no label " + label);
      kernel_->code[at].target = labels_[label];
    }
    symbols_ = dynamic_;
    kernel_ = nullptr;
  }
  // .param .u64 name_param_0,   or   .param .align 8 .b8 name_param_3[40]
  void parameter(std::string_view text) {
    if (text == ")" || text == "(" || text.starts_with(".max") || text.starts_with(".min")) return;
    const Words words = split(text, " \t,[]");
    std::uint32_t alignment = 0, count = 1;
    std::size_t i = 1;
    if (words.at(i) == ".align") alignment = std::uint32_t(std::stoul(words.at(2))), i = 3;
    const std::uint32_t bytes = bytes_of_type(words.at(i), line_);
    if (words.size() > i + 2) count = std::uint32_t(std::stoul(words[i + 2]));
    alignment = std::max(alignment, bytes);
    const std::uint32_t at = (kernel_->parameter_bytes() + alignment - 1) / alignment * alignment;
    kernel_->parameters.push_back({at, bytes * count});
    parameters_[words.at(i + 1)] = at;
  }
  // .extern .shared .align 16 .b8 name[];  begins where what is not dynamic ends: always at 0 here
  void dynamic_shared(std::string_view text) { dynamic_[split(text, " \t[];").back()] = 0, symbols_ = dynamic_; }
  // .shared .align 4 .b8 name[128]
  void shared(std::string_view text) {
    const Words words = split(text, " \t[]");
    if (!dynamic_.empty()) fail(line_, "shared memory of both kinds");
    const auto alignment = std::uint32_t(std::stoul(words.at(2)));
    kernel_->shared = (kernel_->shared + alignment - 1) / alignment * alignment;
    symbols_[words.at(4)] = kernel_->shared;
    kernel_->shared += std::uint32_t(std::stoul(words.at(5))) * bytes_of_type(words.at(3), line_);
  }
  void statement(std::string_view text) {
    const std::size_t first = text.find_first_not_of(" \t{}");
    if (first == text.npos) return;
    if (text.find('{') < first) ++depth_;
    text = text.substr(first);
    if (text.back() == ':')
      return void(labels_[std::string(text.substr(0, text.size() - 1))] = std::int32_t(kernel_->code.size()));
    if (text.starts_with(".shared")) return shared(text);
    if (text.starts_with(".local"))
      fail(line_, "local memory: an array whose indices are not known when it is compiled");
    if (text.starts_with('.')) return;  // .reg, .loc, .pragma
    PtxInstruction i{.line = line_};
    if (text[0] == '@') {
      const std::size_t end = text.find_first_of(" \t");
      i.guard_not = text[1] == '!';
      i.guard = reg(std::string(text.substr(i.guard_not ? 2 : 1, end - (i.guard_not ? 2 : 1))));
      text = text.substr(text.find_first_not_of(" \t", end));
    }
    const std::size_t end = std::min(text.find_first_of(" \t"), text.size());
    instruction(std::move(i), std::string(text.substr(0, end)), operands_of(text.substr(end)));
  }

  PtxOperand reg(const std::string& name) {
    const auto [it, fresh] = registers_.try_emplace(name, PtxOperand(kernel_->registers.size()));
    if (fresh) kernel_->registers.push_back(name);
    return it->second;
  }
  PtxOperand constant(PtxBits v) {
    kernel_->constants.push_back(v);
    return -PtxOperand(kernel_->constants.size());
  }
  PtxOperand input(const std::string& s) {
    if (const auto it = symbols_.find(s); it != symbols_.end()) return constant(it->second);
    if (s[0] == '%') return reg(s);
    if (s.starts_with("0f") || s.starts_with("0d")) return constant(std::stoull(s.substr(2), nullptr, 16));
    if (s[0] != '-' && !std::isdigit(static_cast<unsigned char>(s[0]))) fail(line_, "no operand " + s);
    return constant(s[0] == '-' ? PtxBits(std::stoll(s)) : std::stoull(s, nullptr, 0));
  }
  void inputs(PtxInstruction& i, const Words& words) {
    for (const std::string& w : words) i.in.push_back(input(w));
  }
  void outputs(PtxInstruction& i, const Words& words) {
    for (const std::string& w : words) i.out.push_back(reg(w));
  }
  void address(PtxInstruction& i, const std::string& word) {
    std::string at = word.substr(1, word.size() - 2);
    if (const std::size_t plus = at.find('+'); plus != at.npos)
      i.offset = std::stoll(at.substr(plus + 1)), at.resize(plus);
    if (const auto p = parameters_.find(at); p != parameters_.end() && i.space == PtxSpace::parameter)
      return void(i.in.push_back(constant(p->second)));
    i.in.push_back(input(at));
  }
  static PtxSpace space_of(const Words& m, int line) {
    for (const std::string& s : m) {
      if (s == "global") return PtxSpace::global;
      if (s == "shared") return PtxSpace::shared;
      if (s == "param") return PtxSpace::parameter;
    }
    fail(line, "an access to no known kind of memory");
  }

  void instruction(PtxInstruction i, const std::string& name, const std::vector<Words>& args) {
    using I = PtxInstruction;
    const Words m = split(name, ".");
    const std::string& op = m[0];
    if (op == "ld" || op == "st" || op == "atom") {
      i.space = space_of(m, line_), i.bytes = bytes_of_type(m.back(), line_), i.extend = m.back()[0] == 's';
      i.does = op == "ld" ? I::load : op == "st" ? I::store : I::atomic;
      if (op == "st") return address(i, args.at(0).at(0)), inputs(i, args.at(1)), push(std::move(i));
      outputs(i, args.at(0)), address(i, args.at(1).at(0));
      for (std::size_t k = 2; k < args.size(); ++k) inputs(i, args[k]);
      if (op == "atom") i.value = value_named("atom." + m.at(m.size() - 2) + "." + m.back(), name);
    } else if (op == "bra") {
      i.does = I::branch, jumps_.emplace_back(kernel_->code.size(), args.at(0).at(0));
    } else if (op == "ret" || op == "exit") {
      i.does = I::leave;
    } else if (name == "bar.sync" || name == "barrier.sync") {
      i.does = I::barrier;
    } else if (op == "shfl") {
      i.does = I::shuffle, i.how = m.at(2)[0];
      outputs(i, split(args.at(0).at(0), "|"));
      for (std::size_t k = 1; k < 5; ++k) inputs(i, args.at(k));
    } else if (name == "vote.sync.ballot.b32") {
      i.does = I::ballot, outputs(i, args.at(0)), inputs(i, args.at(1)), inputs(i, args.at(2));
    } else if (name == "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32") {
      i.does = I::mma, outputs(i, args.at(0));
      for (std::size_t k = 1; k < 4; ++k) inputs(i, args.at(k));
    } else if (op == "mov" && (args.at(0).size() > 1 || args.at(1).size() > 1)) {
      i.does = args[0].size() > 1 ? I::unpack : I::pack;
      i.bytes = std::uint8_t(bytes_of_type(m.at(1), line_) / std::max(args[0].size(), args[1].size()));
      outputs(i, args[0]), inputs(i, args[1]);
    } else {
      i.value = value_named(name, name), outputs(i, args.at(0));
      if (op == "dp2a") i.reads_of_second = m.at(1) == "lo" ? 1 : 2;
      for (std::size_t k = 1; k < args.size(); ++k) inputs(i, args[k]);
    }
    push(std::move(i));
  }
  PtxValue value_named(const std::string& value, const std::string& name) const {
    const PtxValue found = ptx_value(value);
    if (!found) fail(line_, "no instruction " + name);
    return found;
  }
  void push(PtxInstruction i) { kernel_->code.push_back(std::move(i)); }

  int line_ = 0, depth_ = 0;
  PtxKernel* kernel_ = nullptr;
  std::map<std::string, PtxOperand> registers_;
  std::map<std::string, std::int32_t> labels_;
  std::map<std::string, std::uint32_t> parameters_, symbols_, dynamic_;
  std::vector<std::pair<std::size_t, std::string>> jumps_;
};

}  // namespace

PtxModule::PtxModule(std::string_view text) : kernels_(Reader(text).kernels) {}

const PtxKernel& PtxModule::kernel(const std::string& name) const {
  const auto it = kernels_.find(name);
  if (it == kernels_.end()) throw std::runtime_error("PTX has no kernel " + name);
  return it->second;
}

}  // namespace stretto::test
