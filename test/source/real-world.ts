/** Realistic actions. A test can add a fault to a function of each action, at a known position in the author's file. */
export interface FaultyAction {
  files: Record<string, string>;
  place: string;
}

const TYPES_TEXT =
  "/** Lines with only types, which the built code does not have. */\ninterface Above {\n  lines: number;\n}\n\n";
const FAULT = '((): void => {\n  throw new Error("at fault");\n})() ? null : ';
const BODIES = ["return ", "=> "];

/** Adds lines of types and a fault to the first module that returns a value. The module action.ts is the last candidate. */
export function addFault({ files }: RealAction): FaultyAction {
  const names = Object.keys(files).filter((name) => name.endsWith(".ts"));
  const ordered = [...names.filter((name) => name !== "action.ts"), "action.ts"];
  for (const name of ordered) {
    const body = BODIES.map((word) => ({ at: files[name]!.indexOf(word), word })).find(({ at }) => at >= 0);
    if (!body) continue;
    const from = body.at + body.word.length;
    const text = TYPES_TEXT + files[name]!.slice(0, from) + FAULT + files[name]!.slice(from);
    const before = text.slice(0, text.indexOf('new Error("at fault")')).split("\n");
    return { files: { ...files, [name]: text }, place: `${name}:${before.length}:${before.at(-1)!.length + 1}` };
  }
  throw new Error("no file of the sample returns a value");
}

/** Realistic action in TypeScript, with the result of its run for the payload `{n: 3}`. */
export interface RealAction {
  title: string;
  files: Record<string, string>;
  dependencies?: string[];
  result: unknown;
}

const createRealAction = (
  title: string,
  action: string,
  result: unknown,
  more: Record<string, string> = {},
): RealAction => ({
  title,
  files: { "action.ts": action, ...more },
  result,
});

export const REAL_ACTIONS: readonly RealAction[] = [
  createRealAction(
    "declared, not exported",
    "async function execute(context: { payload: { n: number } }) { return context.payload.n; }",
    3,
  ),
  createRealAction(
    "exported",
    "export async function execute(context: any): Promise<number> { return context.payload.n + 1; }",
    4,
  ),
  createRealAction(
    "an exported arrow function",
    "export const execute = async ({ payload }: { payload: { n: number } }) => payload.n * 2;",
    6,
  ),
  createRealAction("exported by a list", "async function run() { return 1; }\nexport { run as execute };", 1),
  createRealAction("re-exported from a module", 'export { execute } from "./lib/run";', "run", {
    "lib/run.ts": 'export async function execute(): Promise<string> { return "run"; }',
  }),
  createRealAction(
    "a shared helper",
    'import { twice } from "./lib/math";\nexport async function execute({ payload }: any) { return twice(payload.n); }',
    6,
    {
      "lib/math.ts": "export const twice = (n: number): number => n * 2;",
    },
  ),
  createRealAction(
    "helpers that import each other",
    'import { a } from "./lib/a";\nexport async function execute() { return a(4); }',
    "even",
    {
      "lib/a.ts":
        'import { b } from "./b";\nexport function a(n: number): string { return n === 0 ? "even" : b(n - 1); }',
      "lib/b.ts":
        'import { a } from "./a";\nexport function b(n: number): string { return n === 0 ? "odd" : a(n - 1); }',
    },
  ),
  createRealAction(
    "imports with the extension .js",
    'import { x } from "./lib/x.js";\nexport async function execute() { return x; }',
    1,
    { "lib/x.ts": "export const x = 1;" },
  ),
  createRealAction(
    "a folder with an index",
    'import { x } from "./lib";\nexport async function execute() { return x; }',
    2,
    {
      "lib/index.ts": "export const x = 2;",
    },
  ),
  createRealAction("a path alias", 'import { x } from "@lib/x";\nexport async function execute() { return x; }', 3, {
    "lib/x.ts": "export const x = 3;",
    "tsconfig.json":
      '{\n  // Shared with the editor.\n  "compilerOptions": { "strict": true, "baseUrl": ".", "paths": { "@lib/*": ["lib/*"], } }\n}',
  }),
  createRealAction("a base URL", 'import { x } from "lib/x";\nexport async function execute() { return x; }', 4, {
    "lib/x.ts": "export const x = 4;",
    "tsconfig.json": '{"compilerOptions": {"baseUrl": "."}}',
  }),
  createRealAction(
    "JSON",
    'import rates from "./rates.json";\nexport async function execute() { return rates.eur * 2; }',
    3,
    {
      "rates.json": '{"eur": 1.5}',
    },
  ),
  createRealAction(
    "JSON by name",
    'import { eur } from "./rates.json";\nexport async function execute() { return eur; }',
    1.5,
    {
      "rates.json": '{"eur": 1.5}',
    },
  ),
  createRealAction(
    "a text",
    'import text from "./mail.html";\nexport async function execute() { return text; }',
    "<p>hi</p>",
    {
      "mail.html": "<p>hi</p>",
    },
  ),
  createRealAction(
    "an enum",
    "enum Color { Red = 'r', Blue = 'b' }\nexport async function execute() { return [Color.Red, Object.keys(Color)]; }",
    ["r", ["Red", "Blue"]],
  ),
  createRealAction(
    "a const enum and a numeric enum",
    "const enum A { X = 2 }\nenum B { Y }\nexport async function execute() { return [A.X, B.Y, B[0]]; }",
    [2, 0, "Y"],
  ),
  createRealAction(
    "a namespace",
    "namespace Money { export const cents = (n: number) => n * 100; }\nexport async function execute() { return Money.cents(2); }",
    200,
  ),
  createRealAction(
    "generics and constraints",
    "function pick<T, K extends keyof T>(o: T, k: K): T[K] { return o[k]; }\nexport async function execute() { return pick({ a: 1 }, 'a'); }",
    1,
  ),
  createRealAction(
    "classes with fields and accessors",
    "class A { #n = 1; static made = 0; constructor(private readonly by: number) { A.made += 1; } get n(): number { return this.#n + this.by; } }\nexport async function execute() { return [new A(2).n, A.made]; }",
    [3, 1],
  ),
  createRealAction(
    "inheritance and abstract classes",
    "abstract class Shape { abstract area(): number; say() { return `is ${this.area()}`; } }\nclass Square extends Shape { constructor(readonly s: number) { super(); } area() { return this.s ** 2; } }\nexport async function execute() { return new Square(3).say(); }",
    "is 9",
  ),
  createRealAction(
    "async iterators",
    "async function* pages() { for (let n = 0; n < 3; n += 1) yield n; }\nexport async function execute() { const all: number[] = []; for await (const n of pages()) all.push(n); return all; }",
    [0, 1, 2],
  ),
  createRealAction(
    "errors with a cause",
    "class Late extends Error { override name = 'Late'; }\nexport async function execute() { try { throw new Late('x', { cause: 1 }); } catch (e) { return (e as Late).name + String((e as Error).cause); } }",
    "Late1",
  ),
  createRealAction(
    "type-only imports",
    'import type { Guest } from "./types";\nexport async function execute() { const g: Guest = { name: "a" }; return g; }',
    { name: "a" },
    {
      "types.ts": "export interface Guest { name: string }",
    },
  ),
  createRealAction(
    "a default export",
    'import days from "./days";\nexport async function execute() { return days(2); }',
    48,
    {
      "days.ts": "export default (n: number): number => n * 24;",
    },
  ),
  createRealAction(
    "everything of a module",
    'import * as m from "./m";\nexport async function execute() { return Object.keys(m).sort(); }',
    ["a", "b"],
    { "m.ts": "export const a = 1;\nexport const b = 2;" },
  ),
  createRealAction(
    "satisfies, as const, unions and narrowing",
    "const levels = ['low', 'high'] as const satisfies readonly string[];\ntype Level = (typeof levels)[number];\nconst is = (x: string): x is Level => levels.includes(x as Level);\nexport async function execute() { return [is('low'), is('no')]; }",
    [true, false],
  ),
  createRealAction(
    "optional chaining, nullish and big numbers",
    "export async function execute(c: any) { return [c.payload?.x?.y ?? 'none', String(2n ** 64n)]; }",
    ["none", "18446744073709551616"],
  ),
  createRealAction(
    "function overloads and default values",
    "function f(a: number): number;\nfunction f(a: string): string;\nfunction f(a: any = 1) { return a; }\nexport async function execute() { return [f(1), f('a')]; }",
    [1, "a"],
  ),
  createRealAction(
    "configuration beside the function",
    'import { defineAction } from "svc";\nexport const config = defineAction({ environment: "server", triggers: [] });\nexport async function execute() { return 1; }',
    1,
  ),
  createRealAction(
    "a module that keeps state for the run",
    'import { next } from "./counter";\nexport async function execute() { next(); return next(); }',
    2,
    { "counter.ts": "let n = 0;\nexport const next = (): number => ++n;" },
  ),
  createRealAction(
    "a decorator as the standard has it",
    "function named(method: any, { name }: ClassMethodDecoratorContext): any { return function (this: unknown, ...given: unknown[]) { return `${String(name)} ${method.apply(this, given)}`; }; }\nclass Shop { @named open(): string { return 'at 9'; } }\nexport async function execute() { return new Shop().open(); }",
    "open at 9",
  ),
  {
    ...createRealAction(
      "a package of the catalogue",
      'import { parse } from "svc-csv";\nexport async function execute() { return typeof parse; }',
      "function",
    ),
    dependencies: ["svc-csv"],
  },
];
