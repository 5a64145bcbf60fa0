// A control for every parameter, made from the server's description of them (page/parameters.json).

import { showParameter } from "./documents.js";
import { element, replace } from "./dom.js";

/** Ranges with at most this many steps get a slider beside the number. */
const SLIDER_STEPS = 255;
/** Sides get one up to the source's side, or to this number while that is not known. */
const SIDES = new Set(["w", "h"]);
const USUAL_SIDE = 2000;

/** The controls of all parameters but `url`, which has a field of its own. */
export class Controls {
  #entries = new Map();
  #explained;

  /** Fills `place` with a group of controls for each group of the description. `explained` gets what the documents say of
      the parameter that has the focus or the pointer. `changed` is called with whether more changes are likely. */
  constructor(description, place, explained, changed) {
    this.#explained = explained;
    const opened = new Set(["Size", "Output"]);
    for (const { title, parameters } of description.groups) {
      const rows = parameters.filter(({ name }) => name !== "url").map((parameter) => this.#row(parameter, changed));
      const used = element("span", { class: "used" });
      const group = element("details", { open: opened.has(title) },
        element("summary", {}, title, used), element("div", { class: "rows" }, ...rows));
      for (const { name } of parameters) {
        const entry = this.#entries.get(name);
        if (entry) Object.assign(entry, { group, used });
      }
      place.append(group);
    }
  }

  /** The names and values that differ from the defaults, in the order of the table. */
  get pairs() {
    const found = [];
    for (const [name, { read }] of this.#entries) {
      const value = read();
      if (value !== "") found.push([name, value]);
    }
    return found;
  }

  /** Sets all controls; those that `values` (a `URLSearchParams`) leaves out get their default. */
  fill(values) {
    for (const [name, { write }] of this.#entries) write(values.get(name) ?? "");
    this.countUsed();
  }

  /** Shows how many parameters of each group are set. */
  countUsed() {
    const counts = new Map();
    for (const { used, read } of this.#entries.values()) {
      counts.set(used, (counts.get(used) ?? 0) + (read() === "" ? 0 : 1));
    }
    for (const [used, number] of counts) used.textContent = number > 0 ? `${number} set` : "";
  }

  /** Marks the control that an error names, and unmarks the others. Returns whether there is one. */
  mark(name, message) {
    for (const [own, { input, problem, group }] of this.#entries) {
      const isWrong = own === name;
      problem.textContent = isWrong ? message : "";
      if (isWrong) {
        input.setAttribute("aria-invalid", "true");
        group.open = true;
      } else {
        input.removeAttribute("aria-invalid");
      }
    }
    return this.#entries.has(name);
  }

  /** Lets the sliders of the sides end at the source's. */
  limitSides({ width, height }) {
    this.#entries.get("w")?.limit?.(width);
    this.#entries.get("h")?.limit?.(height);
  }

  /** Says which parameters this client may not use: none, if an operator's token comes with its requests. */
  allowAll(isOperator) {
    for (const { parameter, note, input } of this.#entries.values()) {
      note.textContent = parameter.open || isOperator ? "" : "needs a signature, or is not allowed here";
      for (const option of input.options ?? []) {
        option.disabled = !isOperator && parameter.closed.includes(option.value);
      }
    }
  }

  #row(parameter, changed) {
    const { name, help, unit, allowed, standard } = parameter;
    const id = `p-${name}`;
    const control = makeControl(parameter, id, (event) => {
      this.countUsed();
      changed(event?.target.matches("[type='text'], [type='number']"));
    });
    const problem = element("span", { class: "problem", id: `${id}-problem` });
    const note = element("span", { class: "note" });
    const range = `${allowed}${unit && !allowed.includes(unit) ? ` (${unit})` : ""}${standard ? `; else ${standard}` : ""}`;
    const hint = element("span", { class: "hint", id: `${id}-hint` }, `${help}. `,
      element("span", { class: "range" }, `Allowed: ${range}.`), " ", note);
    // The Tab key passes it by, unless the parameters are explained.
    const more = element("a", {
      class: "more", href: "page/http-api.md", title: `More about ${name}`, "aria-label": `More about ${name}`,
      tabindex: -1, onclick: (event) => showParameter(name, event),
    }, "?");
    control.input.setAttribute("aria-describedby", `${id}-hint ${id}-problem`);
    this.#entries.set(name, { ...control, parameter, problem, note });
    const explain = () => replace(this.#explained, element("strong", {}, name), ` ${hint.textContent}`);
    return element("div", { class: control.isCheckbox ? "row check" : "row", onfocusin: explain, onpointerenter: explain },
      element("label", { for: id }, name), element("span", { class: "value" }, ...control.parts, more), hint, problem);
  }
}

/** Returns a control: its parts, the part that has the label, and how to read and write its value. */
function makeControl(parameter, id, changed) {
  const { names, numbers, form } = parameter;
  if (SIDES.has(parameter.name)) return text(parameter, id, changed);
  if (!numbers && !form && isFlag(names)) return checkbox(parameter, id, changed);
  if (!numbers && !form) return choice(parameter, id, changed);
  if (numbers && names.length === 0) return number(parameter, id, changed);
  if (form === "color") return color(parameter, id, changed);
  return text(parameter, id, changed);
}

const isFlag = (names) => names.every((name) => name === "0" || name === "1") && names.length > 0;

function checkbox({ standard }, id, changed) {
  const input = element("input", { type: "checkbox", id, onchange: changed });
  const usual = standard === "1";
  return {
    input, parts: [input], isCheckbox: true,
    read: () => (input.checked === usual ? "" : input.checked ? "1" : "0"),
    write: (value) => { input.checked = value === "" ? usual : value === "1"; },
  };
}

function choice({ names, standard }, id, changed) {
  const others = names.filter((name) => name !== standard).map((name) => element("option", { value: name }, name));
  const input = element("select", { id, onchange: changed },
    element("option", { value: "" }, standard ?? (names.length > 0 ? "–" : "none configured")), ...others);
  return {
    input, parts: [input],
    read: () => input.value,
    write: (value) => { input.value = names.includes(value) && value !== standard ? value : ""; },
  };
}

function number({ name, numbers, standard }, id, changed) {
  const { minimum, maximum, whole, above } = numbers;
  const step = whole ? 1 : 0.1;
  const least = above ? step : minimum;
  // Fields take any fraction; their arrow keys move by a step.
  const input = element("input", {
    type: "number", id, min: least, max: maximum, step: whole ? 1 : "any", inputmode: "decimal",
    placeholder: standard ?? "–", oninput: (event) => { control.follow?.(); changed(event); },
  });
  if (!whole) input.addEventListener("keydown", (event) => stepBy(event, input, step));
  const control = field(input);
  if ((maximum - minimum) / step <= SLIDER_STEPS && maximum !== undefined) {
    addSlider(control, { name, least, most: maximum, step, standard }, changed);
  }
  return control;
}

/** A control that is a field, perhaps with a slider that follows it. */
function field(input) {
  const control = {
    input, parts: [input],
    read: () => input.value.trim(),
    write: (value) => {
      input.value = value;
      control.follow?.();
    },
  };
  return control;
}

/** Puts a slider before a field. `standard` is its place without a value; a side without one is the source's. */
function addSlider(control, { name, least, most, step, standard }, changed) {
  const { input } = control;
  const slider = element("input", {
    type: "range", "aria-label": `${name}, slider`, min: least, max: most, step,
    oninput: (event) => { input.value = slider.value; control.follow(); changed(event); },
  });
  control.parts.unshift(slider);
  control.follow = () => {
    const usual = standard ?? (SIDES.has(name) ? slider.max : (least + most) / 2);
    slider.value = /^-?[\d.]+$/.test(input.value) ? input.value : usual;
    slider.classList.toggle("unset", input.value === "" && !standard);
  };
  control.limit = (side) => {
    slider.max = side;
    control.follow();
  };
  control.follow();
}

/** Moves a field without steps by one when an arrow key is pressed. */
function stepBy(event, input, step) {
  const direction = { ArrowUp: 1, ArrowDown: -1 }[event.key];
  if (!direction) return;
  event.preventDefault();
  // A name, such as auto, counts as 0.
  const next = Math.round(((Number(input.value) || 0) + direction * step) * 100) / 100;
  if (next < Number(input.min) || (input.max !== "" && next > Number(input.max))) return;
  input.value = String(next);
  input.dispatchEvent(new Event("input"));
}

function color({ name, standard }, id, changed) {
  const input = element("input", {
    type: "text", id, placeholder: standard ?? "rrggbbaa", maxlength: 8, spellcheck: "false", autocomplete: "off",
    oninput: (event) => { follow(); changed(event); },
  });
  const picker = element("input", {
    type: "color", "aria-label": `${name}, colour picker`,
    oninput: () => { input.value = picker.value.slice(1); changed(); },
  });
  const follow = () => {
    const digits = /^[0-9a-f]{6}/i.exec(input.value) ?? [standard ?? "888888"];
    picker.value = `#${digits[0].toLowerCase()}`;
  };
  follow();
  return {
    input, parts: [picker, input],
    read: () => input.value.trim(),
    write: (value) => { input.value = value; follow(); },
  };
}

const placeholders = { point: "0.3,0.7", ratio: "16:9", area: "x,y,w,h", url: "local:///…", text: "–" };

function text({ name, names, numbers, form, standard }, id, changed) {
  const list = element("datalist", { id: `${id}-names` }, ...names.map((one) => element("option", { value: one })));
  const input = element("input", {
    type: "text", id, list: names.length > 0 ? list.id : null, spellcheck: "false", autocomplete: "off",
    placeholder: standard ?? (numbers ? "–" : names[0] ?? placeholders[form]),
    oninput: (event) => { control.follow?.(); changed(event); },
  });
  if (numbers) {
    const step = numbers.whole ? 1 : 0.1;
    input.min = numbers.above ? step : numbers.minimum;
    input.max = numbers.maximum ?? "";
    input.addEventListener("keydown", (event) => stepBy(event, input, step));
  }
  const control = field(input);
  control.parts.push(list);
  if (SIDES.has(name)) addSlider(control, { name, least: 1, most: USUAL_SIDE, step: 1 }, changed);
  return control;
}
