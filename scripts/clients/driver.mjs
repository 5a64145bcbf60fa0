import { readFileSync } from "node:fs";
import { Pictor } from "./pictor.mjs";
import { signer } from "./pictor-sign.mjs";

const names = { w: "width", h: "height", exp: "expires" };
const numbers = new Set(["w", "h", "scale", "quality", "exp"]);

for (const line of readFileSync(0, "utf8").split("\n").slice(0, -1)) {
  const [base, key, secret, path, typed, source, ...rest] = line.split("\t");
  const options = rest.map((item) => item.split(/=(.*)/s, 2));
  const own = typed === "1"
    ? Object.fromEntries(options.map(([name, value]) =>
      [names[name] ?? name, numbers.has(name) ? Number(value) : value]))
    : { more: Object.fromEntries(options) };
  console.log(new Pictor(base, key ? signer(key, secret) : undefined).url(source, { ...own, path }));
}
