"use client";
// pictor-loader.mjs, with pictor.mjs beside it, for <Image>. In next.config.mjs:
//
//   export default {
//     images: {
//       loader: "custom", loaderFile: "./pictor-loader.mjs",
//       deviceSizes: [640, 1080, 1920], imageSizes: [160, 320],
//     },
//   };
//
// It runs in the browser too, so it cannot sign: with signing.mode "options", plain widths need no signature. `quality`
// does, so it stays the operator's setting. Use the same widths in server.size_steps. `src` is an absolute URL.
import { Pictor } from "./pictor.mjs";

const pictor = new Pictor("https://images.example.com");

export default function pictorLoader({ src, width }) {
  return pictor.url(src, { width });
}
