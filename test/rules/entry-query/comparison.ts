/** Runs generated queries in all implementations of the query language: few in `npm test` and many in test/long. */
import fc from "fast-check";
import type { Client } from "pg";
import { aggregate, document, flatDocument, type Json, where } from "./generated.js";
import { aggregatedByMingo, aggregatedBySql, type Disagreement, findDisagreements } from "./oracle.js";

const DOCUMENTS_PER_QUERY = 20;
const QUERIES = 25;

/** Generates values as a parsed request has them: plain objects, and no -0. */
function generateSamples<T>(arbitrary: fc.Arbitrary<T>, seed: number, numRuns: number): T[] {
  return JSON.parse(JSON.stringify(fc.sample(arbitrary, { seed, numRuns })));
}

export interface Comparison {
  queries: number;
  pairs: number;
  likeMingo: Disagreement[];
  wrong: Disagreement[];
}

/** Compares the results of generated conditions. @param count number of conditions, each tested on twenty documents */
export async function compareWheres(client: Client, count: number, seed: number): Promise<Comparison> {
  const documents = generateSamples(document, seed, Math.ceil(count / QUERIES) * DOCUMENTS_PER_QUERY);
  const queries = generateSamples(where, seed + 1, count);
  const total: Comparison = { queries: 0, pairs: 0, likeMingo: [], wrong: [] };
  for (let at = 0; at < count; at += QUERIES) {
    const batch = queries.slice(at, at + QUERIES);
    const from = (at / QUERIES) * DOCUMENTS_PER_QUERY;
    const { wrong, likeMingo } = await findDisagreements(
      client,
      documents.slice(from, from + DOCUMENTS_PER_QUERY),
      batch,
    );
    total.queries += batch.length;
    total.pairs += batch.length * DOCUMENTS_PER_QUERY;
    total.likeMingo.push(...likeMingo);
    total.wrong.push(...wrong);
  }
  return total;
}

/**
 * Rounds numbers to twelve digits, because sums are exact in one implementation and rounded in the other. Also sorts the members of
 * objects, and removes undefined ones.
 */
function roundNumbers(value: unknown): unknown {
  if (typeof value === "number") return Number(value.toPrecision(12));
  if (Array.isArray(value)) return value.map(roundNumbers);
  if (typeof value !== "object" || value === null) return value ?? null;
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return Object.fromEntries(
    members.sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, member]) => [key, roundNumbers(member)]),
  );
}

const text = (documents: readonly Json[]): string => JSON.stringify(documents.map(roundNumbers));

/** Returns the pipelines for which the service's SQL and mingo differ, with both results. */
export async function compareAggregates(client: Client, count: number, seed: number) {
  const documents = generateSamples(flatDocument, seed, count * 10);
  const pipelines = generateSamples(aggregate, seed + 1, count);
  const wrong: unknown[] = [];
  for (const [at, stages] of pipelines.entries()) {
    const batch = documents.slice(at * 10, at * 10 + 10);
    const [ours, theirs] = [text(await aggregatedBySql(client, batch, stages)), text(aggregatedByMingo(batch, stages))];
    if (ours !== theirs) wrong.push({ stages, documents: batch, ours, theirs });
  }
  return { pipelines: pipelines.length, wrong };
}
