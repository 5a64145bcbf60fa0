// PictorImage.jsx, with pictor.mjs beside it. An app keeps no secret: with signing.mode "options", plain sizes need no
// signature.
//
//   <PictorImage source="https://media.example.com/hills.jpg" width={160} height={120} accessibilityLabel="A hill" />
import { Image, PixelRatio } from "react-native";
import { Pictor } from "./pictor.mjs";

const pictor = new Pictor("https://images.example.com");

// Sides are in points. iOS 14 and Android decode WebP; neither names it by itself.
export function pictorSource(source, width, height, density = PixelRatio.get()) {
  return {
    uri: pictor.url(source, { width, height, scale: density, fit: "cover" }),
    headers: { Accept: "image/webp,image/*" },
    width,
    height,
    scale: density,
  };
}

export default function PictorImage({ source, width, height, style, ...rest }) {
  return <Image source={pictorSource(source, width, height)} style={[{ width, height }, style]} {...rest} />;
}
