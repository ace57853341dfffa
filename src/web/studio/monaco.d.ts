/** The parts of Monaco that Studio bundles have no declarations of their own: the core is the whole API. */
declare module "monaco-editor/esm/vs/editor/edcore.main.js" {
  export * from "monaco-editor";
}
declare module "monaco-editor/esm/vs/basic-languages/javascript/javascript.contribution.js";
