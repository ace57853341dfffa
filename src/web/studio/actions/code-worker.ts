/** The editor's worker: TypeScript as Monaco brings it, which knows what an action is given. */
import { initialize, TypeScriptWorker } from "monaco-editor/esm/vs/language/typescript/ts.worker.js";
import { type Compiler, withTypedContext } from "./typed-code.js";

// Monaco exposes the compiler there for extensions of its worker.
const { ts } = globalThis as unknown as { ts: Compiler };
const ActionWorker = withTypedContext(TypeScriptWorker, ts);

// The first message is Monaco's own, and says nothing.
self.onmessage = () => initialize((context, data) => new ActionWorker(context, data));
