/** Generates GraphQL calls with numeric IDs from the schema, so that new operations are included. Sends nothing. */
import {
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLInputField,
  type GraphQLInputType,
  type GraphQLOutputType,
  type GraphQLSchema,
  getNamedType,
  isEnumType,
  isInputObjectType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
} from "graphql";

export interface CallByNumber {
  operation: "query" | "mutation" | "subscription";
  name: string;
  /** Number of arguments that contain a number. */
  numbers: number;
  document(appId: number, numbers: readonly number[]): string;
}

type Operation = CallByNumber["operation"];
type InputPosition = GraphQLArgument | GraphQLInputField;

/** Placeholder for a number. */
const NUMBER = "<number>";
const SELECTION_DEPTH = 4;
/** Names of arguments whose number is a count or a time instead of an ID. */
const COUNT_ARGUMENTS =
  /^(limit|offset|count|expiresIn|failures|of|minutes|delayMs|maxWaitMs|timeoutMs|toleranceSeconds|createdAt|before|after)$/;
/** Input fields that the schema makes optional, although the operation requires them. */
const REQUIRED_BY_OPERATION: readonly string[] = ["TriggerWhereInput.type", "AccessTrialInput.user"];
const TEXTS: Readonly<Record<string, string>> = {
  DateTime: '"2026-01-01T00:00:00Z"',
  JSON: "{}",
  Boolean: "true",
  Float: "1",
};

/** Returns values for an argument, as GraphQL text. Returns several values for an input object, with different optional fields. */
function valuesOf(argument: InputPosition, type: GraphQLInputType = argument.type): string[] {
  if (isNonNullType(type)) return valuesOf(argument, type.ofType);
  if (isListType(type)) return valuesOf(argument, type.ofType).map((value) => `[${value}]`);
  if (isInputObjectType(type))
    return argumentLists(Object.values(type.getFields()), type.name).map((all) => `{${all.join(", ")}}`);
  if (isEnumType(type)) return [type.getValues()[0]!.name];
  if (["Int", "SafeInt", "ID"].includes(String(type))) return [COUNT_ARGUMENTS.test(argument.name) ? "1" : NUMBER];
  return [TEXTS[String(type)] ?? '"x"'];
}

/**
 * Returns lists of arguments. All lists have the required arguments. Some have only these, some have one optional argument, and the last
 * one has all optional arguments that contain a number.
 */
function argumentLists(all: readonly InputPosition[], inside = ""): string[][] {
  const isNeeded = ({ name, type }: InputPosition) =>
    isNonNullType(type) || REQUIRED_BY_OPERATION.includes(`${inside}.${name}`);
  const needed = all.filter((argument) => isNeeded(argument) && argument.name !== "appId");
  const optionalArguments = all.filter((argument) => !isNeeded(argument));
  const textsOf = (argument: InputPosition) => valuesOf(argument).map((value) => `${argument.name}: ${value}`);
  const crossed = needed.reduce<string[][]>(
    (made, argument) => made.flatMap((before) => textsOf(argument).map((text) => [...before, text])),
    [[]],
  );
  const textsOfOptional = optionalArguments.map(textsOf);
  const numbers = textsOfOptional.map(([text]) => text!).filter((text) => text.includes(NUMBER));
  return [...crossed, ...textsOfOptional.flat().map((text) => [...crossed[0]!, text]), [...crossed[0]!, ...numbers]];
}

export function selectionOf(type: GraphQLOutputType, depth = SELECTION_DEPTH): string {
  const named = getNamedType(type);
  if (!isObjectType(named)) return "";
  const parts = Object.values(named.getFields()).flatMap((field) => {
    if (field.args.some((argument) => isNonNullType(argument.type))) return [];
    if (isLeafType(getNamedType(field.type))) return [field.name];
    const inside = depth > 1 ? selectionOf(field.type, depth - 1) : "";
    return inside === "" ? [] : [`${field.name} ${inside}`];
  });
  return parts.length > 0 ? `{ ${parts.join(" ")} }` : "";
}

function callsOf(operation: Operation, field: GraphQLField<unknown, unknown>): CallByNumber[] {
  if (field.args[0]?.name !== "appId") return [];
  const selection = selectionOf(field.type);
  const texts = argumentLists(field.args).map((argument) => argument.join(", "));
  return texts
    .filter((text) => text.includes(NUMBER))
    .map((text) => {
      const parts = text.split(NUMBER);
      const named = parts.slice(0, -1).map((part) => /(\w+): \[?$/.exec(part)![1]);
      return {
        operation,
        name: `${field.name}(${named.join(", ")})`,
        numbers: named.length,
        document: (appId, numbers) => {
          const argument = parts.map((part, index) => part + (numbers[index] ?? "")).join("");
          return `${operation} { ${field.name}(appId: ${appId}, ${argument}) ${selection} }`;
        },
      };
    });
}

/** Returns calls of operations whose first argument is an app ID: one call for each combination of arguments that contain a number. */
export function callsByNumber(schema: GraphQLSchema): CallByNumber[] {
  const types = [
    ["query", schema.getQueryType()!],
    ["mutation", schema.getMutationType()!],
    ["subscription", schema.getSubscriptionType()!],
  ] as const;
  const all = types.flatMap(([operation, type]) =>
    Object.values(type.getFields()).flatMap((field) => callsOf(operation, field)),
  );
  const first = new Map<string, CallByNumber>();
  for (const call of all) if (!first.has(call.name)) first.set(call.name, call);
  return [...first.values()];
}
