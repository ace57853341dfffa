/** Lists the names of a global scope for the tests of the browser's surface. The tests send this function to the browser as source text. */

// biome-ignore lint/suspicious/noExplicitAny: browser globals have no types here
type Any = any;

/**
 * Returns the names in a global scope by their holder. A holder is a global object, an interface or a namespace. Brackets mark an interface
 * that has no global name of its own.
 * @param global name of the global object
 */
export function walkSurface(scope: Any, global: string): Record<string, string[]> {
  const { ownKeys, getOwnPropertyDescriptor, getPrototypeOf, apply } = Reflect;
  const tagOf = (object: Any): unknown => object[Symbol.toStringTag];
  const found: Record<string, Set<string>> = Object.create(null);
  const seen = new Set<unknown>();
  const walked = new Set<unknown>([scope]);
  const FUNCTION_MEMBERS = ["length", "name", "prototype", "arguments", "caller"];
  const isObject = (value: Any) => (typeof value === "object" && value !== null) || typeof value === "function";
  const isGlobal = (path: string) => /^(Window|\w+GlobalScope)\.\w+$/.test(path);
  const short = (path: string) => (isGlobal(path) ? path.slice(path.indexOf(".") + 1) : path);

  function note(holder: string, object: Any, mark: string, skipped: string[] = []): void {
    if (seen.has(object)) return;
    seen.add(object);
    found[holder] ??= new Set();
    for (const key of ownKeys(object)) {
      const text = typeof key === "symbol" ? `@@${key.description?.replace("Symbol.", "")}` : key;
      if (skipped.includes(text) || /^\d+$/.test(text) || /^@@(toStringTag|species)$/.test(text)) continue;
      found[holder].add(mark + text);
      const { value } = getOwnPropertyDescriptor(object, key)!;
      if (isObject(value) && typeof key === "string") visit(short(`${holder}.${key}`), value);
    }
  }

  function visit(path: string, value: Any): void {
    if (typeof value === "function") {
      note(path, value, ".", FUNCTION_MEMBERS);
      if (found[path]?.size === 0) delete found[path];
      if (isObject(value.prototype)) note(path, value.prototype, "", ["constructor"]);
    } else if (getPrototypeOf(value) === Object.prototype || tagOf(value)) note(path, value, ".");
  }

  function follow(object: Any, depth: number): void {
    const tag = tagOf(object);
    if (typeof tag === "string" && object !== scope) {
      // Lists only own properties that code cannot remove, such as the properties of Location. Other own properties are data.
      const fixed = ownKeys(object).filter((key) => getOwnPropertyDescriptor(object, key)?.configurable === false);
      found[tag] ??= new Set();
      for (const key of fixed) if (typeof key === "string" && !/^\d+$/.test(key)) found[tag].add(key);
    }
    for (let holder = getPrototypeOf(object); holder && holder !== Object.prototype; holder = getPrototypeOf(holder)) {
      if (!seen.has(holder) && tagOf(holder)) note(`(${tagOf(holder)})`, holder, "", ["constructor"]);
    }
    if (depth === 0) return;
    for (let holder = object; holder && holder !== Object.prototype; holder = getPrototypeOf(holder)) {
      for (const key of ownKeys(holder)) {
        const { get, value } = getOwnPropertyDescriptor(holder, key)!;
        let next = value;
        try {
          if (get) next = apply(get, object, []);
        } catch {
          continue;
        }
        if (typeof next !== "object" || next === null || walked.has(next) || next.window === next) continue;
        walked.add(next);
        follow(next, depth - 1);
      }
    }
  }

  note(global, scope, "");
  for (let holder = getPrototypeOf(scope); holder; holder = getPrototypeOf(holder)) {
    note(String(tagOf(holder) ?? "Object"), holder, "", ["constructor"]);
  }
  follow(scope, 4);
  return Object.fromEntries(Object.entries(found).map(([holder, names]) => [holder, [...names].sort()]));
}
