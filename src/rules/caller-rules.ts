/** Whom an access rule allows: everybody, whoever is signed in, or users by what their columns hold. Pure; knows no credential. */
import { ActionError } from "../errors.js";
import { described, isObject, unstorableAt } from "./described.js";

/** What a value may be compared with: no operators hide in texts, numbers and booleans. */
export type Scalar = string | number | boolean;

/** All that are given must hold. */
export interface ValueTest {
  equals?: Scalar;
  notequals?: Scalar;
  contains?: string;
}

export type Allow = "all" | "loggedIn" | { user: Readonly<Record<string, ValueTest>> };

/** What is known of the user of a page. */
export type UserData = Readonly<Record<string, unknown>>;

const TESTS = ["equals", "notequals", "contains"];
const COLUMNS_MAX = 50;
const COLUMN_MAX_CHARACTERS = 255;
const VALUE_MAX_CHARACTERS = 1_000;

function refuse(field: string, expected: string, came: unknown): never {
  throw new ActionError("REQUEST_INVALID", `${field} must be ${expected}; ${described(came)} came`);
}

const isText = (value: unknown, most: number): value is string =>
  typeof value === "string" && value !== "" && value.length <= most && unstorableAt(value) < 0;

function checkTest(test: unknown, field: string): void {
  const names = isObject(test) ? Object.keys(test) : [];
  if (names.length === 0 || names.some((name) => !TESTS.includes(name))) {
    refuse(field, "an object of equals, notequals or contains", test);
  }
  for (const [name, value] of Object.entries(test as object)) {
    const isPlain = name !== "contains" && (typeof value === "boolean" || Number.isFinite(value));
    if (!isPlain && !isText(value, VALUE_MAX_CHARACTERS)) {
      refuse(
        `${field}.${name}`,
        `a text of 1 to ${VALUE_MAX_CHARACTERS} characters${name === "contains" ? "" : ", a number or a boolean"}`,
        value,
      );
    }
  }
}

/** @throws REQUEST_INVALID naming the field */
export function checkAllow(value: unknown, field: string): asserts value is Allow {
  if (value === "all" || value === "loggedIn") return;
  const tests = isObject(value) && Object.keys(value).join() === "user" ? value["user"] : undefined;
  if (!isObject(tests)) refuse(field, '"all", "loggedIn" or {user: {Column: {equals, notequals or contains}}}', value);
  const columns = Object.keys(tests);
  if (columns.length === 0 || columns.length > COLUMNS_MAX)
    refuse(`${field}.user`, `an object of 1 to ${COLUMNS_MAX} columns`, tests);
  for (const column of columns) {
    if (!isText(column, COLUMN_MAX_CHARACTERS)) refuse(`${field}.user`, "an object by the names of columns", column);
    checkTest(tests[column], `${field}.user.${column}`);
  }
}

const isEqual = (value: unknown, expected: Scalar): boolean =>
  value === expected || (Array.isArray(value) && value.includes(expected));

function holdsPart(value: unknown, part: string): boolean {
  if (Array.isArray(value)) return value.some((one) => holdsPart(one, part));
  return typeof value === "string" && value.toLowerCase().includes(part.toLowerCase());
}

function meets(value: unknown, { equals, notequals, contains }: ValueTest): boolean {
  if (equals !== undefined && !isEqual(value, equals)) return false;
  // A column that is not there is unlike anything, and allows nobody.
  if (notequals !== undefined && (value === undefined || value === null || isEqual(value, notequals))) return false;
  return contains === undefined || holdsPart(value, contains);
}

/** @param user null: nobody is signed in */
export function allows(allow: Allow, user: UserData | null): boolean {
  const isForAll = allow === "all";
  if (isForAll || user === null) return isForAll;
  if (allow === "loggedIn") return true;
  return Object.entries(allow.user).every(([column, test]) =>
    meets(Object.hasOwn(user, column) ? user[column] : undefined, test),
  );
}
