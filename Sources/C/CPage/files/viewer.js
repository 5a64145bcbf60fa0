// The image as an instrument: a divider between two images that lie one over the other, zoom, and pan.

import { announce, byId, percent } from "./dom.js";

const LEAST_ZOOM = 0.05;
const MOST_ZOOM = 32;
/** From here on, pixels are squares. */
const SQUARES = 2;
/** How far a finger moves sideways before it moves the divider: other movements scroll the page. */
const SLOP = 6;

const within = (value, least, most) => Math.min(Math.max(value, least), most);

export class Viewer {
  #viewport = byId("viewport");
  #divider = byId("divider");
  /** The sizes of the images in points: CSS pixels at 100 %. */
  #sizes = { source: null, result: null };
  #blobs = {};
  /** CSS pixels per point. `null`: 100 %, or less where the image must shrink. */
  #zoom = null;
  /** The point of the image in the middle of the viewport, as shares of its sides. */
  #centre = { x: 0.5, y: 0.5 };
  /** The place of the divider, in per cent of the part of the image that is seen. */
  #split = 50;
  #pointers = new Map();
  #drag = null;

  constructor() {
    new ResizeObserver(() => this.#lay()).observe(this.#viewport);
    this.#listenToPointers();
    this.#listenToKeys();
    byId("zoom-in").addEventListener("click", () => this.#step(1));
    byId("zoom-out").addEventListener("click", () => this.#step(-1));
    byId("zoom").addEventListener("click", () => this.#setZoom(1));
    byId("fit").addEventListener("click", () => this.#setZoom(null));
    for (const choice of document.getElementsByName("view")) {
      choice.addEventListener("change", () => {
        this.#viewport.dataset.view = choice.value;
        this.#lay();
      });
    }
  }

  /** The width for which a new image fits, if it is as wide to high as most photographs. */
  get roomyWidth() {
    const { clientWidth, clientHeight } = this.#viewport;
    return Math.max(Math.floor(Math.min(clientWidth, clientHeight * 1.5)), 64);
  }

  /** Shows an image as `source` or `result`, or none. `density` is its pixels per point. Returns its size in pixels;
      `null` if there is none, or the browser cannot show it; `undefined` if `signal` was aborted before. */
  async show(side, blob, { label = "", density = 1, signal } = {}) {
    const old = byId(`${side}-image`);
    const isNew = this.#blobs[side] !== blob;
    const image = isNew ? old.cloneNode() : old;
    if (isNew) {
      image.hidden = !blob;
      image.removeAttribute("src");
      if (blob) {
        image.src = URL.createObjectURL(blob);
        await image.decode().catch(() => { image.hidden = true; });
      }
      if (signal?.aborted) {
        URL.revokeObjectURL(image.src);
        return undefined;
      }
      this.#blobs[side] = blob;
      // The one in the page may be another than before the decoding.
      const current = byId(`${side}-image`);
      current.replaceWith(image);
      URL.revokeObjectURL(current.src);
    }
    image.alt = label;
    byId(`${side}-tag`).textContent = label;
    const { naturalWidth: width, naturalHeight: height } = image;
    const isShown = !image.hidden && width > 0;
    this.#sizes[side] = isShown ? { width: width / density, height: height / density } : null;
    const { source, result } = this.#sizes;
    this.#viewport.dataset.shown = source && result ? "both" : source ? "source" : result ? "result" : "none";
    this.#lay();
    return isShown ? { width, height } : null;
  }

  /** Says which part of the source the result has: how it fills the box, and from where, as CSS says it. */
  place(fit, position) {
    this.#viewport.style.setProperty("--source-fit", fit);
    this.#viewport.style.setProperty("--source-position", position);
  }

  get #size() { return this.#sizes.result ?? this.#sizes.source; }

  /** The room for one image. */
  get #room() {
    const { clientWidth: width, clientHeight: height } = this.#viewport;
    return { width: this.#isBeside ? width / 2 : width, height };
  }

  get #isBeside() { return this.#viewport.dataset.view === "beside"; }

  get #isSplit() { return this.#viewport.dataset.view === "split" && this.#viewport.dataset.shown === "both"; }

  get #shownZoom() {
    const { width, height } = this.#size;
    const room = this.#room;
    return this.#zoom ?? Math.min(1, room.width / width, room.height / height);
  }

  /** Lays out the images and the divider. */
  #lay() {
    if (!this.#size) return;
    const room = this.#room;
    const zoom = this.#shownZoom;
    const width = Math.max(this.#size.width * zoom, 1);
    const height = Math.max(this.#size.height * zoom, 1);
    const limit = (share, length, seen) => (length <= seen ? 0.5 : within(share, seen / 2 / length, 1 - seen / 2 / length));
    this.#centre = { x: limit(this.#centre.x, width, room.width), y: limit(this.#centre.y, height, room.height) };
    const x = Math.round(room.width / 2 - this.#centre.x * width);
    const y = Math.round(room.height / 2 - this.#centre.y * height);
    const seen = { from: Math.max(x, 0), to: Math.min(x + width, room.width) };
    const places = {
      x, y, width, height, at: seen.from + (this.#split / 100) * (seen.to - seen.from),
      top: Math.max(y, 0), bottom: Math.max(room.height - y - height, 0),
    };
    for (const [name, value] of Object.entries(places)) this.#viewport.style.setProperty(`--${name}`, `${value}px`);
    this.#viewport.classList.toggle("squares", zoom >= SQUARES);
    this.#viewport.classList.toggle("pannable", width > room.width + 1 || height > room.height + 1);
    byId("zoom").textContent = percent(zoom);
    byId("zoom").setAttribute("aria-label", `Zoom ${percent(zoom)}: show at 100 %`);
    byId("fit").setAttribute("aria-pressed", String(this.#zoom === null));
    this.#divider.setAttribute("aria-valuenow", String(Math.round(this.#split)));
    this.#divider.setAttribute("aria-valuetext",
      `${Math.round(this.#split)} % ${byId("source-tag").textContent}, ${100 - Math.round(this.#split)} % ${byId("result-tag").textContent}`);
  }

  /** Zooms, and keeps the image's point at `place` of the viewport (by default its middle) where it is. */
  #setZoom(zoom, place) {
    if (!this.#size) return;
    const room = this.#room;
    const before = this.#shownZoom;
    this.#zoom = zoom === null ? null : within(zoom, LEAST_ZOOM, MOST_ZOOM);
    const after = this.#shownZoom;
    if (place) {
      const move = 1 / before - 1 / after;
      this.#centre.x += ((place.x - room.width / 2) * move) / this.#size.width;
      this.#centre.y += ((place.y - room.height / 2) * move) / this.#size.height;
    }
    this.#lay();
    if (!place) announce(`Zoom ${percent(after)}`);
  }

  /** Zooms to the next power of two. */
  #step(direction) {
    if (!this.#size) return;
    const now = Math.log2(this.#shownZoom);
    this.#setZoom(2 ** (direction > 0 ? Math.floor(now + 1.01) : Math.ceil(now - 1.01)));
  }

  #pan(x, y) {
    const zoom = this.#shownZoom;
    this.#centre.x -= x / zoom / this.#size.width;
    this.#centre.y -= y / zoom / this.#size.height;
    this.#lay();
  }

  #setSplit(split) {
    this.#split = within(split, 0, 100);
    this.#lay();
  }

  /** The place of a pointer in the viewport, or in its half. */
  #placeOf({ clientX, clientY }) {
    const { left, top } = this.#viewport.getBoundingClientRect();
    const { width } = this.#room;
    const x = clientX - left - this.#viewport.clientLeft;
    return { x: this.#isBeside && x > width ? x - width : x, y: clientY - top - this.#viewport.clientTop };
  }

  #splitTo(event) {
    const { x, width } = Object.fromEntries(["x", "width"].map((name) =>
      [name, parseFloat(this.#viewport.style.getPropertyValue(`--${name}`))]));
    const from = Math.max(x, 0);
    this.#setSplit((100 * (this.#placeOf(event).x - from)) / (Math.min(x + width, this.#room.width) - from));
  }

  /** One pointer moves the divider, or the image if it is larger than the viewport; two zoom. */
  #listenToPointers() {
    const viewport = this.#viewport;
    viewport.addEventListener("pointerdown", (event) => {
      if (!this.#size || event.button !== 0 || event.target.closest(".over-image")) return;
      viewport.setPointerCapture(event.pointerId);
      this.#pointers.set(event.pointerId, event);
      const isAtDivider = this.#isSplit && this.#divider.contains(event.target);
      const isDividing = isAtDivider || (this.#isSplit && !viewport.classList.contains("pannable"));
      this.#drag = { isDividing, isMoving: isAtDivider || event.pointerType === "mouse", from: event };
      if (isDividing && this.#drag.isMoving) this.#splitTo(event);
      // The focus goes where the pointer acts, so that the keyboard continues there.
      (isDividing ? this.#divider : viewport).focus({ preventScroll: true });
      if (event.pointerType === "mouse") event.preventDefault();
    });
    viewport.addEventListener("pointermove", (event) => {
      const before = this.#pointers.get(event.pointerId);
      if (!before || !this.#drag) return;
      const drag = this.#drag;
      const others = [...this.#pointers.values()].filter(({ pointerId }) => pointerId !== event.pointerId);
      this.#pointers.set(event.pointerId, event);
      if (others.length > 0) {
        const [other] = others;
        const apart = (one) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);
        const middle = { clientX: (event.clientX + other.clientX) / 2, clientY: (event.clientY + other.clientY) / 2 };
        this.#setZoom((this.#shownZoom * apart(event)) / Math.max(apart(before), 1), this.#placeOf(middle));
        return;
      }
      drag.isMoving ||= Math.abs(event.clientX - drag.from.clientX) > SLOP || !drag.isDividing;
      if (!drag.isMoving) return;
      if (drag.isDividing) this.#splitTo(event);
      else this.#pan(event.clientX - before.clientX, event.clientY - before.clientY);
    });
    for (const end of ["pointerup", "pointercancel"]) {
      viewport.addEventListener(end, ({ pointerId }) => { this.#pointers.delete(pointerId); });
    }
    viewport.addEventListener("dblclick", (event) => {
      if (event.target.closest(".over-image") || !this.#size) return;
      this.#setZoom(this.#zoom === null ? Math.max(this.#shownZoom * 2, 1) : null, this.#placeOf(event));
    });
    // A trackpad's pinch is a wheel with the control key. The wheel by itself scrolls the page.
    viewport.addEventListener("wheel", (event) => {
      if (!this.#size || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      this.#setZoom(this.#shownZoom * Math.exp(-event.deltaY / 200), this.#placeOf(event));
    }, { passive: false });
  }

  #listenToKeys() {
    this.#viewport.addEventListener("keydown", (event) => {
      const isAtDivider = event.target === this.#divider;
      if (!this.#size || event.ctrlKey || event.metaKey || event.altKey
        || (!isAtDivider && event.target !== this.#viewport)) return;
      const zoom = { "+": () => this.#step(1), "=": () => this.#step(1), "-": () => this.#step(-1),
        0: () => this.#setZoom(null), 1: () => this.#setZoom(1) }[event.key];
      const [x, y] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key] ?? [0, 0];
      const far = { PageUp: 10, PageDown: -10, Home: -100, End: 100 }[event.key] ?? 0;
      if (zoom) zoom();
      else if (isAtDivider && (x || y || far)) this.#setSplit(this.#split + far + (x - y) * (event.shiftKey ? 10 : 1));
      else if (x || y) this.#pan(-x * 60, -y * 60);
      else return;
      event.preventDefault();
    });
  }
}

/** Returns how the source lies under a result that shows a part of it: `object-fit` and `object-position`. A part that
    the server chooses by the content is not known: then the whole source is shown. */
export function placement(pairs, source, result) {
  const asked = new Map(pairs);
  const isCut = ["crop", "trim", "rotate", "pad", "extend", "offset"].some((name) => asked.has(name));
  const position = asked.get("position") ?? "center";
  const point = /^([01]?\.\d+|[01]),([01]?\.\d+|[01])$/.exec(position);
  if (asked.get("fit") === "fill" && !isCut) return ["fill", "center"];
  if (!["cover", "cover-down"].includes(asked.get("fit")) || isCut || !source || !result) return ["contain", "center"];
  if (/^(center|top|bottom|(left|right)(-top|-bottom)?)$/.test(position)) return ["cover", position.replace("-", " ")];
  if (!point) return ["contain", "center"];
  const scale = Math.max(result.width / source.width, result.height / source.height);
  const share = (focus, side) => {
    const rest = source[side] * scale - result[side];
    return `${rest < 0.5 ? 50 : within((100 * (focus * source[side] * scale - result[side] / 2)) / rest, 0, 100)}%`;
  };
  return ["cover", `${share(Number(point[1]), "width")} ${share(Number(point[2]), "height")}`];
}
