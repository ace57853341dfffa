/** Web worker of the code editor. Extends Monaco's TypeScript worker by the type of the action's `context`. */
import { initialize, TypeScriptWorker } from "monaco-editor/esm/vs/language/typescript/ts.worker.js";
import { addWorkerContextTypes, type Compiler } from "./typed-code.js";

// Monaco stores the TypeScript compiler in the global `ts`, for subclasses of its worker.
const { ts } = globalThis as unknown as { ts: Compiler };
const ActionWorker = addWorkerContextTypes(TypeScriptWorker, ts);

// Monaco's first message only starts the worker, so its content is ignored.
self.onmessage = () => initialize((context, data) => new ActionWorker(context, data));
