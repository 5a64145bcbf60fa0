// The operators' part: failed URLs, running downloads, purges. The token stays in this module's memory: it is in no URL,
// no storage and no cookie, and a reload forgets it.

import { address, announce, byId, bytes, count, element, replace } from "./dom.js";

const INTERVAL = 2000;

/** A refusal of the server. */
class Refusal extends Error {
  constructor(status, message) {
    super(`${status}: ${message}`);
    this.status = status;
  }
}

/** An operator's session, from the token's first use until it is forgotten. */
class Session {
  #token;

  constructor(token) {
    this.#token = token;
  }

  get token() { return this.#token; }

  /** Asks an operators' path. Throws the server's message. */
  async ask(method, path) {
    const response = await fetch(address(path), {
      method, headers: { Authorization: `Bearer ${this.#token}` }, cache: "no-store", signal: AbortSignal.timeout(30000),
    });
    const body = await response.json().catch(() => null);
    if (!response.ok) throw new Refusal(response.status, body?.error?.message ?? response.statusText);
    return body;
  }
}

let session = null;

/** The token that stands for signatures of images, if the operator wants that; else `null`. */
export const tokenForImages = () => (session && byId("token-for-images").checked ? session.token : null);

/** Stops sending the token with images. A page that opened this one can change its hash, and so what is asked for. */
export function withholdToken() {
  if (tokenForImages()) byId("token-for-images").click();
}

/** Connects the part to the page. `changed` is called when the token for images comes or goes. */
export function startOperators(description, changed) {
  const note = byId("operators-note");
  if (!description.listener.figures) {
    note.textContent = "Operators' paths are at the operators' listener: open this page there.";
    return;
  }
  if (!description.hasOperators) {
    note.textContent = "There is no /admin here: the configuration has no admin.tokens.";
    return;
  }
  byId("token-form").hidden = false;
  byId("token-form").addEventListener("submit", (event) => {
    event.preventDefault();
    if (session) leave(changed);
    else enter(byId("token").value, changed);
  });
  byId("token-for-images").addEventListener("change", changed);
  const needsToken = description.signing !== "off"
    || description.groups.some(({ parameters }) => parameters.some(({ open, closed }) => !open || closed.length > 0));
  byId("token-for-images-row").hidden = !description.listener.images || !needsToken;
  byId("purge-form").addEventListener("submit", (event) => {
    event.preventDefault();
    purge();
  });
  byId("forget-all").addEventListener("click", () => forget(null));
  byId("cancel-all").addEventListener("click", cancel);
}

async function enter(token, changed) {
  const candidate = new Session(token);
  try {
    await show(candidate);
  } catch (error) {
    // A token without the scope to read is right, and may purge.
    if (error.status !== 403) return say(error.message, true);
  }
  session = candidate;
  byId("token").value = "";
  setEntered(true);
  say("The token is right. It stays in this page's memory until you leave.");
  changed();
  watch(candidate, changed);
}

function leave(changed) {
  session = null;
  setEntered(false);
  say("The token is forgotten.");
  changed();
}

function setEntered(isEntered) {
  byId("operators-panel").hidden = !isEntered;
  byId("token-row").hidden = isEntered;
  byId("token-button").textContent = isEntered ? "Forget the token" : "Use the token";
}

/** Keeps the lists up to date until the operator leaves. */
async function watch(own, changed) {
  while (session === own) {
    await new Promise((resolve) => { setTimeout(resolve, INTERVAL); });
    if (session !== own || document.visibilityState !== "visible") continue;
    try {
      await show(own);
    } catch (error) {
      // A token that is no longer valid must not be tried again and again: the server would refuse this address.
      if (error.status === 401 || error.status === 429) leave(changed);
      say(error.message, true);
      if (error.status === 403) return;
    }
  }
}

async function show(own) {
  const [{ failed }, { downloads }] =
    await Promise.all([own.ask("GET", "admin/failed"), own.ask("GET", "admin/downloads")]);
  list("failed", failed, "No URL is remembered as failed.", (entry) => [
    element("span", { class: "address" }, entry.url),
    element("span", { class: "fine" }, `${entry.status} ${entry.code}, for ${count(entry.seconds)} s`),
    action("Forget", `Forget the failure of ${entry.url}`, () => forget(entry.url)),
  ]);
  byId("forget-all").hidden = failed.length === 0;
  list("downloads", downloads, "No download is running or waiting.", (entry) => [
    element("span", { class: "address" }, entry.url),
    element("span", { class: "fine" }, `${entry.state}, ${bytes(entry.received)}`
      + (entry.expected > 0 ? ` of ${bytes(entry.expected)}` : "")
      + `, ${entry.seconds.toFixed(1)} s, ${count(entry.waiters)} waiting`),
  ]);
  byId("cancel-all").hidden = downloads.length === 0;
}

/** Shows a list. One that has not changed keeps its elements, and so the focus. */
function list(id, entries, empty, parts) {
  const place = byId(id);
  const state = JSON.stringify(entries.map((entry) => ({ ...entry, seconds: id === "failed" ? 0 : entry.seconds })));
  if (place.dataset.state === state) return;
  place.dataset.state = state;
  replace(place, ...(entries.length > 0
    ? entries.slice(0, 200).map((entry) => element("li", {}, ...parts(entry)))
    : [element("li", { class: "empty" }, empty)]));
}

const action = (text, label, act) =>
  element("button", { type: "button", class: "small", "aria-label": label, onclick: act }, text);

async function forget(url) {
  const what = url === null ? "all failed URLs" : `the failure of ${url}`;
  if (!await confirmed(`Forget ${what}? The next request asks the origin again.`, "Forget")) return;
  const query = url === null ? "" : `?url=${encodeURIComponent(url)}`;
  await carryOut("DELETE", `admin/failed${query}`, ({ removed }) => `${count(removed)} forgotten.`);
}

async function cancel() {
  if (!await confirmed("Cancel all work that requests wait for? They get 503.", "Cancel the work")) return;
  await carryOut("POST", "admin/cancel", ({ cancelled }) => `${count(cancelled)} cancelled.`);
}

async function purge() {
  const kind = byId("purge-kind").value;
  const value = byId("purge-value").value.trim();
  if (value === "") {
    say("Say what to purge.", true);
    byId("purge-value").focus();
    return;
  }
  if (!await confirmed(`Purge all entries of the ${kind} ${value}? They are loaded anew when they are asked for.`, "Purge")) return;
  await carryOut("DELETE", `admin/cache?${kind}=${encodeURIComponent(value)}`, ({ purged }) =>
    `Purged: ${count(purged.memory)} in memory, ${purged.disk === null ? "those on disk in the background" : `${count(purged.disk)} on disk`}, `
    + `${count(purged.failed)} failures.`);
}

async function carryOut(method, path, text) {
  const own = session;
  if (!own) return;
  try {
    say(text(await own.ask(method, path)));
    await show(own);
  } catch (error) {
    say(error.message, true);
  }
}

/** Asks in a dialog. Returns whether the operator agrees; Escape means no. */
function confirmed(question, verb) {
  const dialog = byId("confirmation");
  byId("question").textContent = question;
  const yes = byId("confirm-yes");
  yes.textContent = verb;
  return new Promise((resolve) => {
    let isAgreed = false;
    yes.onclick = () => {
      isAgreed = true;
      dialog.close();
    };
    byId("confirm-no").onclick = () => dialog.close();
    dialog.onclose = () => resolve(isAgreed);
    dialog.showModal();
  });
}

function say(text, isProblem = false) {
  const place = byId("operators-note");
  place.textContent = text;
  place.classList.toggle("wrong", isProblem);
  announce(text);
}
