#include "stretto/view/inner/page.h"

namespace stretto {

const std::string_view page_style = R"css(
* { box-sizing: border-box; }
body { margin: 0; background: var(--bg); color: var(--fg); font: 14px/1.45 system-ui, "DejaVu Sans", sans-serif; }
header, section { padding: 16px 24px 0; }
h1 { font-size: 20px; font-weight: 600; margin: 0 0 10px; }
h2 { font-size: 14px; font-weight: 600; margin: 0; padding: 14px 24px 4px; }
h2 small { font-weight: 400; color: var(--soft); margin-left: 10px; }
table { border-collapse: collapse; margin: 0 0 12px; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: 6px 0; }
th, td { padding: 3px 14px 3px 0; text-align: right; border-bottom: 1px solid var(--line); }
th { font-weight: 500; color: var(--soft); }
th:first-child { text-align: left; color: var(--fg); }
.legend, .controls { margin: 0 0 10px; display: flex; flex-wrap: wrap; gap: 6px 16px; align-items: center; }
.legend span { display: inline-flex; align-items: center; gap: 6px; }
.legend i { width: 18px; height: 16px; border-radius: 3px; text-align: center;
  font: 600 11px/16px system-ui, "DejaVu Sans", sans-serif; }
[hidden] { display: none !important; }
.controls button { font: inherit; color: inherit; background: var(--panel); border: 1px solid var(--line);
  border-radius: 5px; padding: 2px 10px; cursor: pointer; }
.controls button:hover { border-color: var(--soft); }
.controls label { display: inline-flex; gap: 5px; align-items: center; }
.hint { color: var(--soft); font-size: 12px; }
main { position: relative; padding-bottom: 20px; }
canvas { display: block; width: 100%; touch-action: pan-y; }
#axis { position: sticky; top: 0; z-index: 2; height: 26px; background: var(--bg); cursor: col-resize;
  border-bottom: 1px solid var(--line); }
#charts canvas { cursor: grab; }
#charts canvas.moving { cursor: grabbing; }
#tip { position: fixed; z-index: 3; max-width: 460px; padding: 8px 12px; pointer-events: none; background: var(--bg);
  color: var(--fg); border: 1px solid var(--line); border-radius: 6px; box-shadow: 0 4px 16px rgba(0, 0, 0, .22);
  font-size: 13px; }
#tip b { display: block; font-weight: 600; margin-bottom: 2px; }
#tip div { color: var(--soft); }
#tip div span { color: var(--fg); }
noscript p { padding: 0 24px; }
)css";

const std::string_view page_script = R"js(
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const [START, END, STYLE, SLOT, SLOTS, CAPTION, WHAT, WAITED, MICROBATCH, HALFWAY, WAITING] =
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
  const COMPUTE = 0, RIGHT = 24, FEW = 16;
  const $ = id => document.getElementById(id);
  const length = Math.max(...data.timelines.map(t => t.length), 0) || 1;
  const view = { from: 0, to: length, cross: null, hover: null, followed: null };
  let theme = {};
  const rows = t => t.ranks > 1 ? t.actors * t.ranks : 0;
  const named = Math.max(7, ...data.timelines.flatMap(t => t.tracks.map(k => k.name.length)));
  const GUTTER = Math.max(96, 24 + 7 * named);

  // ---- text ----
  const trim = (v, digits) => String(Number(v.toPrecision(digits)));
  function time(t, digits = 5) {
    if (!data.seconds) return trim(t, digits);
    const a = Math.abs(t);
    return a === 0 ? "0 s" : a < 1e-3 ? trim(t * 1e6, digits) + " µs" : a < 1 ? trim(t * 1e3, digits) + " ms"
      : trim(t, digits) + " s";
  }
  function amount(v, unit) {
    if (unit !== "bytes") return trim(v, 4) + " " + unit;
    let u = 0;
    for (; Math.abs(v) >= 1024 && u < 5; ++u) v /= 1024;
    return (u ? trim(v, 3) : v) + " " + ["B", "KiB", "MiB", "GiB", "TiB", "PiB"][u];
  }
  function ticks(width) {
    const least = (view.to - view.from) / Math.max(1, width / 90), power = 10 ** Math.floor(Math.log10(least));
    const step = [1, 2, 5, 10].map(f => f * power).find(s => s >= least * (1 - 1e-9));
    const list = [];
    for (let k = Math.ceil(view.from / step - 1e-9); k * step <= view.to * (1 + 1e-9); ++k) list.push(k * step);
    return list;
  }

  // ---- rows ----
  // The same scale for all memory curves of one unit, so that heights compare.
  const most = {};
  for (const t of data.timelines)
    for (const curve of t.memory) for (const [, v] of curve) most[t.unit] = Math.max(most[t.unit] || 0, v);
  for (const t of data.timelines) {
    t.index = new Map();
    t.widest = 1;  // characters of the longest microbatch number: all are written in one size
    for (const track of t.tracks) {
      track.longest = 0;
      for (const b of track.bars) {
        track.longest = Math.max(track.longest, b[END] - b[START]);
        if (b[MICROBATCH] === null || track.lane !== COMPUTE) continue;
        t.index.set(b[WHAT], b);
        t.widest = Math.max(t.widest, data.strings[b[CAPTION]].length);
      }
    }
  }
  const charts = data.timelines.map(t => {
    const title = document.createElement("h2"), small = document.createElement("small");
    const canvas = document.createElement("canvas");
    title.textContent = t.title;
    small.textContent = "makespan " + time(t.length);
    title.append(small);
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", "Gantt chart of " + t.title);
    $("charts").append(title, canvas);
    return { t, canvas, rows: [], height: 0 };
  });
  function arrange() {
    for (const chart of charts) {
      const tracks = chart.t.tracks.filter(k =>
        (k.stands || $("ranks").checked) && (k.lane === COMPUTE || $("lanes").checked));
      const big = tracks.filter(k => k.lane === COMPUTE).length <= 8;
      let y = 6;
      chart.rows = [];
      for (let i = 0; i < tracks.length; ++i) {
        const track = tracks[i], main = track.lane === COMPUTE;
        const height = main ? (big ? 28 : 21) * (track.slots > 1 ? 1.5 : 1) : Math.min(6 * track.slots, 18);
        chart.rows.push({ track, y, height });
        y += height + (main ? 2 : 1);
        const next = tracks[i + 1];
        if (next && next.actor === track.actor) continue;
        if ($("memory").checked && chart.t.memory[track.actor].length) {
          chart.rows.push({ memory: chart.t.memory[track.actor], actor: track.actor, y, height: big ? 26 : 15 });
          y += (big ? 26 : 15) + 2;
        }
        y += big ? 8 : 4;
      }
      chart.height = y + 2;
    }
  }

  // ---- drawing ----
  function prepare(canvas, height) {
    const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth;
    canvas.style.height = height + "px";
    if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio);
    if (canvas.height !== Math.round(height * ratio)) canvas.height = Math.round(height * ratio);
    const g = canvas.getContext("2d");
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, width, height);
    return [g, width];
  }
  const span = width => Math.max(1, width - GUTTER - RIGHT);
  const x = (t, width) => GUTTER + (t - view.from) / (view.to - view.from) * span(width);
  const when = (px, width) => view.from + (px - GUTTER) / span(width) * (view.to - view.from);
  const font = (size, weight = 400) => weight + " " + size + "px system-ui, 'DejaVu Sans', sans-serif";
  function first(track) {  // the first bar that may still reach into the view
    let low = 0, high = track.bars.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (track.bars[middle][START] < view.from - track.longest) low = middle + 1; else high = middle;
    }
    return low;
  }
  function drawAxis() {
    const [g, width] = prepare($("axis"), 26);
    g.font = font(11);
    g.fillStyle = theme.soft;
    g.textAlign = "center";
    for (const t of ticks(span(width))) g.fillText(time(t), x(t, width), 17);
    if (view.select) {
      g.globalAlpha = .25;
      g.fillRect(view.select[0], 0, view.select[1] - view.select[0], 26);
      g.globalAlpha = 1;
    } else if (view.cross !== null) {
      const text = time(view.cross), at = x(view.cross, width), w = g.measureText(text).width + 10;
      g.fillStyle = theme.fg;
      g.fillRect(at - w / 2, 4, w, 18);
      g.fillStyle = theme.bg;
      g.fillText(text, at, 17);
    }
  }
  function drawBars(g, chart, row, width) {
    const { track, y, height } = row, main = track.lane === COMPUTE;
    if (main) {
      g.fillStyle = theme.row;
      const from = Math.max(GUTTER, x(0, width)), to = Math.min(width - RIGHT, x(chart.t.length, width));
      if (to > from) g.fillRect(from, y, to - from, height);
    }
    let drawn = -Infinity;
    for (let i = first(track); i < track.bars.length; ++i) {
      const b = track.bars[i];
      if (b[START] > view.to) break;
      if (b[END] < view.from) continue;
      const left = x(b[START], width), w = x(b[END], width) - left;
      if (w < .5 && left - drawn < .5 && b[SLOTS] === 1) continue;  // narrower than what can be seen
      drawn = left;
      const h = height / b[SLOTS], top = y + h * b[SLOT], gap = Math.min(1, w / 6), style = data.styles[b[STYLE]];
      const paler = 1 - .75 * Math.min(1, (b[WAITING] || 0) / (b[END] - b[START] || 1));
      const shown = view.followed === null || view.followed === b[MICROBATCH] ? 1 : .18;
      g.globalAlpha = paler * shown;
      g.fillStyle = style[0];
      g.fillRect(left, top, Math.max(w - gap, .5), h - (b[SLOTS] > 1 ? .5 : 0));
      if (main && w > 4 && b[HALFWAY]) {  // of a backward: its gradient leaves
        g.fillStyle = "rgba(255, 255, 255, .55)";
        g.fillRect(x(b[HALFWAY], width) - .5, top, 1, h);
      }
      const text = data.strings[b[CAPTION]], ink = paler < .6 ? theme.fg : style[1];
      g.globalAlpha = shown;
      if (main && w > 8 && text)
        caption(g, text, b[MICROBATCH] === null ? text.length : chart.t.widest, left, top, w, h, ink, width);
      g.globalAlpha = 1;
      if (view.hover !== null && view.hover === b[WHAT] && main) {
        g.strokeStyle = theme.fg;
        g.lineWidth = 2;
        g.strokeRect(left + 1, top + 1, Math.max(w - gap - 2, 1), h - 2);
      }
    }
  }
  function caption(g, text, letters, left, top, w, h, ink, width) {
    const from = Math.max(left, GUTTER), to = Math.min(left + w, width - RIGHT);  // stays in sight while zoomed
    const size = Math.min(12, h - 3, (to - from - 2) / (.62 * letters));
    if (size < 6) return;
    g.fillStyle = ink;
    g.font = font(size);
    g.textAlign = "center";
    g.fillText(text, (from + to) / 2, top + h / 2 + size * .36);
  }
  function drawMemory(g, chart, row, width) {
    const top = most[chart.t.unit] || 1, base = row.y + row.height;
    const clamp = px => Math.min(Math.max(px, GUTTER - 4), width - RIGHT + 4);  // edges of the clipped part stay unseen
    g.beginPath();
    g.moveTo(clamp(x(0, width)), base);
    let level = base;
    for (let i = 0; i < row.memory.length; ++i) {
      const [t, v] = row.memory[i], next = row.memory[i + 1];
      if (next && next[0] <= t) continue;  // only the last of several changes at one time can be seen
      const at = clamp(x(t, width));
      g.lineTo(at, level);
      level = base - v / top * (row.height - 2);
      g.lineTo(at, level);
    }
    const end = clamp(x(chart.t.length, width));
    g.lineTo(end, level);
    g.lineTo(end, base);
    g.fillStyle = theme.memory;
    g.fill();
    g.strokeStyle = theme.edge;
    g.lineWidth = 1;
    g.stroke();
  }
  function drawChart(chart) {
    const [g, width] = prepare(chart.canvas, chart.height);
    g.strokeStyle = theme.line;
    g.lineWidth = 1;
    g.beginPath();
    for (const t of ticks(span(width))) {
      const at = Math.round(x(t, width)) + .5;
      g.moveTo(at, 0);
      g.lineTo(at, chart.height);
    }
    g.stroke();
    g.save();
    g.beginPath();
    g.rect(GUTTER, 0, span(width), chart.height);
    g.clip();
    for (const row of chart.rows) row.memory ? drawMemory(g, chart, row, width) : drawBars(g, chart, row, width);
    const end = x(chart.t.length, width);
    g.setLineDash([4, 4]);
    g.strokeStyle = theme.soft;
    g.beginPath();
    g.moveTo(end, 0);
    g.lineTo(end, chart.height);
    g.stroke();
    g.setLineDash([]);
    if (view.cross !== null) {
      const at = x(view.cross, width);
      g.strokeStyle = theme.fg;
      g.globalAlpha = .5;
      g.beginPath();
      g.moveTo(at, 0);
      g.lineTo(at, chart.height);
      g.stroke();
      g.globalAlpha = 1;
    }
    g.restore();
    for (const row of chart.rows) {
      g.textAlign = "right";
      if (row.memory) {
        const peak = Math.max(0, ...row.memory.map(p => p[1]));
        g.font = font(10);
        g.fillStyle = theme.soft;
        g.fillText(chart.t.unit === "bytes" ? amount(peak, "bytes") : "peak " + trim(peak, 4), GUTTER - 8,
          row.y + row.height / 2 + 4);
      } else if (row.track.lane === COMPUTE) {
        g.font = font(12, 500);
        g.fillStyle = theme.fg;
        g.fillText(row.track.name, GUTTER - 8, row.y + row.height / 2 + 4);
      }
    }
  }
  let waiting = false;
  function redraw() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; drawAxis(); charts.forEach(drawChart); });
  }

  // ---- what is under the pointer ----
  function find(chart, px, py) {
    const width = chart.canvas.clientWidth, t = when(px, width);
    if (px < GUTTER || px > width - RIGHT) return null;
    for (const row of chart.rows) {
      if (py < row.y || py > row.y + row.height) continue;
      if (row.memory) return { row, t };
      let best = null;
      for (let i = first(row.track); i < row.track.bars.length; ++i) {
        const b = row.track.bars[i];
        if (b[START] > t) break;
        const h = row.height / b[SLOTS], top = row.y + h * b[SLOT];
        if (b[END] >= t && py >= top && py <= top + h) best = b;
      }
      return { row, t, bar: best };
    }
    return null;
  }
  const level = (curve, t) => { let v = 0; for (const [at, a] of curve) { if (at > t) break; v = a; } return v; };
  function line(label, value) {
    const d = document.createElement("div"), s = document.createElement("span");
    s.textContent = value;
    d.append(label + " ", s);
    return d;
  }
  function tip(chart, found, event) {
    const box = $("tip"), b = found && found.bar;
    box.replaceChildren();
    if (b) {
      const head = document.createElement("b");
      head.textContent = data.strings[b[WHAT]];
      box.append(head, line("from", time(b[START]) + " to " + time(b[END]) + " (" + time(b[END] - b[START]) + ")"));
      if (b[HALFWAY]) box.append(line("gradient leaves at", time(b[HALFWAY])));
      if (b[WAITING]) box.append(line("of it waiting for other ranks", time(b[WAITING])));
      const waited = data.strings[b[WAITED]];
      box.append(line("waited for", waited || "nothing"));
      const curve = chart.t.memory[found.row.track.actor];
      if (curve.length) box.append(line("memory", amount(level(curve, found.t), chart.t.unit)));
      for (const other of data.timelines) {
        const same = other !== chart.t && b[MICROBATCH] !== null && other.index.get(b[WHAT]);
        if (!same) continue;
        const mine = b[END] - b[START], theirs = same[END] - same[START];
        const change = mine > 0 ? ", " + (theirs >= mine ? "+" : "") + trim(100 * (theirs / mine - 1), 3) + "%" : "";
        box.append(line("in " + other.title + ":", "from " + time(same[START]) + " (" + time(theirs) + change + ")"));
      }
    } else if (found && found.row.memory) {
      box.append(line("actor " + found.row.actor + " at " + time(found.t) + ":",
        amount(level(found.row.memory, found.t), chart.t.unit)));
    } else if (found && found.row.track.lane === COMPUTE && found.t <= chart.t.length && found.t >= 0) {
      box.append(line(found.row.track.name + " at " + time(found.t) + ":", "idle"));
    }
    box.hidden = !box.childNodes.length;
    if (box.hidden) return;
    const left = event.clientX + 16, below = event.clientY + 18;
    box.style.left = Math.max(4, Math.min(left, innerWidth - box.offsetWidth - 8)) + "px";
    box.style.top = (below + box.offsetHeight > innerHeight ? event.clientY - box.offsetHeight - 12 : below) + "px";
  }

  // ---- moving about ----
  function show(from, to) {
    const least = length * 1e-7, wide = Math.min(Math.max(to - from, least), length * 1.02);
    const low = Math.max(-length * .01, Math.min(from, length * 1.01 - wide));
    view.from = low;
    view.to = low + wide;
    redraw();
  }
  function zoom(factor, at = (view.from + view.to) / 2) {
    show(at - (at - view.from) * factor, at + (view.to - at) * factor);
  }
  const fit = () => show(0, length);
  for (const chart of charts) {
    const { canvas } = chart;
    let drag = null;
    canvas.addEventListener("pointerdown", e => {
      drag = { x: e.clientX, from: view.from, to: view.to, moved: false };
      canvas.setPointerCapture(e.pointerId);
    });
    canvas.addEventListener("pointermove", e => {
      const width = canvas.clientWidth;
      if (drag) {
        if (Math.abs(e.clientX - drag.x) > 3) drag.moved = true;
        if (drag.moved) {
          canvas.classList.add("moving");
          const shift = (drag.x - e.clientX) / span(width) * (drag.to - drag.from);
          show(drag.from + shift, drag.to + shift);
          return;
        }
      }
      const box = canvas.getBoundingClientRect(), found = find(chart, e.clientX - box.left, e.clientY - box.top);
      const t = when(e.clientX - box.left, width);
      view.cross = t >= view.from && t <= view.to ? t : null;
      view.hover = found && found.bar && found.bar[MICROBATCH] !== null ? found.bar[WHAT] : null;
      tip(chart, found, e);
      redraw();
    });
    canvas.addEventListener("pointerup", e => {
      canvas.classList.remove("moving");
      if (drag && !drag.moved) {
        const box = canvas.getBoundingClientRect(), found = find(chart, e.clientX - box.left, e.clientY - box.top);
        const clicked = found && found.bar ? found.bar[MICROBATCH] : null;
        view.followed = clicked === view.followed ? null : clicked;
        redraw();
      }
      drag = null;
    });
    canvas.addEventListener("pointerleave", () => {
      view.cross = view.hover = null;
      $("tip").hidden = true;
      redraw();
    });
    canvas.addEventListener("wheel", e => {
      const width = canvas.clientWidth, wide = view.to - view.from;
      if (e.ctrlKey || e.metaKey) {
        e.preventDefault();
        zoom(Math.exp(Math.max(-1, Math.min(1, e.deltaY * .003))), when(e.clientX - canvas.getBoundingClientRect().left, width));
      } else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
        e.preventDefault();
        const shift = (e.deltaX || e.deltaY) / span(width) * wide;
        show(view.from + shift, view.to + shift);
      }
    }, { passive: false });
  }
  const axis = $("axis");
  axis.addEventListener("pointerdown", e => { view.select = [e.clientX, e.clientX]; axis.setPointerCapture(e.pointerId); });
  axis.addEventListener("pointermove", e => { if (view.select) { view.select[1] = e.clientX; redraw(); } });
  axis.addEventListener("pointerup", () => {
    const [a, b] = view.select || [0, 0], width = axis.clientWidth;
    view.select = null;
    if (Math.abs(b - a) > 4) show(when(Math.min(a, b), width), when(Math.max(a, b), width)); else redraw();
  });
  axis.addEventListener("dblclick", fit);
  addEventListener("keydown", e => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const wide = view.to - view.from;
    const act = { w: () => zoom(.6), "+": () => zoom(.6), s: () => zoom(1 / .6), "-": () => zoom(1 / .6),
      a: () => show(view.from - wide / 5, view.to - wide / 5), d: () => show(view.from + wide / 5, view.to + wide / 5),
      "0": fit, Escape: () => { view.followed = null; redraw(); } }[e.key];
    if (act) act();
  });
  $("in").addEventListener("click", () => zoom(.6));
  $("out").addEventListener("click", () => zoom(1 / .6));
  $("fit").addEventListener("click", fit);
  if (!data.timelines.some(t => t.tracks.some(k => k.lane !== COMPUTE))) $("lanes").closest("label").hidden = true;
  if (!data.timelines.some(t => t.memory.some(m => m.length))) $("memory").closest("label").hidden = true;
  $("ranks").checked = data.timelines.every(t => rows(t) <= FEW);
  if (!data.timelines.some(t => t.ranks > 1)) $("ranks").closest("label").hidden = true;
  for (const id of ["memory", "lanes", "ranks"]) $(id).addEventListener("change", () => { arrange(); redraw(); });
  function dress() {
    const css = getComputedStyle(document.documentElement);
    for (const name of ["bg", "fg", "soft", "line", "row", "memory", "edge"])
      theme[name] = css.getPropertyValue("--" + name).trim();
    redraw();
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", dress);
  new ResizeObserver(redraw).observe(document.body);
  arrange();
  dress();
})();
)js";

}  // namespace stretto
