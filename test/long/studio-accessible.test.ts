/** The looks of Studio that test/web/studio-accessible.test.ts leaves to here. */
import { walkStudio } from "../web/studio-walk.js";

walkStudio({ width: 1280, theme: "dark" });
walkStudio({ width: 390, theme: "light" });
walkStudio({ width: 390, theme: "dark" });
