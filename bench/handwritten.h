// A GPT training step written by hand for one shape: what a general system should reach. Every buffer is allocated
// once, pointwise work is fused, attention skips masked blocks, weight gradients are accumulated by the GEMM's beta.
#pragma once
#include <cblas.h>
#include <sys/mman.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace handwritten {

inline const bool one_thread = (openblas_set_num_threads(1), true);  // as the rank that it is compared with

struct Shape {
  int layers = 4, width = 512, heads = 8, seq = 256, rows = 4, vocab = 8192, microbatches = 4;
  int tokens() const { return rows * seq; }
};

inline float* buffer(std::size_t n, float scale = 0) {
  constexpr std::size_t huge = std::size_t(2) << 20;
  const std::size_t bytes = (n * 4 + huge - 1) / huge * huge;
  float* p = static_cast<float*>(std::aligned_alloc(huge, bytes));
  madvise(p, bytes, MADV_HUGEPAGE);
  unsigned x = 12345;
  for (std::size_t i = 0; i < n; ++i) {
    x = x * 1664525u + 1013904223u;
    p[i] = (float(x >> 9) / 8388608.f - .5f) * 2 * scale;
  }
  return p;
}

// C = A·B, A·Bᵀ or Aᵀ·B, row-major.
inline void nn(int m, int n, int k, const float* a, int la, const float* b, int lb, float* c, int lc) {
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, a, la, b, lb, 0, c, lc);
}
inline void nt(int m, int n, int k, const float* a, int la, const float* b, int lb, float* c, int lc, float alpha = 1) {
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, n, k, alpha, a, la, b, lb, 0, c, lc);
}
inline void tn(int m, int n, int k, const float* a, int la, const float* b, int lb, float* c, int lc, float beta) {
  cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, m, n, k, 1, a, la, b, lb, beta, c, lc);
}

struct Linear {  // weight [out, in]
  int in, out;
  float *w, *b, *dw, *db;
};
struct Norm {
  float *g, *b, *dg, *db, *mean, *rstd;
};
struct Layer {
  Linear qkv, o, up, down;
  Norm ln1, ln2;
  float *x, *h1, *z, *p, *a, *x2, *h2, *u, *ge;
};

class Step {
 public:
  explicit Step(Shape shape) : s(shape), layers(std::size_t(shape.layers)) {
    const int t = s.tokens(), d = s.width;
    for (Layer& l : layers) {
      l.qkv = linear(d, 3 * d), l.o = linear(d, d), l.up = linear(d, 4 * d), l.down = linear(4 * d, d);
      l.ln1 = norm(d), l.ln2 = norm(d);
      for (float** p : {&l.x, &l.h1, &l.a, &l.x2, &l.h2}) *p = buffer(std::size_t(t) * d);
      l.z = buffer(std::size_t(t) * 3 * d);
      l.p = buffer(std::size_t(s.rows) * s.heads * s.seq * s.seq);
      l.u = buffer(std::size_t(t) * 4 * d), l.ge = buffer(std::size_t(t) * 4 * d);
    }
    final = norm(d);
    head = param(std::size_t(s.vocab) * d, 0.04f, dhead), embed = param(std::size_t(s.vocab) * d, 0.5f, dembed);
    logits = buffer(std::size_t(t) * s.vocab);
    for (float** p : {&xf, &hf, &dx, &dh}) *p = buffer(std::size_t(t) * d);
    tmp = buffer(std::size_t(t) * 4 * d), dz = buffer(std::size_t(t) * 3 * d), ds = buffer(std::size_t(s.seq) * s.seq);
    for (std::size_t i = 0; i < params.size(); ++i) m.push_back(buffer(sizes[i])), v.push_back(buffer(sizes[i]));
  }

  double run() {
    const int t = s.tokens();
    double loss = 0;
    std::vector<int> ids(static_cast<std::size_t>(t)), targets(ids);
    for (int mb = 0; mb < s.microbatches; ++mb) {
      for (int i = 0; i < t; ++i)
        ids[std::size_t(i)] = std::rand() % s.vocab, targets[std::size_t(i)] = (ids[std::size_t(i)] * 7 + 3) % s.vocab;
      forward(ids.data());
      loss += cross_entropy(targets.data());
      backward(ids.data(), mb > 0 ? 1.f : 0.f);
    }
    update();
    return loss;
  }

 private:
  float* param(std::size_t n, float scale, float*& grad) {
    float* w = buffer(n, scale);
    grad = buffer(n);
    params.push_back(w), grads.push_back(grad), sizes.push_back(n);
    return w;
  }
  Linear linear(int in, int out) {
    Linear l{.in = in, .out = out};
    l.w = param(std::size_t(in) * out, 0.04f, l.dw), l.b = param(std::size_t(out), 0, l.db);
    return l;
  }
  Norm norm(int d) {
    Norm n;
    n.g = param(std::size_t(d), 0, n.dg), n.b = param(std::size_t(d), 0, n.db);
    for (int i = 0; i < d; ++i) n.g[i] = 1;
    n.mean = buffer(std::size_t(s.tokens())), n.rstd = buffer(std::size_t(s.tokens()));
    return n;
  }

  void normalise(const Norm& n, const float* x, float* y) const {
    const int d = s.width;
    for (int t = 0; t < s.tokens(); ++t) {
      const float* r = x + std::size_t(t) * d;
      float sum = 0, square = 0;
      for (int i = 0; i < d; ++i) sum += r[i];
      sum /= d;
      for (int i = 0; i < d; ++i) square += (r[i] - sum) * (r[i] - sum);
      const float q = 1 / std::sqrt(square / d + 1e-5f);
      n.mean[t] = sum, n.rstd[t] = q;
      float* o = y + std::size_t(t) * d;
      for (int i = 0; i < d; ++i) o[i] = (r[i] - sum) * q * n.g[i] + n.b[i];
    }
  }
  void normalise_back(const Norm& n, const float* x, const float* dy, float* dx_) const {  // adds to dx
    const int d = s.width;
    for (int t = 0; t < s.tokens(); ++t) {
      const float *r = x + std::size_t(t) * d, *e = dy + std::size_t(t) * d;
      float a = 0, b = 0;
      const float mean = n.mean[t], q = n.rstd[t];
      for (int i = 0; i < d; ++i) {
        const float h = (r[i] - mean) * q, w = e[i] * n.g[i];
        a += w, b += w * h, n.dg[i] += e[i] * h, n.db[i] += e[i];
      }
      a /= d, b /= d;
      float* o = dx_ + std::size_t(t) * d;
      for (int i = 0; i < d; ++i) o[i] += q * (e[i] * n.g[i] - a - (r[i] - mean) * q * b);
    }
  }
  void add_bias(int n, float* y, const float* b, const float* residual, float* to) const {
    for (int t = 0; t < s.tokens(); ++t)
      for (int i = 0; i < n; ++i)
        to[std::size_t(t) * n + i] =
            y[std::size_t(t) * n + i] + b[i] + (residual ? residual[std::size_t(t) * n + i] : 0);
  }
  void sum_columns(int n, const float* y, float* to) const {
    for (int t = 0; t < s.tokens(); ++t)
      for (int i = 0; i < n; ++i) to[i] += y[std::size_t(t) * n + i];
  }

  static constexpr int blocks = 4;  // of queries: block z sees keys up to its own end
  void attend(Layer& l) const {
    const int d = s.width, hd = d / s.heads, b = s.seq / blocks;
    for (int r = 0; r < s.rows; ++r)
      for (int h = 0; h < s.heads; ++h) {
        const float *q = l.z + std::size_t(r) * s.seq * 3 * d + h * hd, *k = q + d, *w = k + d;
        float *p = l.p + std::size_t(r * s.heads + h) * s.seq * s.seq, *o = l.a + std::size_t(r) * s.seq * d + h * hd;
        for (int z = 0; z < blocks; ++z)
          nt(b, (z + 1) * b, hd, q + std::size_t(z) * b * 3 * d, 3 * d, k, 3 * d, p + std::size_t(z) * b * s.seq, s.seq,
             1 / std::sqrt(float(hd)));
        for (int i = 0; i < s.seq; ++i) {
          float *row = p + std::size_t(i) * s.seq, top = -1e30f, sum = 0;
          for (int j = 0; j <= i; ++j) top = top > row[j] ? top : row[j];
          for (int j = 0; j <= i; ++j) row[j] = std::exp(row[j] - top), sum += row[j];
          for (int j = 0; j <= i; ++j) row[j] *= 1 / sum;
          for (int j = i + 1; j < s.seq; ++j) row[j] = 0;
        }
        for (int z = 0; z < blocks; ++z)
          nn(b, hd, (z + 1) * b, p + std::size_t(z) * b * s.seq, s.seq, w, 3 * d, o + std::size_t(z) * b * d, d);
      }
  }
  void attend_back(const Layer& l) const {  // dh -> dz
    const int d = s.width, hd = d / s.heads, b = s.seq / blocks, n = s.seq;
    const float scale = 1 / std::sqrt(float(hd));
    for (int r = 0; r < s.rows; ++r)
      for (int h = 0; h < s.heads; ++h) {
        const std::size_t at = std::size_t(r) * n * 3 * d + h * hd;
        const float *q = l.z + at, *k = q + d, *w = k + d, *p = l.p + std::size_t(r * s.heads + h) * n * n,
                    *g = dh + std::size_t(r) * n * d + h * hd;
        float *dq = dz + at, *dk = dq + d, *dv = dk + d;
        for (int z = 0; z < blocks; ++z)
          nt(b, (z + 1) * b, hd, g + std::size_t(z) * b * d, d, w, 3 * d, ds + std::size_t(z) * b * n, n);
        for (int z = 0; z < blocks; ++z)
          tn(b, hd, n - z * b, p + std::size_t(z) * b * n + z * b, n, g + std::size_t(z) * b * d, d,
             dv + std::size_t(z) * b * 3 * d, 3 * d, 0);
        for (int i = 0; i < n; ++i) {
          const float* row = p + std::size_t(i) * n;
          float *e = ds + std::size_t(i) * n, dot = 0;
          for (int j = 0; j <= i; ++j) dot += row[j] * e[j];
          for (int j = 0; j <= i; ++j) e[j] = row[j] * (e[j] - dot) * scale;
          for (int j = i + 1; j < n; ++j) e[j] = 0;
        }
        for (int z = 0; z < blocks; ++z)
          nn(b, hd, (z + 1) * b, ds + std::size_t(z) * b * n, n, k, 3 * d, dq + std::size_t(z) * b * 3 * d, 3 * d);
        for (int z = 0; z < blocks; ++z)
          tn(b, hd, n - z * b, ds + std::size_t(z) * b * n + z * b, n, q + std::size_t(z) * b * 3 * d, 3 * d,
             dk + std::size_t(z) * b * 3 * d, 3 * d, 0);
      }
  }

  void forward(const int* ids) {
    const int t = s.tokens(), d = s.width;
    for (int i = 0; i < t; ++i)
      std::memcpy(layers[0].x + std::size_t(i) * d, embed + std::size_t(ids[i]) * d, std::size_t(d) * 4);
    for (std::size_t i = 0; i < layers.size(); ++i) {
      Layer& l = layers[i];
      normalise(l.ln1, l.x, l.h1);
      nt(t, 3 * d, d, l.h1, d, l.qkv.w, d, l.z, 3 * d);
      add_bias(3 * d, l.z, l.qkv.b, nullptr, l.z);
      attend(l);
      nt(t, d, d, l.a, d, l.o.w, d, tmp, d);
      add_bias(d, tmp, l.o.b, l.x, l.x2);
      normalise(l.ln2, l.x2, l.h2);
      nt(t, 4 * d, d, l.h2, d, l.up.w, d, l.u, 4 * d);
      for (int r = 0; r < t; ++r)
        for (int j = 0; j < 4 * d; ++j) {
          const std::size_t at = std::size_t(r) * 4 * d + j;
          const float z = l.u[at] + l.up.b[j];
          l.u[at] = z;
          l.ge[at] = z / (1 + std::exp(-1.5957691f * (z + 0.044715f * z * z * z)));
        }
      nt(t, d, 4 * d, l.ge, 4 * d, l.down.w, 4 * d, tmp, d);
      add_bias(d, tmp, l.down.b, l.x2, i + 1 < layers.size() ? layers[i + 1].x : xf);
    }
    normalise(final, xf, hf);
    nt(t, s.vocab, d, hf, d, head, d, logits, s.vocab);
  }

  double cross_entropy(const int* targets) {  // logits become their own gradient
    const int t = s.tokens(), n = s.vocab;
    const float all = float(t) * float(s.microbatches);
    double loss = 0;
    for (int i = 0; i < t; ++i) {
      float *r = logits + std::size_t(i) * n, top = -1e30f, sum = 0;
      for (int j = 0; j < n; ++j) top = top > r[j] ? top : r[j];
      const float y = r[targets[i]];
      for (int j = 0; j < n; ++j) r[j] = std::exp(r[j] - top), sum += r[j];
      loss += double(std::log(sum) + top - y) / double(all);
      const float scale = 1 / (sum * all);
      for (int j = 0; j < n; ++j) r[j] *= scale;
      r[targets[i]] -= 1 / all;
    }
    return loss;
  }

  void backward(const int* ids, float beta) {
    const int t = s.tokens(), d = s.width;
    nn(t, d, s.vocab, logits, s.vocab, head, d, dh, d);
    tn(s.vocab, d, t, logits, s.vocab, hf, d, dhead, d, beta);
    std::memset(dx, 0, std::size_t(t) * d * 4);
    normalise_back(final, xf, dh, dx);
    for (std::size_t i = layers.size(); i-- > 0;) {
      Layer& l = layers[i];
      sum_columns(d, dx, l.down.db);
      nn(t, 4 * d, d, dx, d, l.down.w, 4 * d, tmp, 4 * d);
      tn(d, 4 * d, t, dx, d, l.ge, 4 * d, l.down.dw, 4 * d, beta);
      for (int r = 0; r < t; ++r)
        for (int j = 0; j < 4 * d; ++j) {
          const std::size_t at = std::size_t(r) * 4 * d + j;
          const float z = l.u[at], e = std::exp(-1.5957691f * (z + 0.044715f * z * z * z)), q = 1 / (1 + e);
          const float w = tmp[at] * (q + z * q * (1 - q) * 1.5957691f * (1 + 0.134145f * z * z));
          tmp[at] = w, l.up.db[j] += w;
        }
      nn(t, d, 4 * d, tmp, 4 * d, l.up.w, d, dh, d);
      tn(4 * d, d, t, tmp, 4 * d, l.h2, d, l.up.dw, d, beta);
      normalise_back(l.ln2, l.x2, dh, dx);
      sum_columns(d, dx, l.o.db);
      nn(t, d, d, dx, d, l.o.w, d, dh, d);
      tn(d, d, t, dx, d, l.a, d, l.o.dw, d, beta);
      attend_back(l);
      sum_columns(3 * d, dz, l.qkv.db);
      nn(t, d, 3 * d, dz, 3 * d, l.qkv.w, d, dh, d);
      tn(3 * d, d, t, dz, 3 * d, l.h1, d, l.qkv.dw, d, beta);
      normalise_back(l.ln1, l.x, dh, dx);
    }
    for (int i = 0; i < t; ++i)
      for (int j = 0; j < d; ++j) dembed[std::size_t(ids[i]) * d + j] += dx[std::size_t(i) * d + j];
  }

  void update() {
    ++steps;
    const float lr = 3e-4f, c1 = 1 - std::pow(.9f, float(steps)), c2 = 1 - std::pow(.999f, float(steps));
    for (std::size_t i = 0; i < params.size(); ++i) {
      float *w = params[i], *g = grads[i], *a = m[i], *b = v[i];
      for (std::size_t j = 0; j < sizes[i]; ++j) {
        const float q = g[j];
        a[j] = .9f * a[j] + .1f * q;
        b[j] = .999f * b[j] + .001f * q * q;
        w[j] = w[j] * (1 - lr * .01f) - lr * (a[j] / c1) / (std::sqrt(b[j] / c2) + 1e-8f);
      }
      if (g != dhead) std::memset(g, 0, sizes[i] * 4);
    }
  }

  Shape s;
  std::vector<Layer> layers;
  Norm final;
  float *head, *dhead, *embed, *dembed, *logits, *xf, *hf, *dx, *dh, *tmp, *dz, *ds;
  std::vector<float*> params, grads, m, v;
  std::vector<std::size_t> sizes;
  int steps = 0;
};

}  // namespace handwritten
