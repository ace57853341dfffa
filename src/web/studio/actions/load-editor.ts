/** Loads Monaco on demand: its code and style sheet are four times as large as the rest of Studio. */
import { serviceAddress } from "../../service-address.js";
import { loading } from "../shell/load-error.js";
import { preloadPart } from "../shell/parts.js";
import type * as editors from "./code-editor.js";
import { setEditorReady } from "./editor-ready.js";

/** Hashed name of the style sheet, which the build inserts. */
declare const MONACO_STYLE: string;

function loadStyle(): Promise<void> {
  const link = Object.assign(document.createElement("link"), { rel: "stylesheet", href: serviceAddress(MONACO_STYLE) });
  document.head.prepend(link);
  return new Promise((resolve, reject) => {
    link.onload = () => resolve();
    link.onerror = () => reject(new Error("the editor's style sheet could not be loaded"));
  });
}

async function load(): Promise<typeof editors> {
  preloadPart("editor");
  const [module] = await Promise.all([import("./code-editor.js"), loadStyle()]);
  setEditorReady();
  return module;
}

let loaded: Promise<typeof editors> | undefined;

export function loadEditor(): Promise<typeof editors> {
  loaded ??= loading(load()).catch((error: unknown) => {
    loaded = undefined;
    throw error;
  });
  return loaded;
}
