// Nitro's functions are global, as in Nuxt's server.
Object.assign(globalThis, {
  defineEventHandler: (handler) => handler,
  getQuery: (event) => event.query,
  createError: (options) => Object.assign(new Error(options.statusMessage), options),
  useRuntimeConfig: () => ({ pictor: { base: "https://images.example.com", sources: process.env.ORIGIN + "/", secret: process.env.PICTOR_SECRET } }),
});
const { default: handler } = await import("./nuxt-signed.get.mjs");
const { getImage } = await import("./nuxt-provider.mjs");

const html = (attributes) => "<img" + Object.entries(attributes).filter(([, value]) => value !== undefined)
  .map(([name, value]) => ` ${name}="${String(value).replaceAll("&", "&amp;")}"`).join("") + ">";
const src = process.env.ORIGIN + "/hills.jpg";
console.log(html(handler({ query: { src, layout: "card" } })));
console.log(html(handler({ query: { src, layout: "avatar" } })));
for (const query of [{ src, layout: "toString" }, { src: "https://elsewhere.example/a.jpg", layout: "card" }, {}]) {
  try {
    handler({ query });
  } catch (error) {
    if (error.statusCode === 400) continue;
  }
  throw new Error("signed: " + JSON.stringify(query));
}
const baseURL = "https://images.example.com";
const { url } = getImage(src, { modifiers: { width: 300, height: 300, fit: "cover", format: "webp" }, baseURL });
console.log(html({ "data-unsigned": "", "data-type": "image/webp", src: url, width: 300, height: 300 }));
console.log(html({ "data-unsigned": "", src: getImage(src, { baseURL }).url, width: 1800, height: 1200 }));
