// Does with the service what astro:assets does for <Image>.
process.env.PICTOR_BASE = "https://images.example.com";
const { default: service } = await import("./recipe.mjs");

const src = process.env.ORIGIN + "/hills.jpg";
for (const options of [
  { src, width: 800, height: 533, widths: [400, 800, 1600], sizes: "100vw" },
  { src: { src, width: 1800, height: 1200, format: "jpg" }, width: 320, widths: [320, 640], sizes: "50vw" },
  { src, width: 96, height: 96, densities: [1, "2x", 3] },
  { src: { src, width: 1800, height: 1200, format: "jpg" }, height: 100 },
]) {
  const candidates = service.getSrcSet(options).map((one) => `${service.getURL(one.transform)} ${one.descriptor}`);
  const attributes = { src: service.getURL(options), ...service.getHTMLAttributes(options) };
  if (candidates.length > 0) attributes.srcset = candidates.join(", ");
  console.log("<img" + Object.entries(attributes)
    .map(([name, value]) => ` ${name}="${String(value).replaceAll("&", "&amp;")}"`).join("") + ">");
}
