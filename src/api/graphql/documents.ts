/** The one check of GraphQL documents, for HTTP and websockets alike: form, grammar, schema, cost, variables. What has passed is remembered. Executes nothing. */
import { createHash } from "node:crypto";
import { type DocumentNode, GraphQLError, type GraphQLSchema, parse, specifiedRules, validate } from "graphql";
import { LRUCache } from "lru-cache";
import { JSON_MAX_DEPTH } from "../../limits.js";
import { nestsDeeperThan } from "../../rules/described.js";
import { createCostJudge, type Variables } from "./document-cost.js";
import { judgeForm } from "./document-form.js";
import { variablesFault } from "./variables.js";

/** Names in one document, aliases included; a hand-written document has some hundreds. */
const DOCUMENT_MAX_TOKENS = 5_000;
const FAULTS_MAX = 20;
/** What nests deeper than the rules allow is told by them; what nests deeper still would overflow the stack before they are asked. */
const VARIABLES_MAX_DEPTH = 2 * JSON_MAX_DEPTH;
/** Of all that is remembered; a parsed document takes some fifty times the memory of its text. */
const REMEMBERED_CHARACTERS = 500_000;

/** What a client asks to have executed. */
export interface Asked {
  query: string;
  operationName?: string | null | undefined;
  variables?: Variables;
}

export interface Documents {
  /** The document, or why it is refused. */
  check(asked: Asked): DocumentNode | readonly GraphQLError[];
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

export function createDocuments(schema: GraphQLSchema): Documents {
  const costOf = createCostJudge(schema);
  const passed = new LRUCache<string, DocumentNode>({ maxSize: REMEMBERED_CHARACTERS });

  function read(query: string): DocumentNode | readonly GraphQLError[] {
    try {
      const document = parse(query, { maxTokens: DOCUMENT_MAX_TOKENS });
      judgeForm(document);
      const faults = validate(schema, document, specifiedRules, { maxErrors: FAULTS_MAX });
      return faults.length > 0 ? faults : document;
    } catch (error) {
      return faultsOf(error);
    }
  }

  return {
    check({ query, operationName, variables }) {
      if (nestsDeeperThan(variables, VARIABLES_MAX_DEPTH)) return [new GraphQLError("the variables nest too deeply")];
      const hash = hashOf(query);
      const found = passed.get(hash) ?? read(query);
      if (!("kind" in found)) return found;
      passed.set(hash, found, { size: Math.max(1, query.length) });
      const fault = costOf(found, operationName, variables) ?? variablesFault(schema, found, operationName, variables);
      return fault ? [fault] : found;
    },
    remembered: (hash) => passed.get(hash),
  };
}
