/**
 * Checks each screen of Studio in each of its states with axe, and that no screen is wider than the window. A whole run takes about 40
 * minutes on two busy cores. To run one part, name its theme and width: `--grep "Studio, dark, 390"`.
 */
import { walkStudio } from "../web/studio-walk.js";

for (const width of [1280, 390]) {
  for (const theme of ["light", "dark"] as const) walkStudio({ width, theme });
}
