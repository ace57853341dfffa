/** The parts of Monaco that Studio bundles have no declarations of their own: the core is the whole API. */
declare module "monaco-editor/esm/vs/editor/edcore.main.js" {
  export * from "monaco-editor";
}
declare module "monaco-editor/esm/vs/basic-languages/javascript/javascript.contribution.js";
declare module "monaco-editor/esm/vs/basic-languages/javascript/javascript.js" {
  import type { languages } from "monaco-editor";
  export const language: languages.IMonarchLanguage;
}
declare module "monaco-editor/esm/vs/language/typescript/ts.worker.js" {
  export class TypeScriptWorker {
    constructor(context: unknown, data: unknown);
  }
  export function initialize(create: (context: unknown, data: unknown) => unknown): void;
}
