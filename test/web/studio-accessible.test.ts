/** Every screen at a desk in light and on a phone in dark; the other two looks are in test/long. */
import { walkStudio } from "./studio-walk.js";

walkStudio({ width: 1280, theme: "light" });
walkStudio({ width: 390, theme: "dark" });
