/** Monaco when an editor is first shown: its code and its style sheet are four times the rest of Studio. */
import { type ComponentProps, lazy, Suspense } from "react";
import { serviceAddress } from "../../service-address.js";
import { loading } from "../shell/page-boundary.js";
import type * as editors from "./code-editor.js";

/** The build puts the hashed name here. */
declare const MONACO_STYLE: string;

function loadStyle(): Promise<void> {
  const link = Object.assign(document.createElement("link"), { rel: "stylesheet", href: serviceAddress(MONACO_STYLE) });
  document.head.prepend(link);
  return new Promise((resolve, reject) => {
    link.onload = () => resolve();
    link.onerror = () => reject(new Error("the editor's style sheet could not be loaded"));
  });
}

let loaded: Promise<typeof editors> | undefined;

function load(): Promise<typeof editors> {
  loaded ??= loading(Promise.all([import("./code-editor.js"), loadStyle()])).then(([module]) => module);
  return loaded;
}

const LazyEditor = lazy(async () => ({ default: (await load()).CodeEditor }));
const LazyCompare = lazy(async () => ({ default: (await load()).CodeCompare }));

const waiting = <p className="hint empty">Loading the editor…</p>;

export const CodeEditor = (props: ComponentProps<typeof LazyEditor>) => (
  <Suspense fallback={waiting}>
    <LazyEditor {...props} />
  </Suspense>
);

export const CodeCompare = (props: ComponentProps<typeof LazyCompare>) => (
  <Suspense fallback={waiting}>
    <LazyCompare {...props} />
  </Suspense>
);
