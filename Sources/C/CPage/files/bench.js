// The bench: a request, which the location's hash holds, and what the server answers. It connects the controls, the image
// and the strip of formats.

import { Controls } from "./controls.js";
import { announce, byId, bytes } from "./dom.js";
import { History } from "./history.js";
import { isProvisional, Loader, query } from "./loader.js";
import { tokenForImages, withholdToken } from "./operators.js";
import { announceResult, showFacts, showProblem, showReadout, showStages, showUnshown } from "./result.js";
import { showSnippets } from "./snippets.js";
import { showRecipes, showSamples, takeFiles } from "./starts.js";
import { AS_ASKED, Strip } from "./strip.js";
import { placement, Viewer } from "./viewer.js";

/** How long to wait for further changes before a request is sent: of what is typed, and of sliders. In ms. */
const PAUSE = { typed: 250, moved: 60 };
/** The pauses before each question for a better format that follows. In ms. */
const FOLLOWING = [700, 1500, 3000, 6000];
/** How long a note stays on the image. In ms. */
const READING = 5000;

/** How long the controls wait for the first image. In ms. */
const FIRST_SIGHT = 250;

/** The pixels per point of an answer. */
const contentDensity = (value) => Number(value?.response.headers.get("Content-DPR")) || 1;

/** Waits until the page has been drawn. */
const drawn = () => new Promise((resolve) => { requestAnimationFrame(() => requestAnimationFrame(resolve)); });
const pause = (time) => new Promise((resolve) => { setTimeout(resolve, time); });

export class Bench {
  #description;
  #loader = new Loader();
  #viewer = new Viewer();
  #controls;
  #strip;
  #history;
  #markRecipe;
  #drawSamples;
  /** The local file that is the source in place of a URL. */
  #file = null;
  #timer = null;
  /** What is shown: the `request` with its `signal`, and of its source the loads (`source`), the `image`, the `info` and
      the size in pixels (`sourceSize`) as far as they have come. */
  #shown = null;

  /** Shows the first image, then makes the controls. Returns the bench. */
  static async open(description) {
    const bench = new Bench(description);
    const first = bench.#firstRequest;
    const waiting = new AbortController();
    if (first) await Promise.race([bench.#showFirst(first, waiting.signal), pause(FIRST_SIGHT)]);
    waiting.abort();
    bench.#build(first);
    return bench;
  }

  constructor(description) {
    this.#description = description;
  }

  #build(first) {
    const description = this.#description;
    const formats = this.#parameters.find(({ name }) => name === "format").names;
    this.#controls = new Controls(description, byId("controls"), byId("explained"), (isTyped) => this.#later(isTyped));
    this.#strip = new Strip(byId("strip"), formats, () => this.#compare());
    this.#history = new History((canUndo, canRedo) => {
      byId("undo").disabled = !canUndo;
      byId("redo").disabled = !canRedo;
    });
    this.#markRecipe = showRecipes(byId("recipes"), description, (recipe) => this.#set(Object.entries(recipe)));
    this.#drawSamples = showSamples(byId("samples"), description, (sample) => this.#takeURL(sample));
    this.#showRules();
    this.#listen();
    this.#readHash(location.hash);
    if (first) this.#fill(first.pairs);
    else if (byId("url").value === "") [byId("url").value = ""] = description.samples;
    this.#load();
  }

  /** An operator's token for images has come or gone. */
  tokenChanged() {
    this.#controls.allowAll(tokenForImages() !== null);
    this.#load();
  }

  get #parameters() { return this.#description.groups.flatMap((group) => group.parameters); }

  /** Whether this client may use a parameter. */
  #isOpen(name) {
    return tokenForImages() !== null || this.#parameters.some((one) => one.name === name && one.open);
  }

  // The request.

  get #request() {
    const source = this.#file ? [] : [["url", byId("url").value.trim()]];
    const accept = acceptField(this.#description.autoFormats);
    return { file: this.#file, pairs: [...source, ...this.#controls.pairs], accept, token: tokenForImages() };
  }

  /** Sets what a hash says. */
  #readHash(hash) {
    this.#fill(new URLSearchParams(hash.slice(1).replaceAll("+", "%2B")));
  }

  /** Sets the source, all parameters, and what the client accepts. Unknown names are ignored. */
  #fill(pairs) {
    const wanted = new URLSearchParams(pairs);
    byId("url").value = wanted.get("url") ?? "";
    if (wanted.has("url")) this.#setFile(null);
    this.#controls.fill(wanted);
    byId("accepts").value = ["webp", "none"].includes(wanted.get("accepts")) ? wanted.get("accepts") : "all";
  }

  #writeHash({ pairs, file }) {
    const accepts = byId("accepts").value;
    const hash = `#${query([...pairs, ...(accepts === "all" ? [] : [["accepts", accepts]])])}`;
    history.replaceState(null, "", hash);
    this.#history.add({ hash, file });
  }

  /** Sets all parameters but the source. */
  #set(pairs) {
    this.#controls.fill(new URLSearchParams(pairs));
    this.#load();
  }

  /** The first sight: a sample, with as many pixels as its place on this screen has, or by a preset if only those are
      allowed. `null` if the address says what to show, or there is no sample. */
  get #firstRequest() {
    const { autoFormats, samples } = this.#description;
    if (location.hash.length > 1 || samples.length === 0) return null;
    const density = Math.min(Math.round(devicePixelRatio * 100) / 100, 3);
    const sizes = [["w", String(this.#viewer.roomyWidth)], ...(density === 1 ? [] : [["scale", String(density)]])];
    const presets = this.#parameters.find(({ name }) => name === "preset").names.slice(0, 1).map((name) => ["preset", name]);
    const pairs = [sizes, presets].find((some) => some.every(([name]) => this.#isOpen(name)));
    return { file: null, pairs: [["url", samples[0]], ...(pairs ?? [])], accept: acceptField(autoFormats), token: null };
  }

  async #showFirst(request, signal) {
    const { value } = await this.#loader.beginAhead(request);
    if (!value || signal.aborted) return;
    await this.#viewer.show("result", value.blob, { density: contentDensity(value), label: "Result", signal });
    await drawn();
  }

  #takeURL(url) {
    this.#setFile(null);
    byId("url").value = url;
    this.#load();
  }

  #takeFile(file) {
    const needsToken = this.#description.bodies === "trusted" && tokenForImages() === null;
    const refusal = this.#description.bodies === "off" ? "This server takes no files: sources.bodies is off."
      : needsToken ? "Files need an operator's token here: enter it below, and send it with images, too." : "";
    byId("file-note").textContent = refusal;
    announce(refusal);
    if (refusal) return;
    byId("url").value = "";
    this.#setFile(file);
    this.#load();
  }

  #setFile(file) {
    this.#file = file;
    byId("file-chip").hidden = file === null;
    byId("file-name").textContent = file ? `${file.name || "pasted image"}, ${bytes(file.size)}` : "";
  }

  /** Undoes (-1) or redoes (1) a step. */
  #move(step) {
    const state = this.#history.move(step);
    if (!state) return;
    this.#setFile(state.file);
    this.#readHash(state.hash);
    announce(step < 0 ? "Undone" : "Redone");
    this.#load();
  }

  #later(isTyped) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#load(), isTyped ? PAUSE.typed : PAUSE.moved);
  }

  // The answers.

  /** Loads the result, then the source, then the other formats. A later load ends this one. */
  async #load() {
    clearTimeout(this.#timer);
    const request = this.#request;
    this.#controls.countUsed();
    this.#markRecipe(this.#controls.pairs);
    const hasSource = request.file !== null || request.pairs[0][1] !== "";
    byId("empty").hidden = hasSource;
    if (!hasSource) return;
    this.#writeHash(request);
    const signal = this.#loader.begin();
    this.#setBusy(true);
    this.#strip.clear();
    const result = await this.#loader.result(request, signal);
    if (signal.aborted) return;
    // The source comes second: the result is what the user wants to see.
    const source = this.#loader.source(request, this.#isOpen("pass"));
    const known = this.#shown?.source === source ? this.#shown : { source, image: null, info: null, sourceSize: null };
    this.#shown = { ...known, request, signal, note: "", isFinal: false };
    this.#strip.set(AS_ASKED, result);
    if (result.value && this.#strip.selected !== AS_ASKED) await this.#loadFormat(this.#strip.selected);
    await this.#compare();
    if (signal.aborted) return;
    if (result.value) announceResult(result.value);
    await this.#addSource();
    if (signal.aborted) return;
    this.#setBusy(false);
    this.#drawSamples();
    if (!result.value) return;
    this.#follow(result.value);
    // One after the other: their times are not those of a crowd.
    for (const format of this.#strip.formats) {
      if (!this.#strip.answer(format)) await this.#loadFormat(format);
      if (signal.aborted) return;
      if (byId("against").value === format) await this.#compare();
    }
  }

  #setBusy(isBusy) {
    byId("stage").setAttribute("aria-busy", String(isBusy));
    byId("reload").textContent = isBusy ? "Loading…" : "Load";
    if (!isBusy) document.body.classList.add("filled");
  }

  async #loadFormat(format) {
    const { request, signal } = this.#shown;
    const answer = await this.#loader.inFormat(format, request, signal);
    if (!signal.aborted) this.#strip.set(format, answer);
  }

  /** Waits for the source's bytes and description, and shows what depends on them. */
  async #addSource() {
    const own = this.#shown;
    if (own.image) return;
    const [image, info] = await Promise.all([own.source.image, own.source.info]);
    if (this.#shown !== own) return;
    Object.assign(own, { image, info: info.value?.data ?? null });
    if (own.info) this.#controls.limitSides(own.info);
    const missing = info.error ?? image.error;
    const isToldElsewhere = this.#strip.answer(AS_ASKED)?.error;
    byId("source-note").textContent =
      missing && !isToldElsewhere ? `The source by itself is not shown: ${missing.message}` : "";
    await this.#compare();
  }

  /** Shows the compared answer on the right, and what it is compared with on the left. */
  async #compare() {
    const own = this.#shown;
    const { selected } = this.#strip;
    const answer = own && this.#strip.answer(selected);
    if (!answer) return;
    const { request, signal, info } = own;
    const { value, error = null } = answer;
    const isResult = selected === AS_ASKED;
    const density = contentDensity(value);
    const label = this.#strip.label(selected);
    const size = await this.#viewer.show("result", value?.blob, { density, label, signal });
    if (size === undefined) return;
    const points = size && {
      width: Math.max(Math.round(size.width / density), 1), height: Math.max(Math.round(size.height / density), 1),
    };
    const isSource = await this.#showLeft(own);
    if (signal.aborted) return;
    this.#viewer.place(...(isSource ? placement(request.pairs, own.sourceSize, points) : ["fill", "center"]));
    showProblem(error, this.#controls);
    showUnshown(value?.blob && !size ? value.blob : null);
    const isFollowed = value && isResult && !own.isFinal && isProvisional(value, request);
    showReadout(value, size, info, isFollowed ? "AVIF follows in a moment" : isResult ? own.note : "");
    showFacts(value, info, new Map(request.pairs), size);
    byId("compared").textContent = label;
    showStages(value);
    byId("outcome").hidden = error !== null;
    if (value) showSnippets(request, { sourceWidth: info?.width, ...points });
  }

  /** Shows the source, or the chosen format, on the left. Returns whether it is the source. */
  async #showLeft(own) {
    const format = byId("against").value;
    const other = this.#strip.answer(format)?.value;
    if (other) {
      await this.#viewer.show("source", other.blob, { label: this.#strip.label(format), signal: own.signal });
      return false;
    }
    const blob = own.image?.value?.blob;
    own.sourceSize = await this.#viewer.show("source", own.converted ?? blob,
      { label: own.converted ? "Source, converted" : "Source", signal: own.signal }) ?? null;
    if (blob && !own.converted && !own.sourceSize && !own.signal.aborted) {
      // A browser that cannot show the source's own bytes gets it converted.
      own.converted = (await own.source.converted()).value?.blob;
      if (own.converted) return this.#showLeft(own);
    }
    return true;
  }

  /** Asks again for a result that the server sent in a faster format first, until the better one is there. */
  async #follow(first) {
    const own = this.#shown;
    let latest = first;
    for (const time of FOLLOWING) {
      if (!isProvisional(latest, own.request)) break;
      await pause(time);
      if (own.signal.aborted) return;
      const answer = await this.#loader.result(own.request, own.signal);
      if (!answer.value) return;
      latest = answer.value;
      this.#strip.set(AS_ASKED, answer);
    }
    if (latest === first) return;
    const less = first.blob.size - latest.blob.size;
    own.isFinal = true;
    own.note = latest.blob.type === "image/avif" ? `AVIF is here, ${bytes(less)} less` : "AVIF would not be smaller";
    announce(own.note);
    await this.#compare();
    await pause(READING);
    own.note = "";
    if (this.#shown === own) byId("note").textContent = "";
  }

  // What the page offers, and where the user acts.

  /** Says what this server allows. */
  #showRules() {
    const { bodies, samples, signing } = this.#description;
    byId("choose").hidden = bodies === "off";
    for (const place of document.querySelectorAll("[data-needs='files']")) place.hidden = bodies === "off";
    byId("samples-row").hidden = samples.length === 0;
    byId("against").append(...this.#strip.formats.map((name) => new Option(this.#strip.label(name), name)));
    byId("signing-note").textContent = {
      required: "This server answers signed URLs only: add exp and sig below, or an operator's token.",
      options: "Unsigned requests may use plain sizes, formats and presets; the rest needs a signature.",
    }[signing] ?? "";
    this.#controls.allowAll(false);
  }

  #listen() {
    const url = byId("url");
    byId("request").addEventListener("submit", (event) => {
      event.preventDefault();
      if (url.value.trim() !== "" || this.#file) return this.#load();
      announce("Enter the URL of an image");
      return url.focus();
    });
    url.addEventListener("input", () => { if (url.value.trim() !== "") this.#setFile(null); });
    byId("file-remove").addEventListener("click", () => {
      this.#setFile(null);
      url.focus();
    });
    byId("accepts").addEventListener("change", () => this.#load());
    byId("against").addEventListener("change", () => this.#compare());
    byId("reset").addEventListener("click", () => this.#set([]));
    byId("undo").addEventListener("click", () => this.#move(-1));
    byId("redo").addEventListener("click", () => this.#move(1));
    byId("explain").addEventListener("click", () => {
      const isOn = byId("controls").classList.toggle("explained");
      byId("explain").setAttribute("aria-pressed", String(isOn));
      for (const link of document.querySelectorAll(".more")) link.tabIndex = isOn ? 0 : -1;
    });
    addEventListener("keydown", (event) => {
      const key = event.key.toLowerCase();
      // A text that is being edited has its own history.
      const isEdited = event.target === url && url.value.trim() !== (new Map(this.#shown?.request.pairs).get("url") ?? "");
      if (!(event.ctrlKey || event.metaKey) || event.altKey || !["z", "y"].includes(key)
        || isEdited || event.target.matches?.("#token, #purge-value")) return;
      event.preventDefault();
      this.#move(key === "y" || event.shiftKey ? 1 : -1);
    });
    addEventListener("hashchange", () => {
      withholdToken();
      this.#readHash(location.hash);
      this.#load();
    });
    takeFiles({ takeFile: (file) => this.#takeFile(file), takeURL: (text) => this.#takeURL(text) });
  }
}

/** The `Accept` field that stands for the chosen client. */
function acceptField(autoFormats) {
  const chosen = byId("accepts").value;
  const named = autoFormats.filter((type) => chosen === "all" || (chosen === "webp" && type === "image/webp"));
  return named.length > 0 ? `${named.join(",")},*/*;q=0.8` : "";
}
