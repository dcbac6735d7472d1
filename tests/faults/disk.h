// A disk as it is written, and as it may be found after a power failure: what was not made durable is there or not.
//
//   Disk disk(root);
//   for (const Change& c : changes_in("trace")) disk.apply(c);
//   disk.write(Disk::Found::durable, "/tmp/after");
#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace stretto::test {

struct Change {
  char op = 0;  // see shim/trace.h
  std::string one, other;
  long offset = 0;
  std::string bytes;
};
std::vector<Change> changes_in(const std::filesystem::path& trace);

class Disk {
 public:
  // With what is in that folder now.
  explicit Disk(std::filesystem::path root);
  void apply(const Change&);
  // Nothing but what was made durable; all names, and of files what was; all; each by chance.
  enum class Found { durable, names, all, chance };
  void write(Found, const std::filesystem::path& to, std::mt19937& chance) const;

 private:
  struct Node;
  using NodePtr = std::shared_ptr<Node>;
  struct Node {
    bool folder = false;
    std::string bytes, durable_bytes;
    std::map<std::string, NodePtr> names, durable_names;
  };
  static NodePtr read(const std::filesystem::path&);
  static void write(const Node&, Found, const std::filesystem::path&, std::mt19937&);
  NodePtr find(const std::string& path) const;
  NodePtr* entry(const std::string& path);  // made where there is none
  void remove(const std::string& path);

  std::filesystem::path root_;
  NodePtr top_;
};

}  // namespace stretto::test
