// Starting points: recipes of parameters, the samples of the server, and local files.

import { address, byId, element, replace } from "./dom.js";
import { query } from "./loader.js";

const RECIPES = [
  ["Thumbnail", { w: "160", h: "160", fit: "cover", position: "attention" }],
  ["Avatar", { w: "96", h: "96", fit: "cover", radius: "max" }],
  ["Card", { w: "400", ar: "4:3", fit: "cover" }],
  ["Hero", { w: "1280", ar: "21:9", fit: "cover" }],
  ["Face", { w: "320", h: "320", fit: "cover", position: "faces" }],
  ["Watermark", { w: "800", watermark: "", watermark_scale: "0.2", watermark_opacity: "0.8" }],
  ["Placeholder", { format: "placeholder", placeholder: "thumbhash" }],
];

/** Shows a chip for each recipe that this server can carry out. `use` is called with its parameters. Returns a function
    that marks the recipe of which the parameters are. */
export function showRecipes(place, description, use) {
  const parameters = new Map(description.groups.flatMap((group) => group.parameters).map((one) => [one.name, one]));
  // A watermark has the first name that the configuration gives one.
  const complete = (recipe) => ("watermark" in recipe
    ? { ...recipe, watermark: parameters.get("watermark")?.names[0] } : recipe);
  // Where each request needs a signature, a token may stand for it.
  const isPossible = (recipe) => Object.entries(recipe).every(([name, value]) => {
    const { closed, form, names, numbers, open } = parameters.get(name);
    const isOpen = description.signing === "required" || (open && !closed.includes(value));
    return isOpen && value !== undefined && (names.includes(value) || numbers || form === "ratio");
  });
  const chips = RECIPES.map(([title, recipe]) => [title, complete(recipe)]).filter(([, recipe]) => isPossible(recipe))
    .map(([title, recipe]) => ({
      text: sorted(Object.entries(recipe)),
      chip: element("button", { type: "button", class: "chip", title: query(Object.entries(recipe)),
        onclick: () => use(recipe) }, title),
    }));
  replace(place, ...chips.map(({ chip }) => chip));
  place.parentElement.hidden = chips.length === 0;
  return (pairs) => {
    const now = sorted(pairs);
    for (const { chip, text } of chips) chip.setAttribute("aria-pressed", String(text === now));
  };
}

const sorted = (pairs) => query([...pairs].sort(([one], [other]) => (one < other ? -1 : 1)));

/** Shows a chip for each sample of the server. Returns a function that adds small images, once there is time for them. */
export function showSamples(place, { samples, signing }, use) {
  const chips = samples.map((sample) => {
    const name = sample.replace(/[?#].*/, "").split("/").filter(Boolean).at(-1) ?? sample;
    return element("button", { type: "button", class: "chip", title: sample, onclick: () => use(sample) }, name);
  });
  replace(place, ...chips);
  return () => {
    if (signing === "required") return;
    for (const [index, chip] of chips.entries()) {
      const small = query([["url", samples[index]], ["w", "48"], ["h", "48"], ["fit", "cover"]]);
      const image = element("img", { src: address(`image?${small}`), alt: "", width: 24, height: 24,
        onerror: () => image.remove() });
      if (!chip.querySelector("img")) chip.prepend(image);
    }
  };
}

/** Connects the ways in which a local file, or the URL of an image, comes to the page: it is chosen, dropped or pasted. */
export function takeFiles({ takeFile, takeURL }) {
  const chooser = byId("file");
  byId("choose").addEventListener("click", () => chooser.click());
  chooser.addEventListener("change", () => {
    if (chooser.files.length > 0) takeFile(chooser.files[0]);
    // The same file may be chosen again.
    chooser.value = "";
  });
  /** Takes what a drop or the clipboard has. Returns whether there was something to take. */
  const take = (transfer) => {
    const [file] = transfer.files;
    const url = (transfer.getData("text/uri-list") || transfer.getData("text/plain")).trim().split("\n")[0];
    if (file) takeFile(file);
    else if (/^(https?|local|s3):\/\/\S+$/.test(url)) takeURL(url);
    else return false;
    return true;
  };
  // A drop anywhere counts: beside its target it would replace the page.
  let depth = 0;
  const mark = (change) => {
    depth = change === null ? 0 : Math.max(depth + change, 0);
    document.body.classList.toggle("dropping", depth > 0);
  };
  const isForeign = ({ dataTransfer }) => dataTransfer?.types.some((type) => type === "Files" || type === "text/uri-list");
  addEventListener("dragenter", (event) => { if (isForeign(event)) mark(1); });
  addEventListener("dragleave", (event) => { if (isForeign(event)) mark(-1); });
  addEventListener("dragover", (event) => { if (isForeign(event)) event.preventDefault(); });
  addEventListener("drop", (event) => {
    if (!isForeign(event)) return;
    event.preventDefault();
    mark(null);
    take(event.dataTransfer);
  });
  addEventListener("paste", (event) => {
    const isField = event.target.closest?.("input, select, textarea");
    if ((event.clipboardData?.files.length > 0 || !isField) && take(event.clipboardData)) event.preventDefault();
  });
}
