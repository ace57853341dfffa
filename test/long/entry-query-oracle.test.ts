/**
 * Compares the results of random queries of entries with those of sift and mingo (npm packages for MongoDB queries). Uses a fixed seed, and
 * then a new seed, which the test prints.
 */
import { expect } from "chai";
import type { Client } from "pg";
import { type ConnectedClient, connectedClient } from "../harness/connected-database.js";
import { compareAggregates, compareWheres } from "../rules/entry-query/comparison.js";

const QUERIES = 20_000;
const PIPELINE_COUNT = 3_000;
const NEW_SEED = Math.floor(Math.random() * 2 ** 31);

describe("the query language in many generated queries", function () {
  this.timeout(0);
  let database: ConnectedClient;
  let client: Client;

  before(async () => {
    database = await connectedClient();
    ({ client } = database);
  });
  after(() => database.stop());

  for (const [name, seed] of [
    ["a fixed seed", 2_026],
    [`seed ${NEW_SEED}`, NEW_SEED],
  ] as const) {
    it(`finds what sift finds, in ${QUERIES.toLocaleString("en")} queries of ${name}`, async () => {
      const { wrong, queries, pairs, likeMingo } = await compareWheres(client, QUERIES, seed);
      console.log(
        `      ${queries} queries, ${pairs} answers, ${likeMingo.length} as mingo where sift reads an index otherwise`,
      );
      expect(wrong).to.deep.equal([]);
      expect(likeMingo.length).to.be.below(pairs / 500);
    });

    it(`aggregates as mingo does, in ${PIPELINE_COUNT.toLocaleString("en")} pipelines of ${name}`, async () => {
      const { wrong } = await compareAggregates(client, PIPELINE_COUNT, seed);
      expect(wrong).to.deep.equal([]);
    });
  }
});
