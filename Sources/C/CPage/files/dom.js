// Elements, texts for people, and the clipboard. Text from outside becomes text nodes only, never markup.

const SVG = "http://www.w3.org/2000/svg";

/** Returns an element with attributes, listeners (`onclick`) and children: elements, texts, or nothing. */
export function element(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** Returns an SVG element. */
export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child != null));
  return made;
}

/** Returns the element of the page with this id. */
export const byId = (id) => document.getElementById(id);

/** Replaces the children of an element. */
export const replace = (parent, ...children) => parent.replaceChildren(...children.filter((child) => child != null));

/** Tells users of screen readers what has changed. */
export function announce(text) {
  byId("announcement").textContent = text;
}

/** Returns the absolute address of a path of this server, also behind a proxy that adds a prefix. */
export const address = (path) => new URL(path, document.baseURI).href;

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** Formats a number with separators: 234,697. */
export const count = (number) => whole.format(number);

/** Formats a length in bytes: 18.4 kB. */
export function bytes(number) {
  if (number < 1000) return `${count(number)} B`;
  const units = ["kB", "MB", "GB", "TB"];
  let value = number / 1000;
  while (value >= 999.5 && units.length > 1) {
    value /= 1000;
    units.shift();
  }
  return `${value < 10 ? value.toFixed(2) : value < 100 ? value.toFixed(1) : value.toFixed(0)} ${units[0]}`;
}

/** Formats a time in milliseconds: 0.08 ms, 12.5 ms, 1.34 s. */
export function milliseconds(time) {
  if (time >= 1000) return `${(time / 1000).toFixed(2)} s`;
  return `${time < 1 ? time.toFixed(2) : time < 100 ? time.toFixed(1) : time.toFixed(0)} ms`;
}

/** Formats a share of one: 97 %. Near 0 and 1 it has a digit more. */
export const percent = (share) => `${(share * 100).toFixed((share > 0 && share < 0.1) || (share > 0.99 && share < 1) ? 1 : 0)} %`;

/** Copies a text, and says so in the button for a moment. Pages on plain http have no clipboard of their own: there the
    browser's older command copies what is selected. */
export async function copy(button, text, what) {
  const isCopied = await navigator.clipboard?.writeText(text).then(() => true, () => false) || copySelected(text);
  announce(isCopied ? `${what} copied` : `${what} could not be copied`);
  button.dataset.label ??= button.textContent;
  button.textContent = isCopied ? "Copied" : "Not copied";
  setTimeout(() => { button.textContent = button.dataset.label; }, 1500);
}

function copySelected(text) {
  const before = document.activeElement;
  const field = element("textarea", { class: "hidden", readonly: true, "aria-hidden": "true" });
  field.value = text;
  // The class joins lines, which the copy would do too.
  field.style.whiteSpace = "pre";
  document.body.append(field);
  field.select();
  const isCopied = document.execCommand("copy");
  field.remove();
  before?.focus();
  return isCopied;
}
