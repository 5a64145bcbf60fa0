// The strip: one request in several formats, with the bytes and the time of each. One click compares one of them.

import { bytes, element, milliseconds, replace } from "./dom.js";
import { timings } from "./loader.js";

const NAMES = { jpeg: "JPEG", webp: "WebP", avif: "AVIF", jxl: "JXL" };

/** The name of the answer to the request as it is. */
export const AS_ASKED = "result";

export class Strip {
  #cards = new Map();
  #answers = new Map();
  #selected = AS_ASKED;
  #place;

  /** Makes a card for each format that the server has. `chosen` is called when another one is compared. */
  constructor(place, formats, chosen) {
    this.#place = place;
    const names = [AS_ASKED, ...Object.keys(NAMES).filter((name) => formats.includes(name))];
    for (const name of names) {
      this.#cards.set(name, element("button", {
        type: "button", class: "card", "data-format": name, onclick: () => {
          this.#selected = name;
          this.#draw();
          chosen();
        },
      }));
    }
    replace(place, ...this.#cards.values());
    this.#draw();
  }

  get selected() { return this.#selected; }

  get formats() { return [...this.#cards.keys()].filter((name) => name !== AS_ASKED); }

  /** The name of a format for people. */
  label(name) {
    return NAMES[name] ?? "Result";
  }

  answer(name) {
    return this.#answers.get(name);
  }

  /** Forgets all answers. Their numbers stay until the next ones come, but paler. */
  clear() {
    this.#answers.clear();
    this.#place.classList.add("old");
  }

  set(name, answer) {
    this.#place.classList.remove("old");
    this.#answers.set(name, answer);
    this.#draw();
  }

  #draw() {
    const sizes = [...this.#answers.values()].map(({ value }) => value?.blob?.size ?? 0);
    const most = Math.max(...sizes, 1);
    const least = Math.min(...sizes.filter((size) => size > 0));
    const isWaiting = this.#answers.get(AS_ASKED)?.value !== undefined;
    for (const [name, card] of this.#cards) {
      const answer = this.#answers.get(name);
      const { blob, response } = answer?.value ?? {};
      const total = response && timings(response).find(([stage]) => stage === "total")?.[1];
      const isHit = /; hit; detail=(memory|disk|shared)/.test(response?.headers.get("Cache-Status") ?? "");
      const bar = element("span", { class: "amount", "aria-hidden": "true" });
      bar.style.setProperty("--amount", `${(100 * (blob?.size ?? 0)) / most}%`);
      card.setAttribute("aria-pressed", String(name === this.#selected));
      card.classList.toggle("least", blob !== undefined && blob.size === least && name !== AS_ASKED);
      card.title = answer?.error?.message ?? "";
      replace(card,
        element("span", { class: "name" }, this.label(name)), " ",
        element("span", { class: "hit" }, isHit ? "hit" : ""), " ",
        element("span", { class: "size" }, blob ? bytes(blob.size) : answer ? "refused" : isWaiting ? "…" : "–"), " ",
        element("span", { class: "time" }, total === undefined ? "–" : milliseconds(total)), bar);
    }
  }
}
