// Loads source, description and result of a request, and shows them. The last request wins.

import { address, announce, byId, bytes, count, element, milliseconds, percent, replace } from "./dom.js";
import { query } from "./snippets.js";

/** A header field without effect on the server. A request that has one is not answered by the browser's own cache, and
    the browser adds no `no-cache`, which would make the server ask the origin again. */
const PAST_BROWSER_CACHE = { "Cache-Control": "no-transform" };

/** An error response of the server. */
class ServerError extends Error {
  constructor(status, error) {
    super(error.message);
    Object.assign(this, { status, code: error.code, parameter: error.parameter, requestId: error.request_id });
  }
}

/** Loads the images of a page. */
export class Loader {
  #running = new AbortController();
  #source = null;

  /** Loads what `pairs` ask for, and ends an earlier load. Returns the answers, or `null` if a later load ended this one. */
  async load(pairs, { accept, token }) {
    this.#running.abort();
    const running = this.#running = new AbortController();
    const url = pairs.find(([name]) => name === "url")[1];
    const get = (path, accepted) => request(path, { accepted, token, signal: running.signal });
    const sourceKey = `${url} ${token ?? ""}`;
    if (this.#source?.key !== sourceKey) {
      const only = query([["url", url]]);
      this.#source = {
        key: sourceKey,
        info: settled(get(`info?${only}`, "application/json").then(({ response }) => response.json())),
        image: settled(get(`image?${only}`, "*/*")),
      };
    }
    const { info, image } = this.#source;
    const result = await settled(get(`image?${query(pairs)}`, accept || "*/*"));
    const answers = { result, info: await info, source: await image };
    if (running.signal.aborted) {
      // The source may have ended with this load.
      if (isAbort(answers.info) || isAbort(answers.source)) this.#source = null;
      return null;
    }
    if (isAbort(answers.info) || isAbort(answers.source)) {
      this.#source = null;
      return this.load(pairs, { accept, token });
    }
    return answers;
  }
}

const settled = (promise) => promise.then((value) => ({ value }), (error) => ({ error }));
const isAbort = ({ error }) => error?.name === "AbortError";

/** Requests a path. Returns the response, its body as a blob where it is an image, and the time that it took. */
async function request(path, { accepted, token, signal }) {
  const headers = { ...PAST_BROWSER_CACHE, Accept: accepted };
  if (token) headers.Authorization = `Bearer ${token}`;
  const start = performance.now();
  const response = await fetch(address(path), { headers, signal, cache: "no-store" });
  if (!response.ok) throw await serverError(response);
  const type = response.headers.get("Content-Type") ?? "";
  const blob = type.startsWith("image/") ? await response.blob() : null;
  return { response, blob, time: performance.now() - start };
}

async function serverError(response) {
  const body = await response.json().catch(() => null);
  return new ServerError(response.status, body?.error ?? { code: "unknown", message: response.statusText });
}

/** Shows an image of the comparison. Returns its size in pixels, or `null` if the browser cannot show it. */
async function showImage(image, answer) {
  if (image.src.startsWith("blob:")) URL.revokeObjectURL(image.src);
  image.hidden = true;
  if (!answer.value?.blob) {
    image.removeAttribute("src");
    return null;
  }
  image.src = URL.createObjectURL(answer.value.blob);
  try {
    await image.decode();
  } catch {
    return null;
  }
  image.hidden = false;
  return { width: image.naturalWidth, height: image.naturalHeight };
}

/** Shows the answers. Returns the sizes of source and result for the snippets; `null` if a later load has begun. */
export async function show(answers, pairs, controls, isLatest) {
  const { result, info, source } = answers;
  const [sourceSize, resultSize] =
    await Promise.all([showImage(byId("source-image"), source), showImage(byId("result-image"), result)]);
  if (!isLatest()) return null;
  const problem = result.error ?? null;
  showProblem(problem, controls);
  byId("comparison").hidden = !sourceSize && !resultSize;
  byId("comparison").classList.toggle("single", !sourceSize || !resultSize);
  showUnshown(result, resultSize);
  showFacts(answers, new Map(pairs), resultSize);
  showStages(result.value);
  byId("outcome").hidden = problem !== null;
  if (result.value) {
    const { blob, response, time } = result.value;
    announce(`Result: ${blob.type}, ${bytes(blob.size)}, ${milliseconds(time)}, ${response.headers.get("Cache-Status")}`);
  }
  const density = Number(result.value?.response.headers.get("Content-DPR")) || 1;
  return {
    sourceWidth: info.value?.width,
    width: resultSize && Math.max(Math.round(resultSize.width / density), 1),
    height: resultSize && Math.max(Math.round(resultSize.height / density), 1),
  };
}

function showProblem(error, controls) {
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

function showUnshown(result, size) {
  const place = byId("unshown");
  place.hidden = !result.value?.blob || size !== null;
  URL.revokeObjectURL(unshown);
  if (place.hidden) return;
  const { blob } = result.value;
  const name = `result.${blob.type.replace(/^image\//, "").replace(/[^a-z0-9]/g, "")}`;
  unshown = URL.createObjectURL(blob);
  const link = element("a", { href: unshown, download: name }, "Save it");
  replace(place, `This browser cannot show ${blob.type}. `, link, ".");
}

/** The formats that have a quality. */
const LOSSY = /^image\/(jpeg|webp|avif|jxl)$/;

function showFacts({ result, info, source }, asked, size) {
  const { blob, response } = result.value ?? {};
  const about = info.value;
  const field = (name) => response?.headers.get(name) ?? null;
  const saved = about && blob && blob.size < about.bytes ? ` (−${percent(1 - blob.size / about.bytes)})` : "";
  const rows = [
    ["Format", about && about.format + (about.frames > 1 ? `, ${about.frames} frames` : ""),
      blob?.type.replace("image/", "")],
    ["Size", about && `${count(about.width)} × ${count(about.height)}`, size && `${count(size.width)} × ${count(size.height)}`],
    ["Bytes", about && bytes(about.bytes), blob && bytes(blob.size) + saved],
    ["Quality", null, field("X-Quality") ?? (LOSSY.test(blob?.type) ? asked.get("quality") ?? "the format's default" : null)],
    ["Density", about && String(about.density), field("Content-DPR")],
    ["Colour", about && `${about.colour.space}, ${about.colour.bits} bits${about.alpha ? ", alpha" : ""}`, blob && "sRGB, 8 bits"],
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
  replace(byId("served"), ...served.filter(([, value]) => value).flatMap(([title, value]) =>
    [element("dt", {}, title), element("dd", {}, value)]));
  const missing = info.error ?? source.error;
  byId("source-note").textContent =
    missing && !result.error ? `The source by itself is not shown: ${missing.message}` : "";
}

/** The stages of `Server-Timing`, as `[name, milliseconds]`. */
export function parseTimings(text) {
  return (text ?? "").split(",").map((entry) => {
    const [name, ...parameters] = entry.trim().split(";");
    const duration = parameters.map((one) => /^\s*dur=([\d.]+)$/.exec(one)).find(Boolean);
    return [name, duration ? Number(duration[1]) : NaN];
  }).filter(([name, time]) => name && Number.isFinite(time));
}

const MEANINGS = {
  queue: "waited for a place", disk: "read from disk", dns: "looked up the name", connect: "connected",
  tls: "secured the connection", ttfb: "waited for the first byte", download: "received the body",
  decode: "decoded", transform: "resized and changed", encode: "encoded", total: "all of it, in the server",
};

/** Shows the stages as bars, each from the end of the one before. */
function showStages(value) {
  const stages = parseTimings(value?.response.headers.get("Server-Timing"));
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
