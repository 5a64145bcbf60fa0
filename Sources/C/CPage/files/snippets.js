// What users copy: the request as a URL, in HTML, for frameworks and apps, and for a shell.

import { address, byId, copy, element, replace } from "./dom.js";
import { changed, query } from "./loader.js";

/** Shares of the shown width for which `srcset` has candidates: phones, and screens up to three pixels a point. */
const SHARES = [0.5, 0.75, 1, 1.5, 2, 3];

const image = (pairs) => address(`image?${query(pairs)}`);

const attribute = (text) =>
  text.replace(/&/g, "&amp;").replace(/"/g, "&quot;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

/** Quotes a text for Swift, Kotlin and JavaScript. URLs here have no `$`, which Kotlin would replace. */
const quoted = (text) => JSON.stringify(text);

/** The pairs without what a framework or a candidate decides, and with a format for clients that cannot negotiate. */
const without = (pairs, ...names) => pairs.filter(([name]) => !names.includes(name));
const formatted = (pairs) =>
  (pairs.some(([name, value]) => name === "format" && value !== "auto") ? pairs : changed(pairs, { format: "webp" }));

/** Returns the candidates of `srcset`, none of which has more pixels than the source: by width, or by density if the box
    has a height too. A preset and a signature leave no choice. */
function candidates(pairs, { sourceWidth = Infinity, width }) {
  const has = (...names) => names.some((name) => pairs.some(([own]) => own === name));
  if (!width || has("preset", "sig")) return { set: [], sizes: "" };
  if (has("h", "crop", "radius", "pad", "min-w", "min-h")) {
    const densities = [1, 2, 3].filter((scale) => scale === 1 || width * scale <= sourceWidth);
    const set = densities.map((scale) => `${image(changed(pairs, { scale: String(scale) }))} ${scale}x`);
    return { set: set.length > 1 ? set : [], sizes: "" };
  }
  const widths = SHARES.map((share) => Math.round(width * share)).filter((one) => one <= sourceWidth || one === width);
  const set = widths.map((one) => `${image(changed(without(pairs, "scale"), { w: String(one) }))} ${one}w`);
  return { set, sizes: `(max-width: ${width}px) 100vw, ${width}px` };
}

/** Returns the attributes that keep an image's place before it is there, and within the width of a phone. */
const box = ({ width, height }) =>
  (width ? ` width="${width}" height="${height}" style="max-width:100%;height:auto"` : "");

/** Lists candidates, one a line. */
const listed = (set) => set.map((one) => `\n    ${attribute(one)}`).join(",");

function imgTag(pairs, shown) {
  const { set, sizes } = candidates(pairs, shown);
  const lines = [`  src="${attribute(image(pairs))}"`];
  if (set.length > 0) lines.push(`  srcset="${listed(set)}"`);
  if (sizes) lines.push(`  sizes="${sizes}"`);
  lines.push(` ${box(shown)} loading="lazy" alt=""`);
  return `<img\n${lines.join("\n")}>`;
}

function pictureTag(pairs, shown) {
  const sources = ["avif", "webp"].map((format) => {
    const own = changed(pairs, { format });
    const { set, sizes } = candidates(own, shown);
    const list = set.length > 0 ? set : [image(own)];
    const fits = sizes ? ` sizes="${sizes}"` : "";
    return `  <source type="image/${format}"${fits} srcset="${listed(list)}">`;
  });
  const last = without(pairs, "format");
  return `<picture>\n${sources.join("\n")}\n  <img src="${attribute(image(last))}"${box(shown)} alt="">\n</picture>`;
}

function next(pairs, { width = 640, height = 480 }) {
  const rest = query(without(pairs, "url", "w", "scale"));
  const url = pairs.find(([name]) => name === "url")[1];
  return `// pictor-loader.mjs
"use client";
export default function pictorLoader({ src, width }) {
  return \`${address("image")}?url=\${encodeURIComponent(src)}&w=\${width}${rest && `&${rest}`}\`;
}

// In a component
<Image loader={pictorLoader} src={${quoted(url)}} width={${width}} height={${height}} alt="" />`;
}

const swift = (pairs, { width = 640, height = 480 }) => `// SwiftUI. AsyncImage sends no Accept, so the URL names a format.
@Environment(\\.displayScale) var scale

AsyncImage(url: URL(string: ${quoted(image(formatted(without(pairs, "scale"))))} + "&scale=\\(scale)"), scale: scale) {
  $0.resizable().scaledToFit()
} placeholder: {
  ProgressView()
}
.frame(width: ${width}, height: ${height})`;

const kotlin = (pairs, { width = 640, height = 480 }) => `// Jetpack Compose with Coil, which sends no Accept: the URL names a format.
val density = LocalDensity.current.density

AsyncImage(
    model = ${quoted(image(formatted(without(pairs, "scale"))))} + "&scale=$density",
    contentDescription = null,
    modifier = Modifier.size(${width}.dp, ${height}.dp)
)`;

/** Returns the command line of a request; a local file is its body. */
function commandLine(pairs, { file, accept, token }) {
  const isNamed = pairs.some(([name, value]) => name === "format" && value !== "auto");
  const word = (text) => `'${text.replace(/'/g, `'\\''`)}'`;
  const parts = ["curl -sS -D - -o result", accept && !isNamed && `-H 'Accept: ${accept}'`,
    file && `-H ${word(`Content-Type: ${file.type || "application/octet-stream"}`)} --data-binary @${word(file.name)}`,
    file && token && `-H "Authorization: Bearer $TOKEN"`, `'${image(pairs)}'`];
  return parts.filter(Boolean).join(" ");
}

let chosen = "URL";

/** Shows the snippets of a request in tabs. `shown` has the source's width, and the result's size in points. */
export function showSnippets(request, shown) {
  const { pairs, file } = request;
  const all = file ? [["curl", commandLine(pairs, request)]] : [
    ["URL", image(pairs)], ["srcset", imgTag(pairs, shown)], ["picture", pictureTag(pairs, shown)],
    ["Next.js", next(pairs, shown)], ["Swift", swift(pairs, shown)], ["Kotlin", kotlin(pairs, shown)],
    ["curl", commandLine(pairs, request)],
  ];
  const code = element("code");
  const button = element("button", { type: "button", class: "small", id: "copy" }, "Copy");
  const panel = element("pre", { tabindex: "0", role: "tabpanel", id: "snippet", "aria-labelledby": "" }, code);
  const tabs = all.map(([title], index) => element("button", {
    type: "button", class: "tab", role: "tab", id: `tab-${index}`, "aria-controls": "snippet",
    onclick: () => { chosen = title; select(); },
  }, title));
  const select = () => {
    const current = Math.max(all.findIndex(([title]) => title === chosen), 0);
    const [title, text] = all[current];
    tabs.forEach((tab, index) => {
      tab.setAttribute("aria-selected", String(index === current));
      tab.tabIndex = index === current ? 0 : -1;
    });
    panel.setAttribute("aria-labelledby", `tab-${current}`);
    code.textContent = text;
    button.setAttribute("aria-label", `Copy ${title}`);
    button.onclick = () => copy(button, text, title);
    return tabs[current];
  };
  const list = element("div", {
    role: "tablist", class: "tabs", "aria-label": "Snippets", onkeydown: (event) => {
      const current = tabs.indexOf(event.target);
      const to = { ArrowLeft: current - 1, ArrowRight: current + 1, Home: 0, End: all.length - 1 }[event.key];
      if (to === undefined || current < 0) return;
      event.preventDefault();
      [chosen] = all.at(to % all.length);
      select().focus();
    },
  }, ...tabs);
  const focused = document.activeElement?.id;
  replace(byId("snippets"), list, panel, button);
  const current = select();
  // A result that comes while a tab has the focus replaces the tab.
  if (focused?.startsWith("tab-")) current.focus();
  else if (["copy", "snippet"].includes(focused)) byId(focused).focus();
}
