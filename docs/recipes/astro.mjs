// src/pictor-service.mjs, with pictor.mjs and pictor-sign.mjs beside it. In astro.config.mjs:
// site: "https://www.example.com", image: { service: { entrypoint: "./src/pictor-service.mjs" } },
//
//   <Image src={post.cover} width={800} height={533} widths={[400, 800, 1600]} sizes="100vw" alt="A hill" />
//   <Image src={user.avatar} width={96} height={96} densities={[1, 2, 3]} alt={user.name} />
import { Pictor } from "./pictor.mjs";
import { signer } from "./pictor-sign.mjs";

const pictor = new Pictor(process.env.PICTOR_BASE, signer("main", process.env.PICTOR_SECRET));

// An imported image has a path below the site, and its sides.
const size = ({ src, width, height }) => {
  const ratio = src.width ? src.width / src.height : width / height;
  return { width: width ?? (height ? height * ratio : src.width), height: height ?? (width ? width / ratio : src.height) };
};

export default {
  getURL(options) {
    const source = new URL(options.src.src ?? options.src, import.meta.env?.SITE).href;
    const { fit = "cover", format = "auto", scale } = options;
    return pictor.url(source, { ...size(options), scale, fit, format });
  },
  getSrcSet(options) {
    const { width, height } = size(options);
    if (options.widths) {
      return options.widths.map((side) =>
        ({ transform: { ...options, width: side, height: (side * height) / width }, descriptor: `${side}w` }));
    }
    return (options.densities ?? []).map((density) =>
      ({ transform: { ...options, scale: parseFloat(density) }, descriptor: `${parseFloat(density)}x` }));
  },
  getHTMLAttributes(options) {
    const { src, format, formats, quality, widths, densities, fit, position, layout, priority, inferSize, ...rest } =
      options;
    const { width, height } = size(options);
    return { loading: "lazy", decoding: "async", ...rest, width: Math.round(width), height: Math.round(height) };
  },
};
