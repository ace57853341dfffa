/** Code samples that list the properties of classes and functions, and call functions on wrong objects or with too few arguments. */
import { ISOLATE_GLOBALS, NETWORK_ISOLATE_GLOBALS } from "../../../../src/engine/browser/globals.js";
import type { Sample } from "./outcomes.js";

const ADDED_GLOBALS = NETWORK_ISOLATE_GLOBALS.filter((name) => !ISOLATE_GLOBALS.includes(name));
const HIDDEN = [
  "Object.getPrototypeOf(new Headers().entries())",
  "Object.getPrototypeOf(new FormData().entries())",
  "Object.getPrototypeOf(new URLSearchParams().entries())",
  "Object.getPrototypeOf(Object.getPrototypeOf(new Headers().entries()))",
];

/** Code that describes the members of an object, and the members of its functions. */
const WALK_CODE = `
  const shapeOf = (value) => {
    if (typeof value === "function") return ["function", value.name, value.length, Object.hasOwn(value, "prototype"), Reflect.ownKeys(value).map(String).join()];
    return typeof value === "object" && value !== null ? "object" : typeof value + " " + String(value);
  };
  const membersOf = (holder) => Reflect.ownKeys(holder).map((key) => {
    const { get, set, value, ...flags } = Reflect.getOwnPropertyDescriptor(holder, key);
    return [String(key), JSON.stringify(flags), get && shapeOf(get), set && shapeOf(set), shapeOf(value)];
  });
  const sorted = (members) => members.sort(([a], [b]) => (a < b ? -1 : 1));
  const nameOf = (value) => value === null ? null : value === Object.prototype ? "Object" : value === Function.prototype ? "Function" : value.name ?? String(value);
  const canConstruct = (value) => { try { Reflect.construct(Object, [], value); return true } catch { return false } };
  const INSTANCES = () => ({
    Headers: new Headers(), Response: new Response(), Blob: new Blob(), File: new File([], "", { lastModified: 5 }), FormData: new FormData(),
  });
  const NAMES = Object.keys(INSTANCES());`;

const WALK_SAMPLES: Sample[] = [
  ...ADDED_GLOBALS.flatMap((name): Sample[] => [
    [`${name} itself`, `[shapeOf(${name}), nameOf(Object.getPrototypeOf(${name})), canConstruct(${name})]`],
    [`the members of ${name}`, `sorted(membersOf(${name}))`],
    [`the prototype of ${name}`, `${name}.prototype && sorted(membersOf(${name}.prototype))`],
    [`what ${name} inherits from`, `${name}.prototype && nameOf(Object.getPrototypeOf(${name}.prototype))`],
    [`the text of ${name}`, `String(${name})`],
  ]),
  ...HIDDEN.map((code): Sample => [`the members of ${code}`, `sorted(membersOf(${code}))`]),
  [
    "an object's own members",
    "Object.entries(INSTANCES()).map(([name, one]) => [name, Reflect.ownKeys(one), String(one), JSON.stringify(one)])",
  ],
  ["the order of members", "NAMES.map((name) => Reflect.ownKeys(globalThis[name].prototype).map(String).join())"],
  [
    "whether one instance is another's class",
    "Object.values(INSTANCES()).map((one) => NAMES.map((name) => one instanceof globalThis[name]))",
  ],
  [
    "the texts of functions",
    "[fetch, setTimeout, Headers.prototype.get, Response.prototype.text, Response.json].map(String)",
  ],
  [
    "entries",
    "[Headers.prototype.entries === Headers.prototype[Symbol.iterator], FormData.prototype.entries === FormData.prototype[Symbol.iterator]]",
  ],
  [
    "an attribute is the same object",
    "{ const r = new Response('x'); return [r.body === r.body, r.headers === r.headers] }",
  ],
  ["an attribute cannot be set", "{ 'use strict'; const r = new Response('x'); r.status = 3; return r.status }"],
];

/** Calls the members of each class on objects of other classes, or with fewer arguments than required. */
const MISUSE_SAMPLES: Sample[] = ["Headers", "Response", "Blob", "File", "FormData"].flatMap((name): Sample[] => {
  const each = (work: string) => `{
    const found = [];
    for (const key of Reflect.ownKeys(${name}.prototype)) {
      const { get, value } = Reflect.getOwnPropertyDescriptor(${name}.prototype, key);
      const member = get ?? value;
      if (key !== "constructor" && typeof member === "function") found.push([String(key), await outcome(() => ${work})]);
    }
    return found;
  }`;
  const receivers = [
    "undefined",
    "null",
    "1",
    "'text'",
    "({})",
    `${name}.prototype`,
    `Object.create(new ${name === "File" ? "File([], '')" : `${name}()`})`,
    "new URL('http://a/')",
    "globalThis",
  ];
  return [
    ...receivers.map((self): Sample => [`members of ${name} on ${self}`, each(`member.call(${self})`)]),
    ...["Headers", "Response", "Blob", "File", "FormData"].map(
      (other): Sample => [`members of ${name} on a ${other}`, each(`member.call(INSTANCES().${other})`)],
    ),
    ...[0, 1, 2, 3, 4].map(
      (count): Sample => [
        `members of ${name} with ${count} values`,
        each(`member.apply(INSTANCES().${name}, ['a', 'b', 'c', 'd'].slice(0, ${count}))`),
      ],
    ),
    [`${name} without new`, `${name}('a')`],
    [`${name} without values`, `new ${name}()`],
    [
      `${name} of many values`,
      `new ${name}(${name === "File" || name === "Blob" ? "['a']" : "undefined"}, undefined, undefined, 1, 2)`,
    ],
    [`${name} of null`, `new ${name}(null, null, null)`],
    [
      `${name} constructed as another`,
      `{ class Other {}; const made = Reflect.construct(${name}, [[], 'b'], Other); return [made instanceof ${name}, made instanceof Other, Object.prototype.toString.call(made)] }`,
    ],
    [
      `${name} constructed as what has no prototype`,
      `{ const other = (function () {}).bind(); return Reflect.construct(${name}, [[], 'b'], other) instanceof ${name} }`,
    ],
    [
      `${name} constructed as what notes`,
      `{ const other = new Proxy(function () {}, { get(t, key) { note(key); return t[key] } }); return Reflect.construct(${name}, [{ get [Symbol.iterator]() { note('iterator') } }, 'b'], other) instanceof ${name} }`,
    ],
    [
      `a class of ${name}`,
      `{ class Own extends ${name} { #a = 1; get a() { return this.#a } own() { return 'own' } get [Symbol.toStringTag]() { return 'Tag' } }; const made = new Own(${name === "File" ? "[], 'n'" : ""}); return [made.a, made.own(), made instanceof ${name}, Object.getPrototypeOf(made) === Own.prototype, String(made), Own.name, Own.length] }`,
    ],
    [
      `the constructor of ${name}`,
      `new ${name}(...(${name === "File"} ? [[], ''] : []))['cons' + 'tructor'] === ${name}`,
    ],
  ];
});

const STATIC_SAMPLES: Sample[] = [
  ...["Response.json", "Response.redirect", "Response.error"].flatMap((code): Sample[] => [
    [`${code} on nothing`, `(0, ${code})('http://a/')`],
    [`${code} without values`, `${code}()`],
    [
      `${code} of a class of its own`,
      `{ class Own extends ${code.split(".")[0]} {}; const made = Own.${code.split(".")[1]}('http://a/'); return [made instanceof Own, made] }`,
    ],
    [`new ${code}`, `new ${code}('http://a/')`],
  ]),
  ...["fetch", "setTimeout", "setInterval", "clearTimeout", "clearInterval", "queueMicrotask", "atob", "btoa"].flatMap(
    (name): Sample[] => [
      [`${name} without values`, `${name}()`],
      [`new ${name}`, `new ${name}()`],
      ...["undefined", "null", "{}", "1", "globalThis", "new URL('http://a/')"].map(
        (self): Sample => [
          `${name} on ${self}`,
          `{ const said = ${name}.call(${self}, ${name === "fetch" ? "'data:,x'" : name === "queueMicrotask" ? "() => {}" : "''"}); return said instanceof Promise ? said : typeof said }`,
        ],
      ),
    ],
  ),
];

export const SHAPES: readonly Sample[] = [...WALK_SAMPLES, ...MISUSE_SAMPLES, ...STATIC_SAMPLES];
export const SHAPES_BEFORE = WALK_CODE;
