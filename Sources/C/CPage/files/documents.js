// What docs/http-api.md says of a parameter, in a dialog. Links in it lead to the sections of the document.

import { announce, byId, element, replace } from "./dom.js";

/** The document's lines, once they are there. */
let lines = null;

/** Shows what the document says of a parameter, in place of what the click on its link does. */
export async function showParameter(name, event) {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  if (!lines) {
    const response = await fetch(event.currentTarget.href).catch(() => null);
    if (!response?.ok) return announce("The document could not be loaded");
    lines = (await response.text()).split("\n");
  }
  const at = lines.findIndex((line) => line.startsWith("| ") && cells(line)[0].includes(`\`${name}\``));
  const head = lines.slice(0, at).findLastIndex((line) => line.startsWith("| ---")) - 1;
  const [titles, values] = [lines[head], lines[at]].map(cells);
  show(name, element("table", {}, ...titles.map((title, column) =>
    element("tr", {}, element("th", { scope: "row" }, title), element("td", {}, ...inline(values[column] ?? ""))))));
}

/** Shows the section that an anchor names. */
function showSection(anchor) {
  const from = lines.findIndex((line) => line.startsWith("#") && anchorOf(line) === anchor);
  const length = lines.slice(from + 1).findIndex((line) => /^#+ /.test(line));
  const blocks = lines.slice(from + 1).slice(0, length < 0 ? undefined : length).join("\n").trim().split(/\n{2,}/);
  show(lines[from].replace(/^#+ |`/g, ""), ...blocks.map(block));
}

const anchorOf = (heading) => heading.replace(/^#+ /, "").toLowerCase().replace(/[^\w\- ]/g, "").replaceAll(" ", "-");
const cells = (row) => row.split("|").slice(1, -1).map((cell) => cell.trim());

function block(text) {
  const rows = text.split("\n");
  if (text.startsWith("```")) return element("pre", {}, element("code", {}, rows.slice(1, -1).join("\n")));
  if (text.startsWith("| ")) {
    const row = (name) => (line) => element("tr", {}, ...cells(line).map((cell) => element(name, {}, ...inline(cell))));
    return element("table", {}, row("th")(rows[0]), ...rows.slice(2).map(row("td")));
  }
  if (text.startsWith("- ")) return element("ul", {}, ...rows.map((line) => element("li", {}, ...inline(line.slice(2)))));
  return element("p", {}, ...inline(text));
}

/** Code, words in stars and links. What leads to other documents stays text. */
function inline(text) {
  return text.split(/(`[^`]+`|\*{1,2}[^*]+\*{1,2}|\[[^\]]+\]\([^)]+\))/).map((part) => {
    if (/^`.+`$/.test(part)) return element("code", {}, part.slice(1, -1));
    if (/^\*.+\*$/.test(part)) return element("strong", {}, part.replaceAll("*", ""));
    const [, label, target] = /^\[(.+)\]\((.+)\)$/.exec(part) ?? [null, part, ""];
    if (!target) return part;
    if (!target.startsWith("#")) return element("span", {}, ...inline(label));
    return element("button", { type: "button", class: "link", onclick: () => showSection(target.slice(1)) }, ...inline(label));
  });
}

function show(title, ...content) {
  const dialog = byId("document");
  byId("document-title").textContent = title;
  replace(byId("document-text"), ...content);
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
  byId("document-text").focus();
}

byId("document-close").addEventListener("click", () => byId("document").close());
