// Live charts from /stats. Counters only grow, so a rate is the difference of two samples.

import { address, announce, byId, bytes, count, element, milliseconds, percent, replace, svg } from "./dom.js";

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

/** A chart of the last two minutes, with axes. The pointer, or an arrow key, reads the values of a moment. */
class Chart {
  #chart;
  #samples = [];
  /** The slot that is read, from 0 to the last one; `null`: the latest. */
  #slot = null;
  #drawing = svg("svg", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", tabindex: "0", preserveAspectRatio: "none",
    onpointermove: (event) => {
      const { left, width } = this.#drawing.getBoundingClientRect();
      this.#read(Math.round(((event.clientX - left) / width) * (KEPT - 1)));
    },
    onpointerleave: () => this.#read(null),
    onblur: () => this.#read(null),
    onkeydown: (event) => {
      const now = this.#slot ?? KEPT - 1;
      const slot = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: KEPT - this.#samples.length, End: KEPT - 1 }[event.key];
      if (slot === undefined) return;
      event.preventDefault();
      this.#read(slot);
      announce(`${this.#moment.textContent}: ${this.#legend.innerText}`);
    },
  });
  #moment = element("span", { class: "moment" });
  #legend = element("ul", { class: "legend" });
  #labels = [1, 0.5, 0].map(() => element("span"));

  constructor(chart) {
    this.#chart = chart;
    const minutes = (KEPT * INTERVAL) / 60000;
    this.figure = element("figure", { class: "chart" },
      element("figcaption", {}, element("h3", {}, chart.title), this.#moment),
      element("div", { class: "plot" },
        element("div", { class: "axis values", "aria-hidden": "true" }, ...this.#labels), this.#drawing,
        element("div", { class: "axis times", "aria-hidden": "true" },
          ...[`−${minutes} min`, `−${minutes / 2} min`, "now"].map((text) => element("span", {}, text)))),
      this.#legend);
    this.#draw();
  }

  add(before, now, seconds) {
    this.#samples.push(this.#chart.lines.map(([, value]) => value(before, now, seconds)));
    if (this.#samples.length > KEPT) this.#samples.shift();
    this.#draw();
  }

  #read(slot) {
    const first = KEPT - this.#samples.length;
    this.#slot = slot === null || this.#samples.length === 0 ? null : Math.min(Math.max(slot, first), KEPT - 1);
    this.#draw();
  }

  #draw() {
    const { title, lines, unit, top } = this.#chart;
    const highest = top ?? roundedUp(Math.max(...this.#samples.flat().filter((value) => value !== null), 0));
    const slot = this.#slot ?? KEPT - 1;
    const values = this.#samples[slot - KEPT + this.#samples.length] ?? [];
    const texts = lines.map(([name], index) => `${name} ${values[index] == null ? "–" : unit(values[index])}`);
    const ago = ((KEPT - 1 - slot) * INTERVAL) / 1000;
    this.#moment.textContent = ago === 0 ? "now" : `${ago} s ago`;
    this.#drawing.setAttribute("aria-label", `${title}: ${texts.join(", ")}. Arrow keys read earlier values.`);
    this.#labels.forEach((label, index) => {
      label.textContent = index === 2 ? "0" : highest > 0 ? unit(highest * (1 - index / 2)) : "";
      if (index === 1 && label.textContent === this.#labels[0].textContent) label.textContent = "";
    });
    const x = (slot * WIDTH) / (KEPT - 1);
    replace(this.#drawing,
      ...[0, 0.5, 1].map((part) =>
        svg("line", { class: "grid", x1: 0, x2: WIDTH, y1: y(part), y2: y(part) })),
      ...[0, 0.5, 1].map((part) =>
        svg("line", { class: "grid", x1: WIDTH * part, x2: WIDTH * part, y1: y(0), y2: y(1) })),
      this.#slot !== null ? svg("line", { class: "reader", x1: x, x2: x, y1: y(0), y2: y(1) }) : null,
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
      const command = isOpen ? "L" : "M";
      // A point by itself is a line of no length, which round ends make visible.
      const dot = isOpen ? "" : `h0.01`;
      isOpen = true;
      const height = y(highest > 0 ? value / highest : 0);
      return `${command}${((first + place) * step).toFixed(1)} ${height.toFixed(1)}${dot}`;
    }).join("");
  }
}

/** The place of a share of the highest value. */
const y = (share) => HEIGHT - 2 - share * (HEIGHT - 4);

/** Rounds up to a number that reads well on an axis: 1, 2, 4, 5 or 8, and zeros. */
function roundedUp(value) {
  if (value <= 0) return 0;
  const power = 10 ** Math.floor(Math.log10(value));
  return power * [1, 2, 4, 5, 8, 10].find((one) => one * power >= value * 0.999999);
}
