/** Lists all figures of the benchmark. A figure's module is loaded only when the figure is measured, so that no figure affects another. */
import { createKindFigure } from "./figures/kind.js";
import type { Figure } from "./harness/figure.js";
import { ACTION_KINDS } from "./harness/kinds.js";

/** Functions that load the figures. The key is the figure's name on the command line. The figures are printed in this order. */
export const FIGURE_LOADERS: Record<string, () => Promise<Figure>> = {
  ...Object.fromEntries(ACTION_KINDS.map((kind) => [kind.name, async () => createKindFigure(kind)])),
  "npm-packages": () => import("./figures/npm-packages.js"),
  "request-time": () => import("./figures/request-time.js"),
  "http-trigger": () => import("./figures/http-trigger.js"),
  "many-apps": () => import("./figures/many-apps.js"),
  cores: async () => (await import("./figures/growth.js")).runRateByCoresFigure,
  runners: async () => (await import("./figures/growth.js")).runRateByRunnersFigure,
  "log-events": () => import("./figures/log-events.js"),
  "log-pages": () => import("./figures/log-pages.js"),
  "run-start": () => import("./figures/run-start.js"),
  "settings-get": () => import("./figures/settings-get.js"),
  "log-fanout": () => import("./figures/log-fanout.js"),
  capacity: () => import("./figures/capacity.js"),
  "memory-hog": () => import("./figures/memory-hog.js"),
};
