#include "stretto/shard/inner/axes.h"

#include <algorithm>
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
      faults.push_back(fault("layout", suggestion(e.dim, known, "model's dims"), "there is no dim '{}'", e.dim)
                           .about(settings_of({e.dim}, e.axes)));
    else if (dim->is_whole && !e.axes.empty())
      faults.push_back(fault("layout", fmt::format("map '{}' or a dim like it instead", dim->parent),
                             "dim '{}' is never split, and is mapped to '{}'", e.dim, join(e.axes, ","))
                           .about(settings_of({e.dim}, e.axes)));
    for (std::size_t k = 0; k < i; ++k)
      if (layout[k].dim == e.dim)
        faults.push_back(fault("layout", "give all its axes at once, major to minor",
                               "dim '{}' is mapped twice, to '{}' and to '{}'", e.dim, join(layout[k].axes, ","),
                               join(e.axes, ","))
                             .about(settings_of({e.dim}, e.axes)));
    for (auto a = e.axes.begin(); a != e.axes.end(); ++a)
      if (std::find(e.axes.begin(), a, *a) != a)
        faults.push_back(fault("layout", "list every axis once", "dim '{}' lists axis '{}' twice", e.dim, *a)
                             .about(settings_of({e.dim}, e.axes)));
  }
}

}  // namespace

void DimAxes::lay(DimId d, AxisList axes) {
  if (!of.has(d)) of.resize(d.value + 1);
  of[d] = std::move(axes);
}

std::optional<DimId> DimAxes::groups(DimId rows, const std::vector<Dim>& dims) const {
  const std::string& by = dims[rows.value].by;
  for (std::size_t i = 0; !by.empty() && i < dims.size(); ++i)
    if (dims[i].name == by) return DimId(i);
  return {};
}

AxisSet DimAxes::set(DimId d) const { return of.has(d) ? AxisSet(of[d]) : AxisSet(); }

AxisSet DimAxes::set(const DimSet& dims) const {
  AxisSet all;
  for (DimId d : dims) all |= set(d);
  return all;
}

AxisList DimAxes::list(AxisSet axes) const {
  AxisList all;
  for (AxisId a : ids())
    if (axes.has(a)) all.push_back(a);
  return all;
}

int DimAxes::ranks(const AxisList& axes) const {
  int n = 1;
  for (AxisId a : axes) n *= axis(a).size;
  return n;
}

std::vector<std::string> DimAxes::names(const AxisList& axes) const {
  std::vector<std::string> all;
  for (AxisId a : axes) all.push_back(axis(a).name);
  return all;
}

std::vector<std::string> settings_of(const std::vector<std::string>& dims, std::span<const std::string> axes) {
  std::vector<std::string> all;
  for (const std::string& dim : dims) all.push_back("parallel.layout." + dim);
  for (const std::string& axis : axes) all.insert(all.end(), {"parallel." + axis, "parallel.mesh." + axis});
  return all;
}

AxisList axes_named(const Mesh& mesh, const Axes& axes, std::string_view where,
                    const std::vector<std::string>& settings, std::vector<Fault>& faults) {
  AxisList list;
  for (const std::string& name : axes) {
    const auto it = std::find_if(mesh.begin(), mesh.end(), [&](const Axis& a) { return a.name == name; });
    if (it == mesh.end()) {
      std::vector<std::string> known;
      for (const Axis& a : mesh) known.push_back(a.name);
      if (name == "pipe")
        faults.push_back(fault(where, "stages are cut by the schedule; map the dim to another axis",
                               "'pipe' is the pipeline's axis: dims cannot be split over it")
                             .about(settings));
      else
        faults.push_back(
            fault(where, suggestion(name, known, "mesh's axes"), "there is no axis '{}'", name).about(settings));
      continue;
    }
    const AxisId a(it - mesh.begin());
    if (it->size > 1 && std::find(list.begin(), list.end(), a) == list.end()) list.push_back(a);
  }
  return list;
}

namespace {

// What the layout says about dims' names.
class Resolver {
 public:
  Resolver(const std::vector<Dim>& dims, const Layout& layout, DimAxes& to, std::vector<Fault>& faults) : dims_(dims) {
    for (const LayoutEntry& e : layout) {
      const std::size_t before = faults.size();
      mapped_.push_back(
          {e.dim, axes_named(to.mesh, e.axes, fmt::format("layout of '{}'", e.dim), settings_of({e.dim}, {}), faults)});
      const Dim* dim = find(e.dim);
      if (faults.size() > before)
        for (AxisId a : to.ids()) to.refused |= AxisList{a};  // any of them may have been meant
      if (!dim || dim->is_whole) to.refused |= mapped_.back().second;
    }
  }

  AxisList axes_of(const Dim& d) const { return d.is_whole ? AxisList() : inherited(d.name, 0); }

 private:
  const Dim* find(const std::string& name) const {
    const auto d = std::find_if(dims_.begin(), dims_.end(), [&](const Dim& x) { return x.name == name; });
    return d == dims_.end() ? nullptr : &*d;
  }
  // A name that is not mapped inherits its parent's axes without and with those of the dims it names; parents need not
  // be in the graph themselves.
  AxisList inherited(const std::string& name, int depth) const {
    for (const auto& [dim, axes] : mapped_)
      if (dim == name) return axes;
    const Dim* d = find(name);
    if (!d || d->is_whole || d->parent.empty() || depth > 16) return {};
    AxisList axes = inherited(d->parent, depth + 1);
    for (const std::string& m : d->minus)
      for (AxisId taken : inherited(m, depth + 1)) std::erase(axes, taken);
    for (const std::string& p : d->plus)
      for (AxisId more : inherited(p, depth + 1))
        if (std::find(axes.begin(), axes.end(), more) == axes.end()) axes.push_back(more);
    return axes;
  }

  const std::vector<Dim>& dims_;
  std::vector<std::pair<std::string, AxisList>> mapped_;
};

}  // namespace

DimAxes resolve(const std::vector<Dim>& dims, const Mesh& mesh, const Layout& layout, std::vector<Fault>& faults) {
  DimAxes r;
  for (const Axis& a : mesh)
    if (a.name != "pipe") r.mesh.push_back(a);
  STRETTO_ASSERT(r.mesh.size() <= AxisSet::most);
  check_names(dims, layout, faults);
  const Resolver resolver(dims, layout, r, faults);
  std::set<std::tuple<std::string, i64, AxisList>> misfits;
  for (const Dim& d : dims) {
    AxisList axes = resolver.axes_of(d);
    const int n = r.ranks(axes);
    if (d.size % n != 0) {
      // A dim that is like another one has its fault, too.
      if (misfits.insert({d.parent.empty() ? d.name : d.parent, d.size, axes}).second)
        faults.push_back(fault("layout",
                               fmt::format("use a size that {0} divides, another number of "
                                           "ranks, or pad it (model.pad_vocab = {0} for a run's vocabulary, "
                                           "padded({0}) of a dim of your own): "
                                           "files, loss and norms keep the logical size",
                                           n),
                               "dim '{}' has size {}, which {} ranks ({}) do not divide", d.name, d.size, n,
                               join(r.names(axes), ","))
                             .about(settings_of({d.name}, r.names(axes))));
      r.refused |= axes;
      axes.clear();
    }
    r.of.push_back(std::move(axes));
  }
  return r;
}

}  // namespace stretto
