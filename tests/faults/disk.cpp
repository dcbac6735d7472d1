#include "faults/disk.h"

#include <fstream>

#include "faults/shim/trace.h"
#include "support/files.h"

namespace stretto::test {

namespace fs = std::filesystem;

std::vector<Change> changes_in(const fs::path& trace) {
  std::vector<Change> all;
  std::ifstream file(trace, std::ios::binary);
  TraceHead head{};
  const auto text = [&](std::size_t bytes) {
    std::string t(bytes, '\0');
    file.read(t.data(), std::streamsize(bytes));
    return t;
  };
  while (file.read(reinterpret_cast<char*>(&head), sizeof head)) {
    Change c{.op = head.op, .one = text(head.one), .other = text(head.other), .offset = head.offset};
    c.bytes = text(std::size_t(head.bytes));
    all.push_back(std::move(c));
  }
  return all;
}

Disk::Disk(fs::path root) : root_(std::move(root)), top_(read(root_)) {}

Disk::NodePtr Disk::read(const fs::path& path) {
  auto node = std::make_shared<Node>();
  node->folder = fs::is_directory(path);
  if (!node->folder) node->bytes = node->durable_bytes = text_of(path);
  if (node->folder)
    for (const auto& e : fs::directory_iterator(path)) node->names[e.path().filename()] = read(e.path());
  node->durable_names = node->names;
  return node;
}

Disk::NodePtr Disk::find(const std::string& path) const {
  NodePtr at = top_;
  for (const fs::path& part : fs::path(path).lexically_normal().lexically_relative(root_)) {
    if (part.empty() || part == ".") continue;
    const auto it = at->names.find(part);
    if (it == at->names.end()) return nullptr;
    at = it->second;
  }
  return at;
}

Disk::NodePtr* Disk::entry(const std::string& path) {
  fs::path whole = fs::path(path).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();
  const NodePtr folder = find(whole.parent_path());
  return folder ? &folder->names[whole.filename()] : nullptr;
}

void Disk::remove(const std::string& path) {
  const fs::path whole = fs::path(path).lexically_normal();
  if (const NodePtr folder = find(whole.parent_path())) folder->names.erase(whole.filename());
}

void Disk::apply(const Change& c) {
  const NodePtr at = find(c.one);
  switch (c.op) {
    case 'c':
    case 'm':
      if (NodePtr* e = entry(c.one)) *e = std::make_shared<Node>(), (*e)->folder = c.op == 'm';
      break;
    case 't':
      if (at) at->bytes.clear();
      break;
    case 'l':
      if (at) at->bytes.resize(std::size_t(c.offset));
      break;
    case 'w':
      if (at) {
        const std::size_t begin = c.offset < 0 ? at->bytes.size() : std::size_t(c.offset);
        if (at->bytes.size() < begin + c.bytes.size()) at->bytes.resize(begin + c.bytes.size());
        at->bytes.replace(begin, c.bytes.size(), c.bytes);
      }
      break;
    case 's':
      if (at) at->durable_bytes = at->bytes, at->durable_names = at->names;
      break;
    case 'u':
      remove(c.one);
      break;
    case 'x':
      if (at) std::swap(*entry(c.one), *entry(c.other));
      break;
    case 'r':
      if (at) *entry(c.other) = at, remove(c.one);
      break;
    default:
      break;
  }
}

void Disk::write(Found found, const fs::path& to, std::mt19937& chance) const { write(*top_, found, to, chance); }

void Disk::write(const Node& node, Found found, const fs::path& to, std::mt19937& chance) {
  const auto tails = [&] { return found == Found::chance && chance() % 2 == 0; };
  if (!node.folder) {
    const bool all = found == Found::all || tails();
    std::string bytes = all ? node.bytes : node.durable_bytes;
    if (tails() && node.bytes.size() > node.durable_bytes.size()) bytes = std::string(node.bytes.size(), '\0');
    std::ofstream(to, std::ios::binary) << bytes;
    return;
  }
  fs::create_directories(to);
  std::map<std::string, NodePtr> names = found == Found::durable ? node.durable_names : node.names;
  if (found == Found::chance) {
    std::map<std::string, NodePtr> any = node.names;
    any.insert(node.durable_names.begin(), node.durable_names.end());
    names.clear();
    for (const auto& [name, unused] : any) {
      const auto& from = tails() ? node.names : node.durable_names;
      if (const auto it = from.find(name); it != from.end()) names.insert(*it);
    }
  }
  for (const auto& [name, child] : names) write(*child, found, to / name, chance);
}

}  // namespace stretto::test
