// server/api/pictor.get.mjs, with pictor.mjs and pictor-sign.mjs in server/utils. In nuxt.config:
// runtimeConfig: { pictor: { base: "https://images.example.com", sources: "https://media.example.com/", secret: "" } },
// NUXT_PICTOR_SECRET is the secret. In a page, which gets the answer with its HTML:
//
//   const { data: image } = await useFetch("/api/pictor", { query: { src: post.cover, layout: "card" } });
//   <img v-bind="image" alt="A hill" loading="lazy">
import { Pictor } from "../utils/pictor.mjs";
import { signer } from "../utils/pictor-sign.mjs";

// Anyone may ask this address, so it signs these alone: those of a layout follow it, others have a fixed size, in points.
const LAYOUTS = {
  card: { width: 800, height: 533, widths: [400, 800, 1600], sizes: "(max-width: 800px) 100vw, 800px" },
  avatar: { width: 96, height: 96 },
};

export default defineEventHandler((event) => {
  const { src, layout } = getQuery(event);
  const { base, sources, secret } = useRuntimeConfig(event).pictor;
  // With its slash, so that the host is whole.
  if (!Object.hasOwn(LAYOUTS, layout) || !String(src).startsWith(new URL(sources).href)) {
    throw createError({ statusCode: 400, statusMessage: "unknown layout or source" });
  }
  const { width, height, widths, sizes } = LAYOUTS[layout];
  const pictor = new Pictor(base, signer("main", secret));
  const options = { width, height, fit: "cover" };
  const srcset = widths ? pictor.srcset(src, widths, options) : pictor.densities(src, options);
  return { src: pictor.url(src, options), srcset, sizes, width, height };
});
