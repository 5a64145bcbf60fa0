// app/pictor-image.jsx: a server component, with pictor.mjs and pictor-sign.mjs beside it.
//
//   <PictorImage src={post.cover} width={800} height={533} widths={[400, 800, 1600]} alt="A hill" />
//   <PictorImage src={user.avatar} width={96} height={96} alt={user.name} />
import "server-only"; // the secret stays out of the browser
import { Pictor } from "./pictor.mjs";
import { signer } from "./pictor-sign.mjs";

const pictor = new Pictor(process.env.PICTOR_BASE, signer("main", process.env.PICTOR_SECRET));

// With widths, the image follows the layout, and the browser picks one; without, it has a fixed size, in points.
export default function PictorImage({ src, width, height, widths, sizes = "100vw", ...attributes }) {
  const options = { width, height, fit: "cover" };
  return (
    <img src={pictor.url(src, options)} sizes={widths && sizes} width={width} height={height} loading="lazy"
      srcSet={widths ? pictor.srcset(src, widths, options) : pictor.densities(src, options)} {...attributes} />
  );
}
