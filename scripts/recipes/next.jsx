import { renderToStaticMarkup } from "react-dom/server";
import PictorImage from "./next-image.jsx";
import pictorLoader from "./next-loader.mjs";

const src = process.env.ORIGIN + "/hills.jpg";
console.log(renderToStaticMarkup(<>
  <PictorImage src={src} width={800} height={533} widths={[400, 800, 1600]} alt="A hill & more" />
  <PictorImage src={src} width={320} height={180} widths={[320, 640]} sizes="50vw" alt="" />
  <PictorImage src={src} width={96} height={96} alt="" />
</>));
// What next/image does with a loader: a width each, and the largest as src.
const candidates = [640, 1080].map((width) => `${pictorLoader({ src, width })} ${width}w`).join(", ");
console.log(renderToStaticMarkup(
  <img data-unsigned="" src={pictorLoader({ src, width: 1080 })} srcSet={candidates} sizes="100vw" width="1080" height="720" />));
