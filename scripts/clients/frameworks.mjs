// Writes what the loaders and the helpers of docs/clients/README.md make of a source.
import { Pictor } from "./pictor.mjs";
import pictorLoader from "./pictor-loader.mjs";
import next from "./next.config.mjs";
import { getImage } from "./pictor-provider.mjs";

globalThis.defineNuxtConfig = (configuration) => configuration;
const { image } = (await import("./nuxt.config.mjs")).default;
const source = "https://example.com/a b.jpg";
const { baseURL } = image.providers[image.provider].options;
const pictor = new Pictor("https://images.example.com");
console.log(JSON.stringify({
  loader: next.images.loader + " " + next.images.loaderFile,
  next: pictorLoader({ src: source, width: 640, quality: 75 }),
  nuxt: getImage(source, { modifiers: { width: 300, height: 200, fit: "cover", format: "webp" }, baseURL }).url,
  plain: getImage(source, { baseURL }).url,
  srcset: pictor.srcset(source, [400, 800], { fit: "cover" }),
  densities: pictor.densities(source, { width: 96 }, [1, 2]),
}));
