// The page: asks the server what it can do, and starts the parts that it has.

import { Bench } from "./bench.js";
import { address, byId } from "./dom.js";
import { startFigures } from "./figures.js";
import { startOperators } from "./operators.js";

const description = await describe();
byId("version").textContent = description.version;
const bench = description.listener.images ? await Bench.open(description) : null;
if (!bench) showNoImages();
startFigures(description);
startOperators(description, () => bench?.tokenChanged());

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

function showNoImages() {
  showNotice("This listener is for operators: it serves no images. Open this page at the clients' address to try a URL.");
  document.querySelector("nav [href='#try']").hidden = true;
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
