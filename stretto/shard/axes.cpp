#include "stretto/shard/axes.h"

#include <algorithm>
#include <functional>
#include <set>
#include <tuple>

#include "stretto/base/text.h"

namespace stretto {
namespace {

std::string suggestion(const std::string& wrong, const std::vector<std::string>& known, std::string_view what) {
  const auto near = nearest(wrong, known);
  return fmt::format("{}the {} are {}", near ? fmt::format("did you mean '{}'? ", *near) : "", what,
                     known.empty() ? "none" : join(known, ", "));
}

void check_names(const std::vector<Dim>& dims, const Layout& layout, std::vector<Fault>& faults) {
  std::vector<std::string> known;
  for (const Dim& d : dims) known.push_back(d.name);
  for (std::size_t i = 0; i < layout.size(); ++i) {
    const LayoutEntry& e = layout[i];
    const auto dim = std::find_if(dims.begin(), dims.end(), [&](const Dim& d) { return d.name == e.dim; });
    if (dim == dims.end())
      faults.push_back(fault("layout", suggestion(e.dim, known, "model's dims"), "there is no dim '{}'", e.dim));
    else if (dim->is_whole && !e.axes.empty())
      faults.push_back(fault("layout", fmt::format("map '{}' or a dim like it instead", dim->parent),
                             "dim '{}' is never split, and is mapped to '{}'", e.dim, join(e.axes, ",")));
    for (std::size_t k = 0; k < i; ++k)
      if (layout[k].dim == e.dim)
        faults.push_back(fault("layout", "give all its axes at once, major to minor",
                               "dim '{}' is mapped twice, to '{}' and to '{}'", e.dim, join(layout[k].axes, ","),
                               join(e.axes, ",")));
    for (std::size_t a = 0; a < e.axes.size(); ++a)
      if (std::find(e.axes.begin(), e.axes.begin() + std::ptrdiff_t(a), e.axes[a]) !=
          e.axes.begin() + std::ptrdiff_t(a))
        faults.push_back(fault("layout", "list every axis once", "dim '{}' lists axis '{}' twice", e.dim, e.axes[a]));
  }
}

}  // namespace

AxisMask DimAxes::mask(DimId d) const {
  AxisMask m = 0;
  if (d.value < of.size())
    for (int a : of[d.value]) m |= AxisMask(1) << a;
  return m;
}

AxisMask DimAxes::mask(const DimSet& dims) const {
  AxisMask m = 0;
  for (DimId d : dims) m |= mask(d);
  return m;
}

int DimAxes::ranks(std::span<const int> axes) const {
  int n = 1;
  for (int a : axes) n *= mesh[std::size_t(a)].size;
  return n;
}

int DimAxes::ranks(AxisMask m) const {
  int n = 1;
  for (std::size_t a = 0; a < mesh.size(); ++a)
    if (m >> a & 1) n *= mesh[a].size;
  return n;
}

std::vector<std::string> DimAxes::names(std::span<const int> axes) const {
  std::vector<std::string> all;
  for (int a : axes) all.push_back(mesh[std::size_t(a)].name);
  return all;
}

std::vector<std::string> DimAxes::names(AxisMask m) const {
  std::vector<std::string> all;
  for (std::size_t a = 0; a < mesh.size(); ++a)
    if (m >> a & 1) all.push_back(mesh[a].name);
  return all;
}

std::vector<int> axis_numbers(const Mesh& mesh, const Axes& axes, std::string_view where, std::vector<Fault>& faults) {
  std::vector<int> numbers;
  for (const std::string& name : axes) {
    const auto it = std::find_if(mesh.begin(), mesh.end(), [&](const Axis& a) { return a.name == name; });
    if (it == mesh.end()) {
      std::vector<std::string> known;
      for (const Axis& a : mesh) known.push_back(a.name);
      if (name == "pipe")
        faults.push_back(fault(where, "stages are cut by the schedule; map the dim to another axis",
                               "'pipe' is the pipeline's axis: dims cannot be split over it"));
      else
        faults.push_back(fault(where, suggestion(name, known, "mesh's axes"), "there is no axis '{}'", name));
      continue;
    }
    const int a = int(it - mesh.begin());
    if (it->size > 1 && std::find(numbers.begin(), numbers.end(), a) == numbers.end()) numbers.push_back(a);
  }
  return numbers;
}

DimAxes resolve(const std::vector<Dim>& dims, const Mesh& mesh, const Layout& layout, std::vector<Fault>& faults) {
  DimAxes r;
  for (const Axis& a : mesh)
    if (a.name != "pipe") r.mesh.push_back(a);
  STRETTO_ASSERT(r.mesh.size() <= 32, "a mask has 32 bits");
  check_names(dims, layout, faults);

  std::vector<std::pair<std::string, std::vector<int>>> mapped;
  for (const LayoutEntry& e : layout) {
    const std::size_t before = faults.size();
    mapped.push_back({e.dim, axis_numbers(r.mesh, e.axes, fmt::format("layout of '{}'", e.dim), faults)});
    if (faults.size() > before) r.refused = ~AxisMask(0);  // any of them may have been meant
    if (std::none_of(dims.begin(), dims.end(), [&](const Dim& d) { return d.name == e.dim; }))
      for (int a : mapped.back().second) r.refused |= AxisMask(1) << a;
  }
  const auto known = [&](const std::string& name) -> const std::vector<int>* {
    for (const auto& [dim, axes] : mapped)
      if (dim == name) return &axes;
    return nullptr;
  };
  // A name that is not mapped inherits its parent's axes but those of the dims it names; parents need not be in the
  // graph themselves.
  const std::function<std::vector<int>(const std::string&, int)> axes_of = [&](const std::string& name, int depth) {
    if (const std::vector<int>* m = known(name)) return *m;
    const auto d = std::find_if(dims.begin(), dims.end(), [&](const Dim& x) { return x.name == name; });
    if (d == dims.end() || d->is_whole || d->parent.empty() || depth > 16) return std::vector<int>{};
    std::vector<int> axes = axes_of(d->parent, depth + 1);
    for (const std::string& m : d->minus)
      for (int taken : axes_of(m, depth + 1)) std::erase(axes, taken);
    return axes;
  };
  std::set<std::tuple<std::string, i64, std::vector<int>>> misfits;
  for (const Dim& d : dims) {
    if (const std::vector<int>* m = known(d.name); m && d.is_whole)
      for (int a : *m) r.refused |= AxisMask(1) << a;
    std::vector<int> axes = d.is_whole ? std::vector<int>{} : axes_of(d.name, 0);
    const int n = r.ranks(axes);
    if (d.size % n != 0) {
      // A dim that is like another one has its fault, too.
      if (misfits.insert({d.parent.empty() ? d.name : d.parent, d.size, axes}).second)
        faults.push_back(fault(
            "layout",
            fmt::format("use a size that {0} divides, another number of ranks, or pad it (Dim::padded({0}); "
                        "model.pad_vocab = {0} for a run's vocabulary): files, loss and norms keep the logical size",
                        n),
            "dim '{}' has size {}, which {} ranks ({}) do not divide", d.name, d.size, n, join(r.names(axes), ",")));
      for (int a : axes) r.refused |= AxisMask(1) << a;
      axes.clear();
    }
    r.of.push_back(std::move(axes));
  }
  return r;
}

}  // namespace stretto
