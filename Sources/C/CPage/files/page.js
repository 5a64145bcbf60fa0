// The page: connects the address, the controls, the result and the location's hash, which holds the whole request.

import { Controls } from "./controls.js";
import { address, announce, byId, element } from "./dom.js";
import { startFigures } from "./figures.js";
import { startOperators, tokenForImages } from "./operators.js";
import { Loader, show } from "./result.js";
import { query, showSnippets } from "./snippets.js";

/** How long to wait for further changes before a request is sent. */
const PAUSE = 250;

const description = await describe();
byId("version").textContent = description.version;
/** Called when an operator's token comes or goes. */
let tokenChanged = () => {};
startFigures(description);
if (description.listener.images) startTrying();
else showNoImages();
startOperators(description, () => { tokenChanged(); });

/** Reads what the server says of itself. Without it there is nothing to show. */
async function describe() {
  try {
    const response = await fetch(address("page/parameters.json"));
    if (response.ok) return await response.json();
    throw new Error(`status ${response.status}`);
  } catch (error) {
    showNotice(`The server did not describe its parameters (${error.message}). Reload the page to try again.`);
    throw error;
  }
}

function showNotice(text) {
  byId("try").hidden = true;
  byId("notice").textContent = text;
  byId("notice").hidden = false;
}

/** The hash holds the request, so links to parts of the page scroll by themselves. */
for (const link of document.querySelectorAll("a[data-part]")) {
  link.addEventListener("click", (event) => {
    event.preventDefault();
    const part = byId(link.hash.slice(1));
    part.scrollIntoView();
    part.focus({ preventScroll: true });
  });
}

function showNoImages() {
  showNotice("This listener is for operators: it serves no images. Open this page at the clients' address to try a URL.");
  document.querySelector("nav [href='#try']").hidden = true;
}

function startTrying() {
  const loader = new Loader();
  const url = byId("url");
  const controls = new Controls(description, byId("controls"), later);
  let timer = null;
  let loads = 0;

  function pairs() {
    return [["url", url.value.trim()], ...controls.pairs];
  }

  /** Reads the request that the hash describes, as the query of /image. Unknown names are ignored. */
  function readHash() {
    const wanted = new URLSearchParams(location.hash.slice(1).replaceAll("+", "%2B"));
    url.value = wanted.get("url") ?? "";
    controls.fill(wanted);
    byId("accepts").value = ["webp", "none"].includes(wanted.get("accepts")) ? wanted.get("accepts") : "all";
  }

  function writeHash() {
    const accepts = byId("accepts").value;
    const all = [...pairs(), ...(accepts === "all" ? [] : [["accepts", accepts]])];
    history.replaceState(null, "", `#${query(all)}`);
  }

  function later() {
    clearTimeout(timer);
    timer = setTimeout(load, PAUSE);
  }

  async function load() {
    clearTimeout(timer);
    controls.countUsed();
    const wanted = pairs();
    writeHash();
    if (wanted[0][1] === "") return;
    loads += 1;
    const number = loads;
    const stage = byId("stage");
    stage.setAttribute("aria-busy", "true");
    byId("reload").textContent = "Loading…";
    const accept = acceptField(description.autoFormats);
    const answers = await loader.load(wanted, { accept, token: tokenForImages() });
    if (answers === null) return;
    const sizes = await show(answers, wanted, controls, () => number === loads);
    if (sizes === null) return;
    stage.setAttribute("aria-busy", "false");
    stage.classList.add("filled");
    byId("reload").textContent = "Load";
    showSnippets(wanted, accept, sizes);
  }

  byId("request").addEventListener("submit", (event) => {
    event.preventDefault();
    if (url.value.trim() === "") {
      announce("Enter the URL of an image");
      url.focus();
    } else {
      load();
    }
  });
  byId("reset").addEventListener("click", () => {
    controls.fill(new URLSearchParams());
    load();
  });
  byId("accepts").addEventListener("change", load);
  startComparison();
  addSamples(url, load);
  controls.allowAll(false);
  tokenChanged = () => {
    controls.allowAll(tokenForImages() !== null);
    load();
  };
  addEventListener("hashchange", () => { readHash(); load(); });
  byId("signing-note").textContent = {
    required: "This server answers signed URLs only: add exp and sig below, or an operator's token.",
    options: "Unsigned requests may use plain sizes, formats and presets; the rest needs a signature.",
  }[description.signing] ?? "";
  readHash();
  if (url.value === "" && description.samples.length > 0) {
    url.value = description.samples[0];
  }
  load();
}

/** The `Accept` field that stands for the chosen client. */
function acceptField(autoFormats) {
  const chosen = byId("accepts").value;
  const named = autoFormats.filter((type) => chosen === "all" || (chosen === "webp" && type === "image/webp"));
  return named.length > 0 ? `${named.join(",")},*/*;q=0.8` : "";
}

function addSamples(url, load) {
  const place = byId("samples");
  for (const sample of description.samples) {
    const name = sample.replace(/[?#].*/, "").split("/").filter(Boolean).at(-1) ?? sample;
    place.append(element("button", {
      type: "button", class: "chip", title: sample, onclick: () => {
        url.value = sample;
        load();
      },
    }, name));
  }
  byId("samples-row").hidden = description.samples.length === 0;
}

/** The slider over both images, and the choice of the view. */
function startComparison() {
  const comparison = byId("comparison");
  const split = byId("split");
  const follow = () => {
    comparison.style.setProperty("--split", `${split.value}%`);
    split.setAttribute("aria-valuetext", `${split.value} % source, ${100 - split.value} % result`);
  };
  split.addEventListener("input", follow);
  follow();
  for (const choice of document.getElementsByName("view")) {
    choice.addEventListener("change", () => { comparison.classList.toggle("beside", byId("view-beside").checked); });
  }
}
