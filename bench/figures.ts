/** All figures. Each module is loaded when its figure is measured, so that none affects another. */
import { figureOf } from "./figures/kind.js";
import type { Figure } from "./harness/figure.js";
import { KINDS } from "./harness/kinds.js";

/** By the name that the command line takes, in the order to print. */
export const FIGURES: Record<string, () => Promise<Figure>> = {
  ...Object.fromEntries(KINDS.map((kind) => [kind.name, async () => figureOf(kind)])),
  "npm-packages": () => import("./figures/npm-packages.js"),
  "request-time": () => import("./figures/request-time.js"),
  "http-trigger": () => import("./figures/http-trigger.js"),
  "many-apps": () => import("./figures/many-apps.js"),
  cores: async () => (await import("./figures/growth.js")).cores,
  runners: async () => (await import("./figures/growth.js")).runners,
  "log-events": () => import("./figures/log-events.js"),
  "log-pages": () => import("./figures/log-pages.js"),
  "run-start": () => import("./figures/run-start.js"),
  "settings-get": () => import("./figures/settings-get.js"),
  "log-fanout": () => import("./figures/log-fanout.js"),
  capacity: () => import("./figures/capacity.js"),
  "memory-hog": () => import("./figures/memory-hog.js"),
};
