/** Replaces the console of a run, or of a worker that it starts. Runs before the action's code. */
import type { Any } from "./any.js";
import type { ValueFormatter } from "./value-formatter.js";

export interface HarnessLimits {
  resultMaxBytes: number;
  consoleMaxLines: number;
  consoleMaxCharacters: number;
  consoleFullMessage: string;
}

declare const self: Any;

export type InstallConsole = ReturnType<typeof createConsoleInstaller>;

/** Runs in the browser, which gets only the source text of this function. So it can use only globals and its own code. */
export function createConsoleInstaller(limits: HarnessLimits, formatter: ValueFormatter) {
  const scope = globalThis as Any;
  const { ownKeys } = Reflect;
  const { stringify } = JSON;
  const { now } = Date;

  /** Returns `first` and the values from the index `from` on. Uses no array methods, because the action may have replaced them. */
  function withFirstValue(first: unknown, values: Any, from: number): Any[] {
    const all: Any[] = [first];
    for (let at = from; at < values.length; at += 1) all[all.length] = values[at];
    return all;
  }

  function createCountAndTimeMethods(write: (level: string, values: Any) => void): Any {
    const counts: Any = { __proto__: null };
    const startTimes: Any = { __proto__: null };
    const formatLabel = (label: Any) => (label === undefined ? "default" : formatter.format(label));
    function printElapsed(label: string, values: Any): boolean {
      const startedAt = startTimes[label];
      if (startedAt === undefined) write("warn", [`Timer '${label}' does not exist`]);
      else write("log", withFirstValue(`${label}: ${now() - startedAt} ms`, values, 1));
      return startedAt !== undefined;
    }
    return {
      count(value: Any) {
        const label = formatLabel(value);
        counts[label] = (counts[label] ?? 0) + 1;
        write("log", [`${label}: ${counts[label]}`]);
      },
      countReset(value: Any) {
        const label = formatLabel(value);
        if (counts[label] === undefined) write("warn", [`Count for '${label}' does not exist`]);
        else counts[label] = 0;
      },
      time(value: Any) {
        const label = formatLabel(value);
        if (startTimes[label] === undefined) startTimes[label] = now();
        else write("warn", [`Timer '${label}' already exists`]);
      },
      timeLog: (...values: Any[]) => void printElapsed(formatLabel(values[0]), values),
      timeEnd(value: Any) {
        const label = formatLabel(value);
        if (printElapsed(label, [])) delete startTimes[label];
      },
    };
  }

  return (print: (line: string) => void): void => {
    let lines = 0;
    let characters = 0;
    const write = (level: string, values: Any, hasSpecifiers = false) => {
      if (lines > limits.consoleMaxLines || characters > limits.consoleMaxCharacters) return;
      const text = formatter.formatLine(values, hasSpecifiers);
      lines += 1;
      characters += text.length;
      const isFull = lines > limits.consoleMaxLines || characters > limits.consoleMaxCharacters;
      const line = isFull ? limits.consoleFullMessage : text;
      print(stringify({ __proto__: null, level: isFull ? "warn" : level, at: now(), text: line }));
    };
    const { console } = scope;
    for (const key of ownKeys(console) as string[]) if (typeof console[key] === "function") console[key] = () => {};
    for (const level of ["debug", "info", "log", "warn", "error", "trace"])
      console[level] = (...values: Any[]) => write(level, values, true);
    for (const level of ["dir", "table"]) console[level] = (...values: Any[]) => write(level, values);
    for (const name of ["group", "groupCollapsed"]) console[name] = (...values: Any[]) => write("log", values, true);
    console.assert = (...values: Any[]) => {
      if (values[0]) return;
      if (typeof values[1] === "string")
        write("error", withFirstValue(`Assertion failed ${values[1]}`, values, 2), true);
      else write("error", withFirstValue("Assertion failed", values, 1));
    };
    const methods = createCountAndTimeMethods(write);
    for (const name of ownKeys(methods) as string[]) console[name] = methods[name];
  };
}

/** Replaces the console, and removes its DevTools binding from the globals. The browser evaluates this function's source text. */
export function replaceWorkerConsole(core: { installConsole: InstallConsole }, bindingName: string): void {
  const print = self[bindingName];
  delete self[bindingName];
  core.installConsole(print);
}
