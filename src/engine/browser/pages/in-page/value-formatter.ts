/** Converts values to the text of a console line. Runs in the browser before the action's code. */
import type { Any } from "./any.js";

export type ValueFormatter = ReturnType<typeof createValueFormatter>;

/** The browser evaluates this function's source text. The function stores the globals it uses, because the action may replace them. */
export function createValueFormatter(maxCharacters: number) {
  const scope = globalThis as Any;
  const { apply, getPrototypeOf } = Reflect;
  const { keys, is } = Object;
  const { isArray } = Array;
  const { isView } = ArrayBuffer;
  const { includes } = Array.prototype;
  const { slice } = String.prototype;
  const { stringify } = JSON;
  const { Error: OriginalError, Map: OriginalMap, Set: OriginalSet } = scope;
  const { forEach: forEachInMap } = Map.prototype;
  const { forEach: forEachInSet } = Set.prototype;
  const { parseInt: toInteger, parseFloat: toFloat } = scope;
  const ObjectPrototype = Object.prototype;
  const toText = String;

  const truncate = (text: string): string =>
    text.length <= maxCharacters ? text : apply(slice, text, [0, maxCharacters]);

  function read(value: Any, key: string): string {
    try {
      const member = value[key];
      return typeof member === "string" ? truncate(member) : "";
    } catch {
      return "";
    }
  }

  function createWriter() {
    let text = "";
    const ancestors: Any[] = [];

    function writeList(open: string, close: string, length: number, entry: (at: number) => void): void {
      text += open;
      for (let at = 0; at < length && text.length <= maxCharacters; at += 1) {
        if (at > 0) text += ",";
        entry(at);
      }
      text += close;
    }

    function writeCollection(name: string, forEach: Any, value: Any): void {
      const entries: Any[] = [];
      apply(forEach, value, [
        (item: Any, key: Any) => {
          entries[entries.length] = name === "Map" ? [key, item] : item;
        },
      ]);
      text += `{"${name}":`;
      writeList("[", "]", entries.length, (at) => write(entries[at]));
      text += "}";
    }

    function writeMembers(value: Any): void {
      const names = keys(value);
      const prototype = getPrototypeOf(value);
      // An object without own properties, such as a regular expression, is shown as its `toString` text.
      if (names.length === 0 && prototype !== null && prototype !== ObjectPrototype) {
        const asText = toText(value);
        text += asText === "[object Object]" ? "{}" : asText;
        return;
      }
      writeList("{", "}", names.length, (at) => {
        text += `${stringify(names[at])}:`;
        write(value[names[at]!]);
      });
    }

    function writeObject(value: Any): void {
      if (value instanceof OriginalError) {
        const name = read(value, "name");
        const message = read(value, "message");
        text += stringify(message === "" ? name : `${name}: ${message}`);
      } else if (value instanceof OriginalMap) writeCollection("Map", forEachInMap, value);
      else if (value instanceof OriginalSet) writeCollection("Set", forEachInSet, value);
      else if (isArray(value) || (isView(value) && !is((value as Any).length, undefined)))
        writeList("[", "]", (value as Any).length, (at) => write((value as Any)[at]));
      else if (typeof value.toJSON === "function") write(value.toJSON());
      else writeMembers(value);
    }

    function write(value: Any): void {
      if (typeof value === "string") text += stringify(truncate(value));
      else if (typeof value === "bigint") text += `${value}n`;
      else if (typeof value === "function") text += `[Function: ${read(value, "name") || "anonymous"}]`;
      else if (is(value, -0)) text += "-0";
      else if (typeof value !== "object" || value === null) text += toText(value);
      else if (apply(includes, ancestors, [value])) text += '"[circular]"';
      else {
        ancestors[ancestors.length] = value;
        writeObject(value);
        ancestors.length -= 1;
      }
    }

    return (value: Any): string => {
      write(value);
      return truncate(text);
    };
  }

  function format(value: Any): string {
    try {
      if (typeof value === "object" && value !== null) return createWriter()(value);
      if (typeof value === "bigint") return `${value}n`;
      return is(value, -0) ? "-0" : truncate(toText(value));
    } catch {
      return "a value that cannot be shown";
    }
  }

  function formatWithStack(value: Any): string {
    const stack = typeof value === "object" && value !== null && !isArray(value) ? read(value, "stack") : "";
    return stack || format(value);
  }

  function formatNumber(value: Any, parse: (text: Any) => number): string {
    if (typeof value === "bigint") return `${value}n`;
    return typeof value === "symbol" || typeof value === "object" ? "NaN" : format(parse(value));
  }

  function formatSpecifier(letter: string, value: Any): string | null {
    if (letter === "s") return typeof value === "string" ? value : format(value);
    if (letter === "d" || letter === "i") return formatNumber(value, toInteger);
    if (letter === "f") return formatNumber(value, toFloat);
    if (letter === "o" || letter === "O") return formatWithStack(value);
    return letter === "c" ? "" : null;
  }

  /** Replaces the format specifiers of the first value by the next values. `used.count` becomes the number of used values. */
  function fillSpecifiers(values: Any, used: { count: number }): string {
    const pattern = values[0] as string;
    let text = "";
    for (let at = 0; at < pattern.length && text.length <= maxCharacters; at += 1) {
      const letter = pattern[at] === "%" ? pattern[at + 1] : undefined;
      const isFilled = letter !== undefined && letter !== "%" && used.count < values.length;
      const replacement = letter === "%" ? "%" : isFilled ? formatSpecifier(letter, values[used.count]) : null;
      if (replacement === null) text += pattern[at];
      else {
        text += replacement;
        at += 1;
        if (letter !== "%") used.count += 1;
      }
    }
    return text;
  }

  return {
    __proto__: null,
    truncate,
    read,
    format,
    formatLine(values: Any, hasSpecifiers: boolean): string {
      const used = { count: 1 };
      const isFormat = hasSpecifiers && values.length > 1 && typeof values[0] === "string";
      let text = values.length === 0 ? "" : isFormat ? fillSpecifiers(values, used) : formatWithStack(values[0]);
      for (; used.count < values.length && text.length < maxCharacters; used.count += 1)
        text += ` ${formatWithStack(values[used.count])}`;
      return truncate(text);
    },
  };
}
