/**
 * Reads the `config` in an action's file without executing the file. Supports literals, constants (also imported ones) and simple
 * operators. Rejects calls, except of functions from the module "svc".
 */
import type { AnyNode, Expression, Property, SpreadElement } from "acorn";
import { parse } from "acorn";
import { build, type Loader, type Plugin } from "esbuild";
import { ProjectError } from "../fault.js";
import type { ModuleFinder } from "./action-modules.js";

/** One definition in a manifest (JSON description of an app), such as an action. The service validates its fields later. */
export type UnvalidatedDefinition = Record<string, unknown>;

const LOADER_BY_EXTENSION: Record<string, Loader> = {
  json: "json",
  tsx: "tsx",
  jsx: "jsx",
  js: "js",
  mjs: "js",
  ts: "ts",
  mts: "ts",
};
const PROJECT_NAMESPACE = "project";

/** Resolves the modules of the project. Does not bundle imports of npm packages. */
const createModulesPlugin = (finder: ModuleFinder, texts: ReadonlyMap<string, string>): Plugin => ({
  name: PROJECT_NAMESPACE,
  setup(bundler) {
    bundler.onResolve({ filter: /.*/ }, ({ path, importer, namespace }) => {
      const foundFile = namespace === PROJECT_NAMESPACE ? finder.resolve(importer, path) : path.slice("./".length);
      return foundFile !== null && texts.has(foundFile)
        ? { path: foundFile, namespace: PROJECT_NAMESPACE }
        : { path, external: true };
    });
    bundler.onLoad({ filter: /.*/, namespace: PROJECT_NAMESPACE }, ({ path }) => ({
      contents: texts.get(path)!,
      loader: LOADER_BY_EXTENSION[path.slice(path.lastIndexOf(".") + 1)] ?? "text",
    }));
  },
});

interface BuildFault {
  text: string;
  location: { file: string; line: number; column: number } | null;
}

async function bundleConfig(entry: string, finder: ModuleFinder, texts: ReadonlyMap<string, string>): Promise<string> {
  try {
    const { outputFiles } = await build({
      stdin: { contents: `export { config } from ${JSON.stringify(`./${entry}`)};`, loader: "js" },
      bundle: true,
      write: false,
      format: "esm",
      platform: "neutral",
      target: "es2022",
      charset: "utf8",
      tsconfigRaw: "{}",
      logLevel: "silent",
      plugins: [createModulesPlugin(finder, texts)],
    });
    return outputFiles[0]!.text;
  } catch (error) {
    const { errors = [] } = error as { errors?: BuildFault[] };
    if (errors.length === 0) throw error;
    const lines = errors.map(({ text, location }) =>
      location
        ? `${location.file.replace(`${PROJECT_NAMESPACE}:`, "")}:${location.line}:${location.column + 1}: ${text}`
        : text,
    );
    throw new ProjectError(`${entry} does not compile:\n${lines.join("\n")}`);
  }
}

class NotLiteralError extends Error {
  /** @param expression description of the unsupported expression @param path path in its constant, such as "config.triggers[0]" */
  constructor(expression: string, path: string) {
    super(`${expression} at ${path}`);
  }
}

const DESCRIPTION_BY_NODE_TYPE: Partial<Record<AnyNode["type"], string>> = {
  Literal: "a regular expression or a bigint",
  CallExpression: "a function call",
  NewExpression: "an object that is created with new",
  ArrowFunctionExpression: "a function",
  FunctionExpression: "a function",
  ClassExpression: "a class",
  ConditionalExpression: "a condition (?:)",
  ChainExpression: "optional chaining (?.)",
  SequenceExpression: "several expressions with commas",
  TaggedTemplateExpression: "a template with a tag",
  AwaitExpression: "await",
  ImportExpression: "a dynamic import",
  MetaProperty: "import.meta",
  ThisExpression: "this",
};

const describeNode = (node: AnyNode): string =>
  "operator" in node
    ? `the operator ${node.operator}`
    : (DESCRIPTION_BY_NODE_TYPE[node.type] ?? "an unsupported expression");

const joinPath = (path: string, key: string): string =>
  /^[\w$]+$/.test(key) ? `${path}.${key}` : `${path}[${JSON.stringify(key)}]`;

const BINARY_OPERATORS: Record<string, (a: never, b: never) => unknown> = {
  "+": (a: number, b: number) => a + b,
  "-": (a: number, b: number) => a - b,
  "*": (a: number, b: number) => a * b,
  "/": (a: number, b: number) => a / b,
};

class ConstantEvaluator {
  readonly #values = new Map<string, Expression>();
  readonly #helpers = new Set<string>();
  readonly #pending = new Set<string>();
  readonly #exports = new Map<string, string>();

  constructor(script: string) {
    for (const node of parse(script, { ecmaVersion: "latest", sourceType: "module" }).body) {
      if (node.type === "VariableDeclaration")
        for (const { id, init } of node.declarations)
          if (id.type === "Identifier" && init) this.#values.set(id.name, init);
      if (node.type === "ImportDeclaration" && node.source.value === "svc")
        for (const { local } of node.specifiers) this.#helpers.add(local.name);
      if (node.type === "ExportNamedDeclaration")
        for (const { local, exported } of node.specifiers)
          if (local.type === "Identifier" && exported.type === "Identifier")
            this.#exports.set(exported.name, local.name);
    }
  }

  evaluateExport(name: string): unknown {
    return this.#evaluateConstant(this.#exports.get(name) ?? name, name, name);
  }

  /**
   * Returns the value of a constant. `path` and `root` are for error messages.
   * @param path path at which the config uses the constant
   * @param root start of the paths of faults inside the constant's value
   */
  #evaluateConstant(name: string, path: string, root = name): unknown {
    const init = this.#values.get(name);
    if (init === undefined) throw new NotLiteralError(`${name} (not a constant)`, path);
    if (this.#pending.has(name)) throw new NotLiteralError(`the constant ${name} (whose value refers to itself)`, path);
    this.#pending.add(name);
    const value = this.#evaluate(init, root);
    this.#pending.delete(name);
    return value;
  }

  #evaluate(node: AnyNode, path: string): unknown {
    switch (node.type) {
      case "Literal":
        if (node.regex || node.bigint) break;
        return node.value;
      case "TemplateLiteral":
        return node.quasis
          .map(({ value }, index) => value.cooked + this.#evaluateText(node.expressions[index], path))
          .join("");
      case "ArrayExpression":
        return this.#evaluateArray(node.elements, path);
      case "ObjectExpression":
        return Object.fromEntries(node.properties.flatMap((property) => this.#evaluateProperties(property, path)));
      case "Identifier":
        return node.name === "undefined" ? undefined : this.#evaluateConstant(node.name, path);
      case "MemberExpression":
        return this.#evaluateMember(
          node.object,
          node.computed ? this.#evaluate(node.property, path) : (node.property as { name: string }).name,
          path,
        );
      case "UnaryExpression":
        return this.#applyUnaryOperator(node.operator, this.#evaluate(node.argument, path), path);
      case "BinaryExpression": {
        const operator = BINARY_OPERATORS[node.operator];
        if (operator) return operator(this.#evaluateScalar(node.left, path), this.#evaluateScalar(node.right, path));
        break;
      }
      case "CallExpression":
        if (node.callee.type === "Identifier" && this.#helpers.has(node.callee.name) && node.arguments.length === 1)
          return this.#evaluate(node.arguments[0]!, path);
        break;
    }
    throw new NotLiteralError(describeNode(node), path);
  }

  #evaluateScalar(node: AnyNode, path: string): never {
    const value = this.#evaluate(node, path);
    if (typeof value !== "string" && typeof value !== "number")
      throw new NotLiteralError("a calculation with a value that is neither a text nor a number", path);
    return value as never;
  }

  #evaluateText(node: AnyNode | undefined, path: string): string {
    return node ? String(this.#evaluateScalar(node, path)) : "";
  }

  #applyUnaryOperator(operator: string, value: unknown, path: string): unknown {
    if (operator === "-" && typeof value === "number") return -value;
    if (operator === "!" && typeof value !== "object") return !value;
    // esbuild writes `undefined` as `void 0`.
    if (operator === "void") return undefined;
    throw new NotLiteralError(`the operator ${operator}`, path);
  }

  #evaluateArray(elements: readonly (Expression | SpreadElement | null)[], path: string): unknown[] {
    const values: unknown[] = [];
    for (const element of elements) {
      if (element?.type !== "SpreadElement") {
        values.push(element ? this.#evaluate(element, `${path}[${values.length}]`) : null);
        continue;
      }
      const spread = this.#evaluate(element.argument, path);
      if (!Array.isArray(spread)) throw new NotLiteralError("a spread (...) of a value that is not an array", path);
      values.push(...spread);
    }
    return values;
  }

  #evaluateProperties(node: Property | SpreadElement, path: string): [string, unknown][] {
    if (node.type === "SpreadElement") return Object.entries(Object(this.#evaluate(node.argument, path)));
    const isName = node.key.type === "Identifier" && !node.computed;
    const key = isName ? (node.key as { name: string }).name : String(this.#evaluateScalar(node.key, path));
    const propertyPath = joinPath(path, key);
    if (node.kind !== "init") throw new NotLiteralError(`a ${node.kind}ter`, propertyPath);
    return [[key, this.#evaluate(node.value, propertyPath)]];
  }

  #evaluateMember(object: AnyNode, key: unknown, path: string): unknown {
    const value = this.#evaluate(object, path);
    const name = String(key);
    if (typeof value === "object" && value !== null && Object.hasOwn(value, name)) return Reflect.get(value, name);
    throw new NotLiteralError(`the property ${name} of a value that is not an object with this property`, path);
  }
}

/** Reads the exported config of an action's file; an empty object if there is none. @throws ProjectError if the config is invalid */
export async function readActionConfig(
  entry: string,
  finder: ModuleFinder,
  texts: ReadonlyMap<string, string>,
): Promise<UnvalidatedDefinition> {
  if (!/\bexport\s+const\s+config\b/.test(texts.get(entry) ?? "")) return {};
  const script = await bundleConfig(entry, finder, texts);
  let config: unknown;
  try {
    config = new ConstantEvaluator(script).evaluateExport("config");
  } catch (error) {
    if (!(error instanceof NotLiteralError)) throw error;
    throw new ProjectError(
      `the object config in ${entry} can contain only literals and constants (got ${error.message})`,
    );
  }
  if (typeof config === "object" && config !== null && !Array.isArray(config))
    return JSON.parse(JSON.stringify(config)) as UnvalidatedDefinition;
  throw new ProjectError(`config in ${entry} must be an object`);
}
