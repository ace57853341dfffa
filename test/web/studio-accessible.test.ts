/** Every screen at a desk, in light; the other looks are in test/long. */
import { walkStudio } from "./studio-walk.js";

walkStudio({ width: 1280, theme: "light" });
