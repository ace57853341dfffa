/** The one check of GraphQL documents, for HTTP and websockets alike: form, grammar, schema, cost, variables. What has passed is remembered. Work is done in the sender's turn. Executes nothing. */
import { createHash } from "node:crypto";
import { type DocumentNode, GraphQLError, type GraphQLSchema, parse, specifiedRules, validate } from "graphql";
import { LRUCache } from "lru-cache";
import { JSON_MAX_DEPTH, SMALL_BODY_BYTES } from "../../limits.js";
import { nestsDeeperThan } from "../../rules/described.js";
import { collectYoungGarbage } from "../../young-garbage.js";
import { createTurns, type Turns } from "../turns.js";
import { createCostCheck, type Variables } from "./document-cost.js";
import { checkForm } from "./document-form.js";
import { variablesFault } from "./variables.js";

/** Names in one document, aliases included; a hand-written document has some hundreds. */
const DOCUMENT_MAX_TOKENS = 5_000;
const FAULTS_MAX = 20;
/** The rules report values that nest deeper than they allow. Values beyond this depth would overflow the stack before that. */
const VARIABLES_MAX_DEPTH = 2 * JSON_MAX_DEPTH;
/** Of all that is remembered; a parsed document takes some fifty times the memory of its text. */
const REMEMBERED_CHARACTERS = 500_000;
/**
 * After so much text what its reading left is collected, at a moment in which nearly all of it is garbage. Where V8 chooses the moment, it
 * finds documents in use and keeps their parts for old.
 */
const COLLECTED_CHARACTERS = 128 * 1024;
/** The limits leave at most 5 ms, measured, to the check of each small body's worth of a request: its sender rests for no more than this. */
const CHECK_MOST_MS = 6;
/** Values that an operation may ask for beside all others: they take less than two milliseconds. */
const LIGHT_COST = 1_000;
/** Measured: an introspection of 30,000 values takes some fifty. */
const MS_PER_VALUE = 1 / 600;

/** What a client asks to have executed. */
export interface Asked {
  query: string;
  operationName?: string | null | undefined;
  variables?: Variables;
}

/** A document that may be executed, or why it is refused. */
export type Checked = DocumentNode | readonly GraphQLError[];

export interface Documents {
  /** The document, or why it is refused. */
  check(asked: Asked): Checked;
  /**
   * The same in the sender's turn: at once where it is known and asks for little, and `bytes`, those of the request, are few.
   * @throws RATE_LIMIT_EXCEEDED where too much of that sender waits already
   */
  checkInTurn(sender: string, bytes: number, asked: Asked): Promise<Checked>;
  /** One that has passed, by the SHA-256 of its text in hexadecimal. */
  remembered(hash: string): DocumentNode | undefined;
}

const hashOf = (query: string): string => createHash("sha256").update(query).digest("hex");

/** graphql-js reads by recursion: brackets without end overflow the stack, which is the document's fault. */
function faultsOf(error: unknown): readonly GraphQLError[] {
  if (error instanceof GraphQLError) return [error];
  if (error instanceof RangeError) return [new GraphQLError("the document nests too deeply")];
  throw error;
}

export function createDocuments(schema: GraphQLSchema, turns: Turns = createTurns()): Documents {
  const costOf = createCostCheck(schema);
  const passed = new LRUCache<string, DocumentNode>({ maxSize: REMEMBERED_CHARACTERS });

  let uncollected = 0;

  function read(query: string): Checked {
    uncollected += query.length;
    if (uncollected > COLLECTED_CHARACTERS) {
      uncollected = query.length;
      collectYoungGarbage();
    }
    try {
      const document = parse(query, { maxTokens: DOCUMENT_MAX_TOKENS });
      checkForm(document);
      const faults = validate(schema, document, specifiedRules, { maxErrors: FAULTS_MAX });
      return faults.length > 0 ? faults : document;
    } catch (error) {
      return faultsOf(error);
    }
  }

  function judge({ query, operationName, variables }: Asked, hash: string): { checked: Checked; cost: number } {
    const refused = (...checked: GraphQLError[]) => ({ checked, cost: 0 });
    if (nestsDeeperThan(variables, VARIABLES_MAX_DEPTH)) {
      return refused(new GraphQLError("the variables nest too deeply"));
    }
    const known = passed.get(hash);
    const found = known ?? read(query);
    if (!("kind" in found)) return refused(...found);
    const cost = costOf(found, operationName, variables);
    if (typeof cost !== "number") return refused(cost);
    const fault = variablesFault(schema, found, operationName, variables);
    if (fault) return refused(fault);
    // What is refused, for whatever reason, takes no other's place.
    if (!known) passed.set(hash, found, { size: Math.max(1, query.length) });
    return { checked: found, cost };
  }

  return {
    check: (asked) => judge(asked, hashOf(asked.query)).checked,

    async checkInTurn(sender, bytes, asked) {
      const hash = hashOf(asked.query);
      const light = passed.has(hash) && bytes <= SMALL_BODY_BYTES;
      const work = () => judge(asked, hash);
      const most = CHECK_MOST_MS * Math.max(1, bytes / SMALL_BODY_BYTES);
      const { checked, cost } = light ? work() : await turns.take(sender, work, most);
      if (cost <= LIGHT_COST) return checked;
      // It is executed in the next turn, and counts for the one after.
      if (light) await turns.take(sender, () => undefined);
      turns.owe(sender, cost * MS_PER_VALUE);
      return checked;
    },

    remembered: (hash) => passed.get(hash),
  };
}
