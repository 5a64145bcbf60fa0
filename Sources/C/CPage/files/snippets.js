// What users copy: the URL, <img srcset>, <picture> and the curl line.

import { address, byId, copy, element, replace } from "./dom.js";

const WIDTHS = [320, 640, 960, 1280, 1920, 2560];

/** Encodes a value as little as its place in a query, an attribute and a shell's quotes allows. */
export function encode(value) {
  return encodeURIComponent(value)
    .replace(/%(3A|2F|40|2C)/g, (code) => decodeURIComponent(code))
    .replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** Returns a query of names and values. */
export const query = (pairs) => pairs.map(([name, value]) => `${name}=${encode(value)}`).join("&");

const image = (pairs) => address(`image?${query(pairs)}`);

/** Returns the pairs with others in place of those with their names. */
function changed(pairs, others) {
  return [...pairs.filter(([name]) => !(name in others)), ...Object.entries(others)];
}

const attribute = (text) =>
  text.replace(/&/g, "&amp;").replace(/"/g, "&quot;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

/** Returns the candidates of `srcset`: by density for a box or a preset, else by width. */
function candidates(pairs, sourceWidth) {
  const names = new Set(pairs.map(([name]) => name));
  if (names.has("preset") || names.has("sig")) return [];
  if (names.has("w") || names.has("h") || names.has("crop")) {
    return [2, 3].map((scale) => `${image(changed(pairs, { scale: String(scale) }))} ${scale}x`);
  }
  const widths = WIDTHS.filter((width) => width < (sourceWidth || Infinity));
  return widths.map((width) => `${image(changed(pairs, { w: String(width) }))} ${width}w`);
}

/** Returns the attributes that keep an image's place before it is there, and within the width of a phone. */
const box = (width, height) =>
  width ? ` width="${width}" height="${height}" style="max-width:100%;height:auto"` : "";

function imgTag(pairs, { sourceWidth, width, height }) {
  const set = candidates(pairs, sourceWidth);
  const lines = [`  src="${attribute(image(pairs))}"`];
  if (set.length > 0) lines.push(`  srcset="${set.map(attribute).join(",\n          ")}"`);
  if (set.some((candidate) => candidate.endsWith("w"))) lines.push(`  sizes="100vw"`);
  lines.push(` ${box(width, height)} loading="lazy" alt=""`);
  return `<img\n${lines.join("\n")}>`;
}

function pictureTag(pairs, sizes) {
  const sources = ["avif", "webp"].map((format) =>
    `  <source type="image/${format}" srcset="${attribute(image(changed(pairs, { format })))}">`);
  const last = pairs.filter(([name]) => name !== "format");
  return `<picture>\n${sources.join("\n")}\n  <img src="${attribute(image(last))}"${box(sizes.width, sizes.height)} alt="">\n</picture>`;
}

/** Shows the snippets of a request. `sizes` has the source's width and the shown size in points, if known. */
export function showSnippets(pairs, accept, sizes) {
  const url = image(pairs);
  const isNamed = pairs.some(([name, value]) => name === "format" && value !== "auto");
  const header = accept && !isNamed ? ` -H 'Accept: ${accept}'` : "";
  const all = [
    ["URL", url],
    ["<img srcset>", imgTag(pairs, sizes)],
    ["<picture>", pictureTag(pairs, sizes)],
    ["curl", `curl -sS -D - -o result${header} '${url}'`],
  ];
  replace(byId("snippets"), ...all.map(([title, text]) => {
    const button = element("button", { type: "button", class: "small", onclick: () => copy(button, text, title) }, "Copy");
    button.setAttribute("aria-label", `Copy ${title}`);
    return element("div", { class: "snippet" },
      element("div", { class: "snippet-head" }, element("h4", {}, title), button),
      element("pre", { tabindex: "0", role: "group", "aria-label": `${title}, text` }, element("code", {}, text)));
  }));
}
