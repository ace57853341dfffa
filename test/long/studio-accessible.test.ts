/** Every screen of Studio in each of its looks, judged by axe and by its width. */
import { walkStudio } from "../web/studio-walk.js";

for (const width of [1280, 390]) {
  for (const theme of ["light", "dark"] as const) walkStudio({ width, theme });
}
