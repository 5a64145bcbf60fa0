// What the server says of a result: errors, facts beside the source's, stages, and how it was served.

import { announce, byId, bytes, count, element, milliseconds, percent, replace } from "./dom.js";
import { ServerError, timings } from "./loader.js";

/** Shows an error in place of the image, and at the control that it names; `null` ends it. */
export function showProblem(error, controls) {
  const place = byId("problem");
  place.hidden = error === null;
  controls.mark(error?.parameter, error?.message ?? "");
  if (error === null) return replace(place);
  if (!(error instanceof ServerError)) {
    return replace(place, element("strong", {}, "The server did not answer"), element("p", {}, String(error.message)));
  }
  const names = [error.parameter && ["parameter", error.parameter], ["request", error.requestId]].filter(Boolean);
  return replace(place,
    element("strong", {}, `${error.status} ${error.code}`),
    element("p", {}, error.message),
    element("p", { class: "fine" }, names.map(([name, value]) => `${name} ${value}`).join(" · ")));
}

/** The address of a result that the browser cannot show. */
let unshown = "";

/** Offers a result that the browser cannot show as a file. */
export function showUnshown(blob) {
  const place = byId("unshown");
  place.hidden = !blob;
  URL.revokeObjectURL(unshown);
  if (!blob) return;
  const name = `result.${blob.type.replace(/^image\//, "").replace(/[^a-z0-9]/g, "")}`;
  unshown = URL.createObjectURL(blob);
  const link = element("a", { href: unshown, download: name }, "Save it");
  replace(place, element("span", {}, `This browser cannot show ${blob.type}. `, link, "."));
}

/** The formats that have a quality. */
const LOSSY = /^image\/(jpeg|webp|avif|jxl)$/;

/** Returns how much smaller a result is than its source, as a text; "" if it is not, or the source is not known. */
const saved = (blob, source) =>
  (source && blob && blob.size < source.bytes ? `−${percent(1 - blob.size / source.bytes)}` : "");

/** Shows the line below the image, which stays in sight: format, size, bytes and time; and a note on the image. */
export function showReadout(value, size, source, note) {
  const parts = value ? [
    [value.blob?.type.replace("image/", ""), "strong"], [size && `${count(size.width)} × ${count(size.height)}`],
    [value.blob && bytes(value.blob.size), "strong"], [saved(value.blob, source), "good"], [milliseconds(value.time)],
    [value.response.headers.get("Cache-Status")?.includes("; hit") ? "hit" : "miss"],
  ] : [];
  replace(byId("readout"), ...parts.filter(([text]) => text)
    .map(([text, kind]) => element("span", { class: kind ?? "" }, text)));
  byId("note").textContent = note;
}

/** Shows source and result in figures. `value` is the answer that is compared, `asked` the parameters. */
export function showFacts(value, source, asked, size) {
  const { blob, response } = value ?? {};
  const field = (name) => response?.headers.get(name) ?? null;
  const less = saved(blob, source);
  const rows = [
    ["Format", source && source.format + (source.frames > 1 ? `, ${source.frames} frames` : ""),
      blob?.type.replace("image/", "")],
    ["Size", source && `${count(source.width)} × ${count(source.height)}`, size && `${count(size.width)} × ${count(size.height)}`],
    ["Bytes", source && bytes(source.bytes), blob && bytes(blob.size) + (less && ` (${less})`)],
    ["Quality", null, field("X-Quality") ?? (LOSSY.test(blob?.type) ? asked.get("quality") ?? "the format's default" : null)],
    ["Density", source && String(source.density), field("Content-DPR")],
    ["Colour", source && `${source.colour.space}, ${source.colour.bits} bits${source.alpha ? ", alpha" : ""}`, blob && "sRGB, 8 bits"],
  ];
  const cells = ([title, left, right]) => element("tr", {},
    element("th", { scope: "row" }, title), element("td", {}, left ?? "–"), element("td", {}, right ?? "–"));
  replace(byId("facts"), ...rows.map(cells));
  const served = [
    ["Cache-Status", field("Cache-Status")], ["Age", field("Age") && `${field("Age")} s`],
    ["Cache-Control", field("Cache-Control")], ["Vary", field("Vary")], ["ETag", field("ETag")],
    ["Scaled down from", field("X-Scaled-Down")], ["Frames dropped", field("X-Frames-Dropped")],
    ["Damaged", field("X-Damaged") && "the source is damaged"],
    ["Request", field("X-Request-ID")],
  ];
  replace(byId("served"), ...served.filter(([, text]) => text).flatMap(([title, text]) =>
    [element("dt", {}, title), element("dd", {}, text)]));
}

/** Tells users of screen readers what the result is. */
export function announceResult({ blob, response, time }) {
  announce(`Result: ${blob.type}, ${bytes(blob.size)}, ${milliseconds(time)}, ${response.headers.get("Cache-Status")}`);
}

const MEANINGS = {
  queue: "waited for a place", disk: "read from disk", dns: "looked up the name", connect: "connected",
  tls: "secured the connection", ttfb: "waited for the first byte", download: "received the body",
  decode: "decoded", transform: "resized and changed", encode: "encoded", total: "all of it, in the server",
};

/** Shows the stages as bars, each from the end of the one before. */
export function showStages(value) {
  const stages = value ? timings(value.response) : [];
  const steps = stages.filter(([name]) => name !== "total");
  const total = stages.find(([name]) => name === "total")?.[1] ?? 0;
  const length = Math.max(total, steps.reduce((sum, [, time]) => sum + time, 0), 1e-3);
  let start = 0;
  const rows = stages.map(([name, time]) => {
    const from = name === "total" ? 0 : start;
    if (name !== "total") start += time;
    const bar = element("span", { class: name === "total" ? "bar total" : "bar", "aria-hidden": "true" });
    bar.style.setProperty("--from", `${(100 * from) / length}%`);
    bar.style.setProperty("--length", `${(100 * time) / length}%`);
    return element("tr", {},
      element("th", { scope: "row", title: MEANINGS[name] ?? "" }, name),
      element("td", { class: "track" }, bar), element("td", { class: "time" }, milliseconds(time)));
  });
  replace(byId("stages"), ...rows);
  const others = steps.length > 0 ? "" : "An image from memory has no other stages. ";
  byId("seen").textContent = value ? `${others}This browser waited ${milliseconds(value.time)}.` : "";
}
