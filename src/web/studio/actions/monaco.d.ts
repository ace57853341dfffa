/** Declares the modules of Monaco that Studio imports and that have no type declarations. */
declare module "monaco-editor/esm/vs/base/*";
declare module "monaco-editor/esm/vs/editor/browser/*";
declare module "monaco-editor/esm/vs/editor/common/*";
declare module "monaco-editor/esm/vs/editor/contrib/*";
declare module "monaco-editor/esm/vs/editor/standalone/*";
declare module "monaco-editor/esm/vs/basic-languages/javascript/javascript.js" {
  import type { languages } from "monaco-editor";
  export const conf: languages.LanguageConfiguration;
  export const language: languages.IMonarchLanguage;
}
declare module "monaco-editor/esm/vs/language/typescript/ts.worker.js" {
  export class TypeScriptWorker {
    constructor(context: unknown, data: unknown);
  }
  export function initialize(create: (context: unknown, data: unknown) => unknown): void;
}
