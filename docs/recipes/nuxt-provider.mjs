// pictor-provider.mjs, with pictor.mjs beside it, for <NuxtImg>. In nuxt.config:
//
//   modules: ["@nuxt/image"],
//   image: {
//     provider: "pictor",
//     providers: { pictor: { provider: "~/pictor-provider.mjs", options: { baseURL: "https://images.example.com" } } },
//   },
//
// It runs in the browser too, so it cannot sign: with signing.mode "options", plain sizes need no signature.
// From version 2 on, Nuxt Image expects `export default defineProvider({ getImage })`.
import { Pictor } from "./pictor.mjs";

// Nuxt's names of `fit` are those of CSS and of sharp; Pictor has sharp's.
export function getImage(src, { modifiers = {}, baseURL = "" } = {}) {
  const { width, height, fit, format } = modifiers;
  return { url: new Pictor(baseURL).url(src, { width, height, fit, format }) };
}
