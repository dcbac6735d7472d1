#include "stretto/graphs/graph_file.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "stretto/base/text.h"
#include "stretto/formats/fields.h"
#include "stretto/formats/mapped_file.h"
#include "stretto/formats/safetensors.h"
#include "stretto/graphs/inner/kinds.h"

namespace stretto {
namespace {

constexpr std::size_t most_dims = 10'000, most_nodes = 200'000;
constexpr int most_pieces = 4'096;
constexpr double most_size = 1ull << 40;

class Reader {
 public:
  Reader(const Field& root, std::string_view name, const std::filesystem::path& folder) : root_(root), folder_(folder) {
    file_.name = name;
  }

  GraphFile read() {
    i64 version = 0;
    root_.need("version");
    if (root_.read("version", version) && version != 1)
      root_.fail_hint("version", "is not one that this program reads", "it reads version 1: write the file again");
    else
      read_all();
    root_.finish();
    return std::move(file_);
  }

 private:
  using Type = AttributeRule::Type;

  void read_all() {
    read_arrays();
    root_.read("one_microbatch", file_.one_microbatch);
    for (FieldReader& d : list("dims", most_dims)) read_dim(d);
    for (FieldReader& n : list("nodes", most_nodes)) read_node(n);
    std::vector<FieldReader> terms = list("loss", 1'000);
    if (terms.empty()) root_.fail_hint("loss", "has no terms", "a model needs something to train for");
    for (FieldReader& t : terms) read_term(t);
  }

  // A file beside the graph's, and nowhere else.
  void read_arrays() {
    std::string name;
    if (!root_.read("arrays", name)) return;
    if (name.empty() || std::filesystem::path(name).filename() != name)
      return root_.fail_hint("arrays", "is no name of a file beside this one", "a name without folders");
    file_.arrays = folder_ / name;
    try {
      arrays_.emplace(file_.arrays);
    } catch (const Error& e) {
      for (const Fault& f : e.faults()) root_.blame("arrays", fmt::format("{}: {}", f.where, f.what), f.hint);
    }
  }

  std::vector<FieldReader> list(std::string_view key, std::size_t most) {
    root_.need(key);
    const Field* there = root_.field().find(key);
    if (there && there->array() && there->array()->size() > most) {
      root_.raw(key);
      root_.fail_hint(key, fmt::format("has {} entries", there->array()->size()), fmt::format("{} at most", most));
      return {};
    }
    return root_.sections(key);
  }

  void read_dim(FieldReader& r) {
    GraphDim d;
    r.need("name");
    r.need("size");
    r.read("name", d.name);
    r.read("size", d.size, between(1, most_size));
    bool batch = false, whole = false;
    r.read("batch", batch);
    r.read("whole", whole);
    const bool like = r.read("like", d.like), minus = r.read("minus", d.minus);
    if (minus && (!like || whole || !dims_.contains(d.minus)))
      r.fail_hint("minus", "is of dims like others, and names a dim before it", "leave it out");
    if (batch && (whole || like)) r.fail_hint("name", "is of more than one kind", "batch, whole or like: one of them");
    d.kind = batch ? GraphDim::Kind::batch : whole ? GraphDim::Kind::whole : like ? GraphDim::Kind::like : d.kind;
    if (like && !dims_.contains(d.like))
      r.fail_hint("like", "names no dim before it", "dims stand after those they are like");
    if (batch && std::exchange(has_batch_, true))
      r.fail_hint("batch", "is said of a second dim", "one dim is the batch");
    if (!dims_.emplace(d.name, GraphDimIndex(file_.dims.size())).second)
      r.fail_hint("name", "names a dim that is there already", "within one graph a name has one size");
    file_.dims.push_back(std::move(d));
  }

  void read_node(FieldReader& r) {
    GraphNode n;
    r.need("op");
    r.read("op", n.op);
    const NodeKind* kind = kind_of(n.op);
    if (!kind) {
      if (r.has("op")) r.fail_hint("op", "is no op of a graph's file", hint_for(n.op));
      r.ignore({"in", "piece", "scope", "source"});
      forget_rest(r);
    } else {
      read_operands(r, n, kind->least, kind->most, kind->numbers);
      read_attributes(r, n, kind->attributes);
      check_name(r, n);
    }
    r.read("scope", n.scope);
    r.read("source", n.source);
    read_piece(r, n);
    file_.nodes.push_back(std::move(n));
  }

  void read_term(FieldReader& r) {
    GraphTerm t;
    std::vector<std::string> names;
    for (const TermKind& k : term_kinds()) names.emplace_back(k.op);
    r.need("kind");
    r.need("name");
    r.read("name", t.name);
    r.read("weight", t.weight);
    if (const auto k = r.choose_index("kind", names)) {
      const TermKind& kind = term_kinds()[*k];
      t.op = kind.op;
      read_operands(r, t, kind.operands, kind.operands, false);
      read_attributes(r, t, kind.attributes);
    } else {
      forget_rest(r);
    }
    file_.loss.push_back(std::move(t));
  }

  // Of an entry whose kind is not known every key may be right.
  static void forget_rest(FieldReader& r) {
    if (const Field::Table* t = r.field().table())
      for (const Member& m : *t) r.ignore({m.key});
  }

  static std::string hint_for(const std::string& op) {
    std::vector<std::string> names;
    for (const NodeKind& k : node_kinds()) names.emplace_back(k.op);
    const auto near = nearest(op, names);
    return near ? fmt::format("did you mean '{}'?", *near) : "the file may be of a newer version";
  }

  void read_operands(FieldReader& r, GraphNode& n, int least, int most, bool numbers) {
    const Field* in = r.raw("in");
    static const Field::Array none;
    if (in && !in->array()) return r.fail_hint("in", "is no list", "the numbers of the nodes that are read");
    const Field::Array& all = in ? *in->array() : none;
    const i64 given = std::ssize(all);
    if (given < least || given > most) {
      const std::string wanted = least == most ? std::to_string(least) : fmt::format("{} to {}", least, most);
      return r.fail_hint("in", fmt::format("has {} operands", given), fmt::format("'{}' takes {}", n.op, wanted));
    }
    int written = 0;
    for (const Field& f : all) {
      const i64* index = std::get_if<i64>(&f.value);
      const Field* number = f.find("number");
      if (index && *index >= 0 && *index < std::ssize(file_.nodes)) {
        n.operands.push_back(GraphNodeIndex(*index));
      } else if (index) {
        r.fail_hint("in", fmt::format("reads node {}", *index),
                    fmt::format("this is node {}, and a node reads nodes before it", file_.nodes.size()));
      } else if (number && numbers && (number->kind() == "an integer" || std::get_if<double>(&number->value))) {
        const i64* whole = std::get_if<i64>(&number->value);
        n.operands.push_back(whole ? 1.0 * *whole : std::get<double>(number->value));
        ++written;
      } else {
        r.fail_hint("in", fmt::format("has the operand {}", f.str()),
                    numbers ? "a node's number, or {\"number\": 2.5}" : "a node's number");
      }
    }
    if (written > 1 || (written > 0 && n.op == "where" && std::holds_alternative<double>(n.operands[0])))
      r.fail_hint("in", "has numbers where tensors belong",
                  "at least one operand is a tensor: it says of which type numbers are");
  }

  void read_attributes(FieldReader& r, GraphNode& n, const std::vector<AttributeRule>& rules) {
    for (const AttributeRule& rule : rules) {
      if (rule.needed) r.need(rule.name);
      if (std::optional<GraphAttribute> value = attribute(r, rule))
        n.attributes.emplace_back(rule.name, *std::move(value));
    }
  }

  std::optional<GraphAttribute> attribute(FieldReader& r, const AttributeRule& rule) {
    switch (rule.type) {
      case Type::flag:
        return read_as<bool>(r, rule);
      case Type::whole:
        return read_as<i64>(r, rule);
      case Type::number:
        return read_as<double>(r, rule);
      case Type::text:
        return read_as<std::string>(r, rule);
      case Type::numbers:
        return numbers(r, rule);
      case Type::dim: {
        const auto name = read_as<std::string>(r, rule);
        if (!name) return std::nullopt;
        const auto d = dim(r, rule.name, std::get<std::string>(*name));
        return d ? std::optional<GraphAttribute>(*d) : std::nullopt;
      }
      case Type::dims: {
        std::vector<std::string> names;
        if (!r.read(rule.name, names)) return std::nullopt;
        std::vector<GraphDimIndex> all;
        for (const std::string& name : names)
          if (const auto d = dim(r, rule.name, name)) all.push_back(*d);
        return all;
      }
    }
    return std::nullopt;
  }
  // In the text, or by their name among the arrays.
  std::optional<GraphAttribute> numbers(FieldReader& r, const AttributeRule& rule) {
    const Field* there = r.field().find(rule.name);
    const std::string* name = there ? std::get_if<std::string>(&there->value) : nullptr;
    if (!name) return read_as<std::vector<double>>(r, rule);
    r.raw(rule.name);
    const StoredTensor* stored = arrays_ ? arrays_->find(*name) : nullptr;
    if (stored) return values<double>(*stored, *name);
    r.fail_hint(rule.name, fmt::format("names the array '{}', and there is none", *name),
                file_.arrays.empty() ? "'arrays' names their file" : file_.arrays.string() + " has them");
    return std::nullopt;
  }
  template <class T>
  static std::optional<GraphAttribute> read_as(FieldReader& r, const AttributeRule& rule) {
    T value{};
    if (!r.read(rule.name, value)) return std::nullopt;
    return value;
  }

  std::optional<GraphDimIndex> dim(FieldReader& r, std::string_view key, const std::string& name) {
    if (const auto at = dims_.find(name); at != dims_.end()) return at->second;
    std::vector<std::string> names;
    for (const GraphDim& d : file_.dims) names.push_back(d.name);
    const auto near = nearest(name, names);
    r.fail_hint(key, fmt::format("names no dim: '{}'", name),
                near ? fmt::format("did you mean '{}'?", *near) : "'dims' has all of them");
    return std::nullopt;
  }

  // Inputs, and parameters with states, have names of their own.
  void check_name(FieldReader& r, const GraphNode& n) {
    const bool input = n.op == "input" || n.op == "ids", kept = n.op == "param" || n.op == "state";
    std::string name;
    if ((input || kept) && r.read("name", name) && !(input ? inputs_ : kept_).insert(name).second)
      r.fail_hint("name", "is taken by a node before it", "a parameter that is used again is one node, read again");
  }

  void read_piece(FieldReader& r, GraphNode& n) {
    for (const GraphOperand& o : n.operands)
      if (const auto* i = std::get_if<GraphNodeIndex>(&o)) n.piece = std::max(n.piece, file_.nodes[i->value].piece);
    const int least = n.piece + (n.op == "boundary");
    n.piece = least;
    if (!r.read("piece", n.piece, between(0, most_pieces - 1))) {
      if (least >= most_pieces)
        r.fail_hint("op", fmt::format("begins piece {}", least), fmt::format("{} pieces at most", most_pieces));
    } else if (n.piece < least) {
      r.fail_hint("piece", fmt::format("comes before piece {}, which it reads", least),
                  "pieces read those before them");
      n.piece = least;
    }
  }

  GraphFile file_;
  FieldReader root_;
  std::filesystem::path folder_;
  std::optional<SafeTensors> arrays_;
  std::unordered_map<std::string, GraphDimIndex> dims_;
  std::set<std::string> inputs_, kept_;
  bool has_batch_ = false;
};

}  // namespace

GraphFile parse_graph(std::string_view json, std::string_view name, const std::filesystem::path& folder) {
  const Field root = read_json(json, name);
  return Reader(root, name, folder).read();
}

GraphFile read_graph(const std::filesystem::path& path) {
  const MappedFile file(path);
  return parse_graph(file.text(), path.string(), path.parent_path());
}

i64 positions_of(const GraphFile& g) {
  const GraphNode* first = nullptr;
  for (const GraphNode& n : g.nodes)
    if (n.op == "ids" || (n.op == "input" && !first))
      if (first = &n; n.op == "ids") break;
  i64 places = 1;
  if (first)
    for (const auto& [name, value] : first->attributes)
      if (const auto* dims = std::get_if<std::vector<GraphDimIndex>>(&value))
        for (const GraphDimIndex d : *dims)
          if (g.dims[d.value].kind != GraphDim::Kind::batch) places *= std::min<i64>(g.dims[d.value].size, 1 << 20);
  return std::clamp<i64>(places, 1, 1 << 20);
}

int pieces_of(const GraphFile& g) {
  int last = 0;
  for (const GraphNode& n : g.nodes) last = std::max(last, n.piece);
  return last + 1;
}

double parameter_count(const GraphFile& g) {
  double sum = 0;
  for (const GraphNode& n : g.nodes) {
    if (n.op != "param") continue;
    double elements = 1;
    for (const auto& [name, value] : n.attributes)
      if (const auto* dims = std::get_if<std::vector<GraphDimIndex>>(&value))
        for (const GraphDimIndex d : *dims) elements *= g.dims[d.value].size;
    sum += elements;
  }
  return sum;
}

}  // namespace stretto
