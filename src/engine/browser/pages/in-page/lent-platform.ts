/**
 * Lends a realm what the platform gives to a worker alone: `fetch`, its objects and timers. The objects stay in the worker; a realm holds a
 * function for each, for nothing but texts, numbers and functions crosses its border. Runs inside the browser, where no author's code does.
 */

// biome-ignore lint/suspicious/noExplicitAny: values of unknown make, from globals of which this side has no types
type Any = any;
declare const self: Any;

/**
 * What stands for an object: `verb` and `member` say what is asked of it, `give` hears what that comes to, `values` are what it is asked with.
 * Both are flat rows of words, each with what follows it: `v` a primitive; `u` undefined; `b` the kind of bytes and their base64; `q` search
 * parameters; `o` a class and the function that stands for the object; `s` and `r` what reads a stream; `a` what hears of an abort; `j` JSON; `i` what goes through entries; `l` a
 * number of values, and they; `d` a number of members, and each by its name and value; `p` that another row comes; `e` the class, message and
 * name of an error.
 */
export type Stand = (verb: string, member: string, give: (...row: Any[]) => unknown, ...values: Any[]) => unknown;

/** A class as it is to be made again: members by name, whether they are read or called, and how many values a call must have. */
export interface LentClass {
  name: string;
  parent: string | null;
  length: number;
  members: readonly (readonly [name: string, isRead: boolean, length: number])[];
  statics: readonly (readonly [name: string, isRead: boolean, length: number])[];
  iterable: boolean;
}

/** `dictionaries`: for each class, the members that its last value may have. */
export interface LentDescription {
  classes: readonly LentClass[];
  dictionaries: Readonly<Record<string, readonly string[]>>;
}

export type LentPlatform = ReturnType<typeof lentPlatform>;

/** As `harnessCore`: evaluated by its source text. Walks the platform's own classes, so that none of their members is forgotten. */
export function lentPlatform(names: readonly string[]) {
  const { AbortController, AbortSignal, DOMException, ReadableStream, Request, URL, URLSearchParams } = self;
  const { clearTimeout, fetch: send, setInterval, setTimeout } = self;
  const classes = names.map((name) => self[name]);
  const { getOwnPropertyDescriptor, getPrototypeOf, ownKeys } = Reflect;

  function membersOf(holder: object): LentClass["members"] {
    return ownKeys(holder).flatMap((key): LentClass["members"] => {
      const { get, value } = getOwnPropertyDescriptor(holder, key)!;
      if (typeof key === "symbol" || key === "constructor" || key === "prototype") return [];
      if (get) return [[key, true, 0]];
      return typeof value === "function" ? [[key, false, value.length]] : [];
    });
  }

  function describeClass(one: Any): LentClass {
    const parent = classes.find((other) => other === getPrototypeOf(one))?.name ?? null;
    const { name, length, prototype } = one;
    const iterable = getOwnPropertyDescriptor(prototype, Symbol.iterator) !== undefined;
    return { name, parent, length, members: membersOf(prototype), statics: membersOf(one), iterable };
  }

  /** The members that are read of a dictionary, in the order in which they are. */
  function dictionaryOf(use: (dictionary: object) => unknown): string[] {
    const read: string[] = [];
    const get = (_: object, name: string) => void read.push(name);
    use(new Proxy({}, { get } as Any));
    return read;
  }

  const description: LentDescription = {
    classes: classes.map(describeClass),
    dictionaries: {
      Request: dictionaryOf((init) => new Request("http://a/", init)),
      Response: dictionaryOf((init) => new self.Response("", init)),
      Blob: dictionaryOf((init) => new self.Blob([], init)),
      File: dictionaryOf((init) => new self.File([], "", init)),
    },
  };

  /** A class of ours, else the nearest of the language's by which the realm can say the same. */
  function faultRow(error: Any): Any[] {
    if (error instanceof DOMException) return ["e", "DOMException", error.message, error.name];
    return ["e", error?.name ?? "TypeError", error?.message ?? `${error}`, ""];
  }

  /** What one run borrows. */
  function forRun() {
    const ending = new AbortController();
    const timers = new Set<number>();
    const addresses = new Set<string>();
    let asked = 0;
    let revealed: unknown = null;

    function answer(give: (...row: Any[]) => unknown, work: () => unknown): void {
      if (ending.signal.aborted) return;
      const settle = (row: Any[]): void => {
        if (!ending.signal.aborted) give(...row);
      };
      try {
        const value = work();
        if (value instanceof Promise) {
          give("p");
          value.then(
            (settled) => settle(rowOf(settled)),
            (error) => settle(faultRow(error)),
          );
        } else settle(rowOf(value));
      } catch (error) {
        settle(faultRow(error));
      }
    }

    function standFor(target: Any): Stand {
      return (verb, member, give, ...values) => {
        if (verb === "self") {
          revealed = target;
          return;
        }
        answer(give, () => {
          if (verb === "iterate") return entriesOf(target[member]());
          const found = verb === "get" ? target[member] : target[member](...readRow(values));
          return found instanceof ReadableStream
            ? streamOf(verb === "get" ? () => target[member] : () => found)
            : found;
        });
      };
    }

    /** A row that stands as it is. */
    class Row {
      constructor(readonly row: readonly Any[]) {}
    }

    /** Each asking for the next answers a list of it, or an empty one. */
    function entriesOf(entries: Iterator<unknown>): Row {
      const next: Stand = (_verb, _member, give) =>
        answer(give, () => {
          const { done, value } = entries.next();
          return done ? [] : [value];
        });
      return new Row(["i", next]);
    }

    /** The stream is locked as late as its first reading, as the realm's own is. */
    function streamOf(open: () => Any): Row {
      let reader: Any = null;
      const read: Stand = (verb, _member, give, ...values) =>
        answer(give, () => {
          if (reader === null && verb === "cancel") return open().cancel(...readRow(values));
          reader ??= open().getReader();
          if (verb === "cancel") return reader.cancel(...readRow(values));
          return reader.read().then(({ done, value }: Any) => (done ? [] : [value]));
        });
      return new Row(["s", read]);
    }

    function rowOf(value: Any): Any[] {
      if (value instanceof Row) return [...value.row];
      if (value instanceof ArrayBuffer) return ["b", "ArrayBuffer", (new Uint8Array(value) as Any).toBase64()];
      if (value instanceof Uint8Array) return ["b", "Uint8Array", (value as Any).toBase64()];
      if (Array.isArray(value)) return ["l", value.length, ...value.flatMap(rowOf)];
      const found = classes.find(
        ({ prototype }) => typeof value === "object" && value && getPrototypeOf(value) === prototype,
      );
      return found ? ["o", found.name, standFor(value)] : ["v", value];
    }

    /** A body that the realm makes by parts. */
    function streamOfRealm(
      read: (give: (isDone: boolean, base64: string) => void, fail: (message: string) => void) => void,
    ) {
      return new ReadableStream({
        type: "bytes",
        pull: (controller: Any) =>
          new Promise<void>((resolve, reject) => {
            const give = (isDone: boolean, base64: string) => {
              if (isDone) controller.close();
              else controller.enqueue((Uint8Array as Any).fromBase64(base64));
              if (isDone) controller.byobRequest?.respond(0);
              resolve();
            };
            read(give, (message) => reject(new TypeError(message)));
          }),
      });
    }

    /** A signal that is aborted when the realm's is. */
    function signalOf(listen: (abort: () => void) => void): Any {
      const controller = new AbortController();
      listen(() => controller.abort());
      return controller.signal;
    }

    function readRow(row: readonly Any[]): Any[] {
      let at = 0;
      const next = () => {
        at += 1;
        return row[at - 1];
      };
      function read(): Any {
        const kind = next();
        if (kind === "u") return undefined;
        if (kind === "b") return (Uint8Array as Any).fromBase64(next());
        if (kind === "q") return new URLSearchParams(next());
        if (kind === "j") return JSON.parse(next());
        if (kind === "r") return streamOfRealm(next());
        if (kind === "a") return signalOf(next());
        if (kind === "l") return Array.from({ length: next() }, read);
        if (kind === "d") return Object.fromEntries(Array.from({ length: next() }, () => [next(), read()]));
        if (kind !== "o") return next();
        revealed = null;
        next()("self");
        return revealed;
      }
      const values: Any[] = [];
      while (at < row.length) values.push(read());
      return values;
    }

    /** What a request is made with, so that it ends with the run. One made of another ends with that. */
    function bound(info: Any, init: Any): Any {
      if (init !== null && !["undefined", "object"].includes(typeof init)) return init;
      const earlier = info instanceof Request ? info.signal : null;
      if (earlier !== null && (init ?? null) === null) return undefined;
      const theirs = init?.signal ?? earlier;
      return { ...init, signal: theirs ? AbortSignal.any([theirs, ending.signal]) : ending.signal };
    }

    function request(...given: Any[]): Promise<unknown> {
      asked += 1;
      return given.length === 0 ? send() : send(given[0], bound(given[0], given[1]));
    }

    function startTimer(isRepeated: boolean, work: () => void, ms: number): number {
      const ring = () => {
        if (!isRepeated) timers.delete(id);
        work();
      };
      const id = isRepeated ? setInterval(ring, ms) : setTimeout(ring, ms);
      timers.add(id);
      return id;
    }

    function stopTimer(id: number): void {
      // Both kinds are of one row of numbers.
      if (timers.delete(id)) clearTimeout(id);
    }

    function addressOf(blob: unknown): string {
      const address = URL.createObjectURL(blob);
      addresses.add(address);
      return address;
    }

    function forget(address: string): void {
      if (addresses.delete(`${address}`)) URL.revokeObjectURL(address);
    }

    const globals: Readonly<Record<string, (...values: Any[]) => unknown>> = {
      fetch: request,
      createObjectURL: addressOf,
      revokeObjectURL: forget,
    };

    /** Stands for the worker's global scope. */
    const lender: Stand = (verb, member, give, ...values) => {
      if (ending.signal.aborted) return;
      if (verb === "timer") return give(startTimer(member === "setInterval", values[0], values[1]));
      if (verb === "stop") return stopTimer(values[0]);
      answer(give, () => {
        const given = readRow(values);
        const one = classes.find(({ name }) => name === member);
        if (verb === "new" && one === Request && given.length > 0) return new one(given[0], bound(given[0], given[1]));
        if (verb === "new" && one) return new one(...given);
        if (verb === "static" && one) return one[given[0]](...given.slice(1));
        return globals[member]!(...given);
      });
    };

    return {
      lender,
      /** Ends all that the run has under way: from here on nothing is done for it. Answers how often it called `fetch`. */
      end(): number {
        ending.abort();
        for (const id of timers) clearTimeout(id);
        for (const address of addresses) URL.revokeObjectURL(address);
        return asked;
      },
    };
  }

  return { description: JSON.stringify(description), forRun };
}
