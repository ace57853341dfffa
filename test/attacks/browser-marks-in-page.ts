/**
 * Marks each writable part of a global scope, and reads the whole scope again. The tests send the function `createStateMarker` to the
 * browser as source text.
 */

// biome-ignore lint/suspicious/noExplicitAny: browser globals have no types here
type Any = any;

/**
 * Creates functions that mark and read the objects that are reachable from a global scope in at most three steps. A path such as
 * `scope.navigator.storage` identifies each object.
 * @param mark unique text that the functions write
 */
export function createStateMarker(scope: Any, mark: string) {
  const { ownKeys, getOwnPropertyDescriptor, getPrototypeOf, apply } = Reflect;
  const MAX_DEPTH = 3;
  /** Functions that the script does not call, because they wait for a person, or end the run or the page. */
  const UNCALLED_FUNCTIONS =
    /^(close|stop|alert|confirm|prompt|print|assign|replace|reload|navigate|open|write|writeln|debug|leaveMark)$/;
  const READING_FUNCTIONS =
    /^(get|has|is|can|query|entries|keys|databases|estimate|match|toJSON|supports|persisted|features|allowed)/;

  interface Member {
    path: string;
    owner: Any;
    key: string;
    read?: () => Any;
    write?: (value: Any) => void;
    call?: Any;
  }

  function listMembers(owner: Any, path: string): Member[] {
    const members = new Map<string, Member>();
    for (let holder = owner; holder && holder !== Object.prototype; holder = getPrototypeOf(holder)) {
      for (const key of ownKeys(holder)) {
        if (typeof key !== "string" || members.has(key) || /^(\d+|constructor|[A-Z].*)$/.test(key)) continue;
        const { get, set, value, writable } = getOwnPropertyDescriptor(holder, key) ?? {};
        const member: Member = { path: `${path}.${key}`, owner, key };
        if (typeof value === "function") member.call = value;
        else member.read = get ? () => apply(get, owner, []) : () => value;
        if (set) member.write = (next) => apply(set, owner, [next]);
        else if (writable && typeof value !== "function") {
          member.write = (next) => {
            owner[key] = next;
          };
        }
        members.set(key, member);
      }
    }
    return [...members.values()];
  }

  function objects(): Map<string, Any> {
    const found = new Map<string, Any>([["scope", scope]]);
    const seen = new Set([scope]);
    for (const [path, owner] of found) {
      if (path.split(".").length > MAX_DEPTH) continue;
      for (const { read, path: at } of listMembers(owner, path)) {
        let next: Any;
        try {
          next = read?.();
        } catch {
          continue;
        }
        if (typeof next !== "object" || next === null || seen.has(next) || next.window === next) continue;
        seen.add(next);
        if (typeof next[Symbol.toStringTag as never] === "string") found.set(at, next);
      }
    }
    return found;
  }

  function attempt(action: () => Any): Any {
    try {
      const value = action();
      if (value instanceof Promise) value.catch(() => {});
      return value;
    } catch {
      return undefined;
    }
  }

  function writeTo({ read, write }: Member): void {
    const was = attempt(() => read?.());
    const number = typeof was === "number";
    const values = typeof was === "boolean" ? [!was] : number ? [was + 7331] : [mark, { [mark]: mark }, () => mark];
    for (const value of values) if (write) attempt(() => write(value));
  }

  function callOn({ owner, call }: Member): void {
    const lists = [[], [mark], [mark, mark], [{ [mark]: mark }, mark], [mark, { value: mark }], [() => mark]];
    for (const list of lists) attempt(() => apply(call, owner, list));
  }

  async function textOf(read: () => Any): Promise<string | undefined> {
    try {
      // Some functions return a promise that never settles, so the code waits at most 500 ms.
      const late = new Promise((resolve) => setTimeout(resolve, 500));
      const value = await Promise.race([read(), late]);
      if (typeof value === "function" || value === undefined) return undefined;
      if (typeof value !== "object" || value === null) return String(value);
      return JSON.stringify(value)?.slice(0, 300);
    } catch (error) {
      return (error as Error).name;
    }
  }

  /** False for functions that must not be called, and for all parts of the page's URL except the fragment. A navigation ends the run. */
  const mayMark = ({ key, owner }: Member) =>
    !UNCALLED_FUNCTIONS.test(key) && !(owner === scope.location && key !== "hash");

  function leaveOn(owner: Any, path: string, only: string | undefined): void {
    const members = listMembers(owner, path).filter(mayMark);
    const chosen = members.filter(({ key }) => only === undefined || key === only);
    for (const member of chosen) if (member.write && member.key !== "location") writeTo(member);
    if (only === undefined) {
      attempt(() => {
        owner[mark] = mark;
      });
    }
    for (const member of chosen) if (member.call) callOn(member);
  }

  return {
    paths: () => [...objects().keys()],
    members: (path: string) =>
      listMembers(objects().get(path), path)
        .filter(mayMark)
        .map(({ key }) => `${path}#${key}`),
    /** Writes to the members of the objects at these paths, adds members, and calls functions. A path with `#member` selects one member. */
    leave(marked: string[]): void {
      const found = objects();
      for (const markedPath of marked) {
        const [path, only] = markedPath.split("#") as [string, string?];
        if (found.has(path)) leaveOn(found.get(path), path, only);
      }
    },
    /** Returns all readable values, and the results of functions that only read, by path. */
    async read(): Promise<Record<string, string>> {
      const state: Record<string, string> = {};
      const reads: [string, () => Any][] = [];
      for (const [path, owner] of objects()) {
        for (const { path: at, key, read, call } of listMembers(owner, path)) {
          if (read) reads.push([at, read]);
          else if (READING_FUNCTIONS.test(key)) reads.push([`${at}()`, () => apply(call, owner, [])]);
        }
      }
      await Promise.all(
        reads.map(async ([at, read]) => {
          const value = await textOf(read);
          if (value !== undefined) state[at] = value;
        }),
      );
      return state;
    },
  };
}
