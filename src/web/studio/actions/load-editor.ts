/** Loads Monaco when a page first needs it, because Monaco is much larger than the rest of Studio. */
import { resolveServiceUrl } from "../../service-address.js";
import { importOrThrowLoadError } from "../shell/load-error.js";
import { preloadStudioPart } from "../shell/preload-parts.js";
import type * as editors from "./code-editor.js";
import { markCodeEditorReady } from "./editor-ready.js";

/** File name of Monaco's style sheet, with a hash. The build inserts it. */
declare const MONACO_STYLE: string;

function loadMonacoStyle(): Promise<void> {
  const link = Object.assign(document.createElement("link"), {
    rel: "stylesheet",
    href: resolveServiceUrl(MONACO_STYLE),
  });
  document.head.prepend(link);
  return new Promise((resolve, reject) => {
    link.onload = () => resolve();
    link.onerror = () => reject(new Error("the editor's style sheet could not be loaded"));
  });
}

async function loadModules(): Promise<typeof editors> {
  preloadStudioPart("editor");
  const [module] = await Promise.all([import("./code-editor.js"), loadMonacoStyle()]);
  markCodeEditorReady();
  return module;
}

let editorModules: Promise<typeof editors> | undefined;

export function loadCodeEditor(): Promise<typeof editors> {
  editorModules ??= importOrThrowLoadError(loadModules()).catch((error: unknown) => {
    editorModules = undefined;
    throw error;
  });
  return editorModules;
}
