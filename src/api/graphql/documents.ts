/**
 * Checks GraphQL documents from HTTP requests and WebSockets: form, grammar, schema, cost and variables. Accepted documents are cached. The
 * senders take turns. Nothing is executed here.
 */
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

/** Maximum number of tokens in a document. A hand-written document has some hundreds. */
const DOCUMENT_MAX_TOKENS = 5_000;
const FAULTS_MAX = 20;
/** The rules report values that nest deeper than they allow. Values beyond this depth would overflow the stack before that. */
const VARIABLES_MAX_DEPTH = 2 * JSON_MAX_DEPTH;
/** Maximum size of all cached documents. A parsed document takes some fifty times the memory of its text. */
const REMEMBERED_CHARACTERS = 500_000;
/**
 * Number of parsed characters after which garbage is collected, when nearly all of their nodes are garbage. If V8 chooses the moment, it
 * finds documents in use and moves their nodes to the old generation.
 */
const COLLECTED_CHARACTERS = 128 * 1024;
/**
 * Maximum time of a check for which its sender waits, per SMALL_BODY_BYTES of the request. With the limits, a check took at most 5 ms in a
 * measurement.
 */
const CHECK_MOST_MS = 6;
/** Maximum number of selected values of an operation that is executed without its own turn. They take less than two milliseconds. */
const LIGHT_COST = 1_000;
/** Execution time of a value. In a measurement, an introspection of 30,000 values took some 50 ms. */
const MS_PER_VALUE = 1 / 600;

/** A GraphQL request of a client. */
export interface CheckedRequest {
  query: string;
  operationName?: string | null | undefined;
  variables?: Variables;
}

/** A document that may be executed, or the errors for which it is refused. */
export type CheckResult = DocumentNode | readonly GraphQLError[];

export interface Documents {
  /** Checks a document immediately, without waiting for the sender's turn. */
  check(asked: CheckedRequest): CheckResult;
  /**
   * Checks a document in the sender's turn; immediately if the document is cached and cheap, and the request is small.
   * @param bytes size of the request
   * @throws RATE_LIMIT_EXCEEDED if too many requests of that sender wait
   */
  checkInTurn(sender: string, bytes: number, asked: CheckedRequest): Promise<CheckResult>;
  /** Returns the accepted document with this SHA-256 of its text in hexadecimal, if it is cached. */
  cached(hash: string): DocumentNode | undefined;
}

const hashOf = (query: string): string => createHash("sha256").update(query).digest("hex");

/** Returns the errors of a failed parse. graphql-js parses by recursion, so that deep nesting overflows the stack. @throws other errors */
function faultsOf(error: unknown): readonly GraphQLError[] {
  if (error instanceof GraphQLError) return [error];
  if (error instanceof RangeError) return [new GraphQLError("the GraphQL document is nested too deeply")];
  throw error;
}

export function createDocuments(schema: GraphQLSchema, turns: Turns = createTurns()): Documents {
  const costOf = createCostCheck(schema);
  const checkedDocuments = new LRUCache<string, DocumentNode>({ maxSize: REMEMBERED_CHARACTERS });

  let uncollected = 0;

  function parseDocument(query: string): CheckResult {
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

  function judge(
    { query, operationName, variables }: CheckedRequest,
    hash: string,
  ): { checked: CheckResult; cost: number } {
    const refused = (...checked: GraphQLError[]) => ({ checked, cost: 0 });
    if (nestsDeeperThan(variables, VARIABLES_MAX_DEPTH)) {
      return refused(new GraphQLError("the GraphQL variables are nested too deeply"));
    }
    const cachedDocument = checkedDocuments.get(hash);
    const found = cachedDocument ?? parseDocument(query);
    if (!("kind" in found)) return refused(...found);
    const cost = costOf(found, operationName, variables);
    if (typeof cost !== "number") return refused(cost);
    const fault = variablesFault(schema, found, operationName, variables);
    if (fault) return refused(fault);
    // Refused documents are not cached, so that they displace no others.
    if (!cachedDocument) checkedDocuments.set(hash, found, { size: Math.max(1, query.length) });
    return { checked: found, cost };
  }

  return {
    check: (asked) => judge(asked, hashOf(asked.query)).checked,

    async checkInTurn(sender, bytes, asked) {
      const hash = hashOf(asked.query);
      const isLight = checkedDocuments.has(hash) && bytes <= SMALL_BODY_BYTES;
      const work = () => judge(asked, hash);
      const limitMs = CHECK_MOST_MS * Math.max(1, bytes / SMALL_BODY_BYTES);
      const { checked, cost } = isLight ? work() : await turns.takeTurn(sender, work, limitMs);
      if (cost <= LIGHT_COST) return checked;
      // The document is executed in the sender's next turn. Its cost delays the turn after that.
      if (isLight) await turns.takeTurn(sender, () => undefined);
      turns.owe(sender, cost * MS_PER_VALUE);
      return checked;
    },

    cached: (hash) => checkedDocuments.get(hash),
  };
}
