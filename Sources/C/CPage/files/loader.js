// Requests of images. A new request ends the one before; a source is loaded once for all requests of it.

import { address } from "./dom.js";

/** Encodes a value as little as its place in a query, an attribute and a shell's quotes allows. */
export function encode(value) {
  return encodeURIComponent(value)
    .replace(/%(3A|2F|40|2C)/g, (code) => decodeURIComponent(code))
    .replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** Returns a query of names and values. */
export const query = (pairs) => pairs.map(([name, value]) => `${name}=${encode(value)}`).join("&");

/** Returns the pairs with others in place of those with their names. */
export function changed(pairs, others) {
  return [...pairs.filter(([name]) => !(name in others)), ...Object.entries(others)];
}

/** Header fields without effect on the server. A request that has one is not answered by the browser's own cache, and
    the browser adds no `no-cache`, which would make the server ask the origin again. */
const PAST_BROWSER_CACHE = { "Cache-Control": "no-transform" };

/** An error response of the server. */
export class ServerError extends Error {
  constructor(status, error) {
    super(error.message);
    Object.assign(this, { status, code: error.code, parameter: error.parameter, requestId: error.request_id });
  }
}

/** Loads what one view shows. Each answer is `{ value }` or `{ error }`. A request is
    `{ file, pairs, accept, token }`: `pairs` name the URL, unless a local file is the source. */
export class Loader {
  #running = new AbortController();
  #source = null;
  #ahead = null;

  /** Begins a request, and ends an earlier one, whose signal is then aborted. Returns the signal. */
  begin() {
    this.#running.abort();
    this.#running = new AbortController();
    return this.#running.signal;
  }

  /** Loads the result of a request. */
  result(request, signal) {
    const ahead = this.#ahead;
    this.#ahead = null;
    if (ahead && query(ahead.request.pairs) === query(request.pairs)) return ahead.answer;
    return settled(send("image", request, { signal, accept: request.accept || "*/*" }));
  }

  /** Loads the first result, which the page asks for once more when it is whole. */
  beginAhead(request) {
    this.#ahead = { request, answer: this.result(request) };
    return this.#ahead.answer;
  }

  /** Loads the result in a format of its own. It gives way to other requests (RFC 9218). */
  inFormat(format, request, signal) {
    const pairs = changed(request.pairs, { format });
    return settled(send("image", { ...request, pairs }, { signal, accept: "*/*", urgency: "u=6" }));
  }

  /** Loads the source's own bytes, where the server allows that, and its description. */
  source({ file, pairs, token }, mayPass) {
    const url = pairs.filter(([name]) => name === "url");
    const key = file ?? `${url[0]?.[1]} ${token ?? ""} ${mayPass}`;
    if (this.#source?.key === key) return this.#source;
    this.#source?.running.abort();
    const running = new AbortController();
    const ask = (path, more, accept) =>
      settled(send(path, { file, pairs: [...url, ...more], token }, { signal: running.signal, accept }));
    this.#source = {
      key, running,
      info: ask("info", [], "application/json"),
      image: file ? Promise.resolve({ value: { blob: file } }) : ask("image", mayPass ? [["pass", "all"]] : [], "*/*"),
      /** The source as this server sends it, for browsers that cannot show the source's format. */
      converted: () => ask("image", [], "image/webp"),
    };
    return this.#source;
  }
}

const settled = (promise) => promise.then((value) => ({ value }), (error) => ({ error }));

/** Sends a request. Returns the response, its image as `blob` or its JSON as `data`, and the time that it took. */
async function send(path, { file, pairs, token }, { signal, accept, urgency }) {
  const headers = { ...PAST_BROWSER_CACHE, Accept: accept };
  if (urgency) headers.Priority = urgency;
  if (token) headers.Authorization = `Bearer ${token}`;
  const start = performance.now();
  const body = file ? { method: "POST", body: file } : {};
  const response = await fetch(address(`${path}?${query(pairs)}`), { ...body, headers, signal, cache: "no-store" });
  if (!response.ok) throw await serverError(response);
  const isImage = (response.headers.get("Content-Type") ?? "").startsWith("image/");
  const content = isImage ? { blob: await response.blob() } : { data: await response.json() };
  return { response, ...content, time: performance.now() - start };
}

async function serverError(response) {
  const body = await response.json().catch(() => null);
  return new ServerError(response.status, body?.error ?? { code: "unknown", message: response.statusText });
}

/** Whether an AVIF follows: the server sends a faster format first, fresh for 30 seconds more (docs/http-api.md, Deferred
    AVIF). */
export function isProvisional({ response, blob }, { pairs, accept }) {
  const lifetime = /max-age=(\d+)/.exec(response.headers.get("Cache-Control"))?.[1];
  const rest = Number(lifetime) - Number(response.headers.get("Age"));
  const isAuto = pairs.every(([name, value]) => name !== "format" || value === "auto");
  return isAuto && accept.includes("image/avif") && blob?.type !== "image/avif" && Math.abs(rest - 30) <= 1;
}

/** The stages of `Server-Timing`, as `[name, milliseconds]`. */
export function timings(response) {
  return (response.headers.get("Server-Timing") ?? "").split(",").map((entry) => {
    const [name, ...parameters] = entry.trim().split(";");
    const duration = parameters.map((one) => /^\s*dur=([\d.]+)$/.exec(one)).find(Boolean);
    return [name, duration ? Number(duration[1]) : NaN];
  }).filter(([name, time]) => name && Number.isFinite(time));
}
