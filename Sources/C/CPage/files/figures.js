// Live charts from /stats. Counters only grow, so a rate is the difference of two samples.

import { address, byId, bytes, count, element, milliseconds, percent, replace, svg } from "./dom.js";

const INTERVAL = 2000;
const KEPT = 60;
const WIDTH = 300;
const HEIGHT = 84;

/** The value of a path such as `requests.by_outcome.hit.memory`, or 0. */
const at = (sample, path) => path.split(".").reduce((part, name) => part?.[name], sample) ?? 0;

/** How much a counter grew between two samples. A restarted server begins at 0 again. */
const grown = (before, now, path) => Math.max(at(now, path) - at(before, path), 0);

/** The share of the image requests between two samples that came from a place. */
function share(before, now, places) {
  const all = ["memory", "disk", "source", "variant", "stale", "origin", "error"];
  const sum = (names) => names.reduce((total, name) => total + grown(before, now, `requests.by_origin.${name}`), 0);
  const total = sum(all);
  return total > 0 ? sum(places) / total : null;
}

/** The mean time between two samples of a latency, in ms. */
function mean(before, now, path) {
  const number = grown(before, now, `${path}.count`);
  return number > 0 ? (grown(before, now, `${path}.sum_seconds`) / number) * 1000 : null;
}

/** A line of a chart: its name, and its value from a sample and the one before it. */
const CHARTS = [
  {
    title: "Requests", unit: (value) => `${value < 10 ? value.toFixed(1) : count(value)}/s`,
    lines: [["all", (before, now, seconds) => grown(before, now, "requests.total") / seconds]],
  },
  {
    title: "Hit ratio", unit: percent, top: 1,
    lines: [
      ["memory", (before, now) => share(before, now, ["memory"])],
      ["disk", (before, now) => share(before, now, ["disk", "source", "variant"])],
      ["origin", (before, now) => share(before, now, ["origin"])],
    ],
  },
  {
    title: "Latency, mean", unit: milliseconds,
    lines: [
      ["memory hits", (before, now) => mean(before, now, "requests.hit_latency")],
      ["others", (before, now) => mean(before, now, "requests.miss_latency")],
    ],
  },
  {
    title: "Memory", unit: bytes,
    lines: [
      ["server", (_, now) => at(now, "process.resident_bytes")],
      ["workers", (_, now) => at(now, "imaging.resident_bytes")],
      ["images", (_, now) => at(now, "memory.bytes")],
    ],
  },
  {
    title: "Queues", unit: count,
    lines: [
      ["downloads", (_, now) => at(now, "downloads.running") + at(now, "downloads.waiting")],
      ["imaging", (_, now) => at(now, "imaging.running") + at(now, "imaging.waiting")],
      // Without the request for these figures.
      ["requests", (_, now) => Math.max(at(now, "requests.active") - 1, 0)],
    ],
  },
];

/** Shows the charts, and keeps them up to date while the page is visible. */
export function startFigures(description) {
  const note = byId("figures-note");
  const shown = CHARTS.map((chart) => new Chart(chart));
  if (!description.listener.figures) {
    note.textContent = "This listener tells its status alone. The figures are at the operators' listener "
      + "(server.operator_address): open this page there.";
  } else {
    replace(byId("charts"), ...shown.map((chart) => chart.figure));
  }
  let before = null;
  async function look() {
    if (document.visibilityState === "visible") {
      const sample = await read();
      showStatus(sample);
      if (sample?.requests && before) {
        const seconds = Math.max(sample.uptime_seconds - before.uptime_seconds, 0.001);
        for (const chart of shown) chart.add(before, sample, seconds);
        showTotals(sample);
      }
      if (!before || !sample || sample.uptime_seconds !== before.uptime_seconds) before = sample?.requests ? sample : null;
    } else {
      before = null;
    }
    setTimeout(look, INTERVAL);
  }
  look();
}

/** Reads a sample; `null` if the server does not answer. */
async function read() {
  try {
    const response = await fetch(address("stats"), { cache: "no-store", signal: AbortSignal.timeout(5000) });
    return await response.json();
  } catch {
    return null;
  }
}

function showStatus(sample) {
  const status = sample?.status ?? "unreachable";
  const pill = byId("status");
  if (pill.textContent === status) return;
  pill.textContent = status;
  pill.className = `pill ${status === "serving" ? "good" : "bad"}`;
}

function showTotals(sample) {
  const totals = [
    ["requests", count(sample.requests.total)], ["hit ratio", percent(sample.requests.hit_ratio)],
    ["sent", bytes(sample.requests.bytes_sent)], ["in memory", `${count(sample.memory.entries)} images`],
    ["on disk", `${count(sample.disk.entries)} files`], ["workers", count(sample.imaging.workers)],
    ["failed URLs", count(sample.flights.failed_urls)],
  ];
  replace(byId("totals"), ...totals.map(([title, value]) =>
    element("div", {}, element("dt", {}, title), element("dd", {}, value))));
}

/** A chart of the last two minutes: lines without axes, the latest values as text. */
class Chart {
  #chart;
  #samples = [];
  #drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", preserveAspectRatio: "none" });
  #legend = element("ul", { class: "legend" });
  #top = element("span", { class: "top" });

  constructor(chart) {
    this.#chart = chart;
    this.figure = element("figure", { class: "chart" },
      element("figcaption", {}, element("h3", {}, chart.title), this.#top), this.#drawing, this.#legend);
    this.#draw();
  }

  add(before, now, seconds) {
    this.#samples.push(this.#chart.lines.map(([, value]) => value(before, now, seconds)));
    if (this.#samples.length > KEPT) this.#samples.shift();
    this.#draw();
  }

  #draw() {
    const { title, lines, unit, top } = this.#chart;
    const highest = top ?? Math.max(...this.#samples.flat().filter((value) => value !== null), 0);
    const latest = lines.map((_, index) => this.#samples.at(-1)?.[index] ?? null);
    const texts = lines.map(([name], index) => `${name} ${latest[index] === null ? "–" : unit(latest[index])}`);
    this.#drawing.setAttribute("aria-label", `${title}: ${texts.join(", ")}`);
    this.#top.textContent = highest > 0 ? `top ${unit(highest)}` : "";
    replace(this.#drawing,
      ...[0.25, 0.5, 0.75].map((part) =>
        svg("line", { class: "grid", x1: 0, x2: WIDTH, y1: HEIGHT * part, y2: HEIGHT * part })),
      ...lines.map((_, index) => svg("path", { class: `line line-${index}`, d: this.#path(index, highest) })));
    replace(this.#legend, ...texts.map((text, index) =>
      element("li", {}, element("span", { class: `mark line-${index}`, "aria-hidden": "true" }), text)));
  }

  /** Returns a path through the values of a line, with gaps where there are none. */
  #path(index, highest) {
    const step = WIDTH / (KEPT - 1);
    const first = KEPT - this.#samples.length;
    let isOpen = false;
    return this.#samples.map((values, place) => {
      const value = values[index];
      if (value === null) {
        isOpen = false;
        return "";
      }
      const x = (first + place) * step;
      const y = HEIGHT - 2 - (highest > 0 ? value / highest : 0) * (HEIGHT - 6);
      const command = isOpen ? "L" : "M";
      // A point by itself is a line of no length, which round ends make visible.
      const dot = isOpen ? "" : `h0.01`;
      isOpen = true;
      return `${command}${x.toFixed(1)} ${y.toFixed(1)}${dot}`;
    }).join("");
  }
}
