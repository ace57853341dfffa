/** Checks an action's code without running it: the form of `execute`, and that `dependencies` lists the packages that the code uses. */

import { type AnyNode, type Function as FunctionNode, getLineInfo, type Pattern, type Program } from "acorn";
import { ActionError } from "../errors.js";
import { findSvcNamespaceUses } from "./code-namespaces.js";
import { parseScript } from "./code-parser.js";
import { describeValue, findUnstorableCharacter } from "./describe-value.js";
import { UNSTORABLE_TEXT_FAULT } from "./fields.js";
import { BUILT_IN_PACKAGES } from "./packages.js";

const ACCEPTED_FORMS_TEXT =
  "code must define execute as an async function declaration, an async arrow function bound by const or let, " +
  "or an async function expression bound by const";

/** Fault in an action's code. `offset` is the index of the fault in the source. */
interface CodeFault {
  reason: string;
  offset: number;
}

/**
 * Definition of `execute` at the top level. `offset` is its index in the source. `refusalReason` says why its form is rejected; null if it
 * is accepted.
 */
interface ExecuteDefinition {
  offset: number;
  refusalReason: string | null;
}

const PACKAGE_BY_NAMESPACE = new Map(BUILT_IN_PACKAGES.map((entry) => [entry.namespace, entry.name]));

/** Checks an action's code. @throws ActionError CODE_VALIDATION_FAILED with line and column of the fault, counted from 1 */
export function checkCode(source: string, dependencies: readonly string[]): void {
  const fault = findCodeFault(source, dependencies);
  if (fault !== null) throw new ActionError("CODE_VALIDATION_FAILED", fault);
}

/** Result of parsing an action's code. Contains no methods, because a worker thread sends the result. */
export interface CodeParseResult {
  /** Error message for invalid code (specification, Code rules 1 and 2); null for none. Missing dependencies are not among these faults. */
  fault: string | null;
  /** Packages that the code uses, in the order of the source. `fault` is the error message if `dependencies` lacks the package. */
  uses: { name: string; fault: string }[];
}

/** Parses an action's code. For a megabyte of code, this takes nearly a second and several hundred megabytes of memory. */
export function parseCode(source: string): CodeParseResult {
  const formatFault = ({ offset, reason }: CodeFault) => {
    const { line, column } = getLineInfo(source, offset);
    return `code, line ${line}, column ${column + 1}: ${reason}`;
  };
  const unstorableIndex = findUnstorableCharacter(source);
  if (unstorableIndex >= 0) {
    const reason = `the code ${UNSTORABLE_TEXT_FAULT}`;
    return { fault: formatFault({ offset: unstorableIndex, reason }), uses: [] };
  }
  const program = parseProgram(source);
  const fault = "reason" in program ? program : findExecuteFault(program);
  if (fault !== null) return { fault: formatFault(fault), uses: [] };
  return {
    fault: null,
    uses: findPackageUses(program as Program).map(({ name, ...use }) => ({ name, fault: formatFault(use) })),
  };
}

/**
 * Returns the error message for invalid code or a missing dependency; null if the code is valid.
 * @param dependencies if null, missing dependencies are not reported
 */
export function findParseResultFault(
  { fault, uses }: CodeParseResult,
  dependencies: readonly string[] | null,
): string | null {
  if (fault !== null || dependencies === null) return fault;
  return uses.find(({ name }) => !dependencies.includes(name))?.fault ?? null;
}

/**
 * Returns the error message for invalid code (specification, Code rules 1 to 3); null if the code is valid.
 * @param dependencies if null, missing dependencies are not reported
 */
export function findCodeFault(source: string, dependencies: readonly string[] | null): string | null {
  return findParseResultFault(parseCode(source), dependencies);
}

/** Reason why code with `import` or `export`, which only modules can contain, is invalid. */
const MODULE_SYNTAX_REASON =
  '"import" and "export" are not allowed in "code"; list packages in "dependencies" and use their globals, or send the files as "source"';

function parseProgram(source: string): Program | CodeFault {
  try {
    return parseScript(source);
  } catch (error) {
    if (error instanceof RangeError) return { offset: 0, reason: "the code nests too deeply" };
    if (!(error instanceof SyntaxError)) throw error;
    const { pos } = error as SyntaxError & { pos: number };
    if (error.message.includes("sourceType: module")) return { offset: pos, reason: MODULE_SYNTAX_REASON };
    return {
      offset: pos,
      reason: error.message
        .replace(/ \(\d+:\d+\)$/, "")
        .slice(0, 200)
        .toWellFormed(),
    };
  }
}

function findExecuteFault(program: Program): CodeFault | null {
  const definitions = program.body.flatMap(findExecuteDefinitions);
  const [first, second] = definitions;
  if (first === undefined) {
    const otherFunction = program.body.flatMap(listDeclaredFunctionNames)[0];
    const foundText =
      otherFunction === undefined
        ? "the code defines no function at the top level"
        : `the code defines ${describeValue(otherFunction)}`;
    return { offset: 0, reason: `${ACCEPTED_FORMS_TEXT}; ${foundText}` };
  }
  if (second !== undefined) return { offset: second.offset, reason: "execute is defined more than once" };
  return first.refusalReason === null
    ? null
    : { offset: first.offset, reason: `${ACCEPTED_FORMS_TEXT}; here execute is ${first.refusalReason}` };
}

function findExecuteDefinitions(statement: AnyNode): ExecuteDefinition[] {
  switch (statement.type) {
    case "FunctionDeclaration":
      if (statement.id?.name !== "execute") return [];
      return [
        { offset: statement.start, refusalReason: findFunctionRefusalReason(statement, "a function declaration") },
      ];
    case "ClassDeclaration":
      return statement.id?.name === "execute" ? [{ offset: statement.start, refusalReason: "a class" }] : [];
    case "ExpressionStatement": {
      const { expression } = statement;
      if (expression.type !== "AssignmentExpression" || expression.left.type !== "Identifier") return [];
      if (expression.left.name !== "execute") return [];
      return [{ offset: statement.start, refusalReason: "assigned, not declared with its value" }];
    }
    case "VariableDeclaration":
      return statement.declarations
        .filter(({ id }) => collectBoundNames(id).includes("execute"))
        .map(({ id, init, start }) => ({
          offset: start,
          refusalReason: findVariableRefusalReason(statement.kind, id, init ?? null),
        }));
    default:
      return [];
  }
}

function findVariableRefusalReason(kind: string, id: Pattern, init: AnyNode | null): string | null {
  if (id.type !== "Identifier") return "destructured from another value";
  if (init === null) return `declared by ${kind} without a value`;
  if (init.type === "ArrowFunctionExpression") {
    return (
      findFunctionRefusalReason(init, "an arrow function") ??
      (kind === "const" || kind === "let" ? null : `bound by ${kind}`)
    );
  }
  if (init.type !== "FunctionExpression") return "bound to something other than a function";
  const refusalReason = findFunctionRefusalReason(init, "a function expression");
  return refusalReason ?? (kind === "const" ? null : `an async function expression bound by ${kind}`);
}

/** Returns the reason why a function cannot be `execute`; null if it can. @param form kind of the function, such as "an arrow function" */
function findFunctionRefusalReason(node: FunctionNode, form: string): string | null {
  if (node.generator) return `${form} that is a generator`;
  if (!node.async) return `${form} that is not async`;
  const [firstParameter] = node.params;
  const pattern = firstParameter?.type === "AssignmentPattern" ? firstParameter.left : firstParameter;
  return pattern?.type === "ArrayPattern" ? `${form} whose first parameter cannot receive the object context` : null;
}

function collectBoundNames(pattern: Pattern): string[] {
  switch (pattern.type) {
    case "Identifier":
      return [pattern.name];
    case "ObjectPattern":
      return pattern.properties.flatMap((property) =>
        collectBoundNames(property.type === "Property" ? property.value : property.argument),
      );
    case "ArrayPattern":
      return pattern.elements.flatMap((element) => (element === null ? [] : collectBoundNames(element)));
    case "AssignmentPattern":
      return collectBoundNames(pattern.left);
    case "RestElement":
      return collectBoundNames(pattern.argument);
    default:
      return [];
  }
}

function listDeclaredFunctionNames(statement: AnyNode): string[] {
  if (statement.type === "FunctionDeclaration") return statement.id === null ? [] : [statement.id.name];
  if (statement.type !== "VariableDeclaration") return [];
  return statement.declarations
    .filter(({ init }) => init?.type === "ArrowFunctionExpression" || init?.type === "FunctionExpression")
    .flatMap(({ id }) => collectBoundNames(id));
}

/** Finds the first use of each package, with the error message for the case that `dependencies` lacks the package. */
function findPackageUses(program: Program): (CodeFault & { name: string })[] {
  const firstUses = new Map<string, CodeFault & { name: string }>();
  for (const { namespace, offset } of findSvcNamespaceUses(program)) {
    const name = PACKAGE_BY_NAMESPACE.get(namespace);
    if (name === undefined || firstUses.has(name)) continue;
    firstUses.set(name, { name, offset, reason: `Svc.${namespace} needs the package ${name} in dependencies` });
  }
  return [...firstUses.values()];
}
