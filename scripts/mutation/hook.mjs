/** Module hook for scripts/mutation.mjs: loads one module with the fault in the variable `MUTANT`. */
import { registerHooks } from "node:module";
import { pathToFileURL } from "node:url";

const { file, start, end, text } = JSON.parse(process.env.MUTANT);
const target = file && pathToFileURL(file).href;

registerHooks({
  load(url, context, next) {
    const loaded = next(url, context);
    if (url !== target) return loaded;
    const source = String(loaded.source);
    return { ...loaded, source: source.slice(0, start) + text + source.slice(end) };
  },
});
