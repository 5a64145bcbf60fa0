import { renderToStaticMarkup } from "react-dom/server";
import PictorImage from "./recipe.jsx";

console.log(renderToStaticMarkup(
  <PictorImage source={process.env.ORIGIN + "/hills.jpg"} width={160} height={120} style={{ margin: 4 }} />));
