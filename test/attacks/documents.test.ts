import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { getIntrospectionQuery, type OperationDefinitionNode, parse, print, separateOperations } from "graphql";
import { createGraphqlDocumentChecker } from "../../src/api/graphql/documents.js";
import { loadSchema } from "../../src/api/graphql/schema.js";
import { FIRST_VISIT_QUERY } from "../../src/web/graphiql/first-visit.js";
import { startTestService, type TestService } from "../harness/service.js";

const STUDIO_DOCUMENTS_FILE = fileURLToPath(new URL("../../../src/web/studio/documents.graphql", import.meta.url));

const times = (count: number, write: (at: number) => string): string =>
  Array.from({ length: count }, (_, at) => write(at)).join(" ");

/** Returns `count` fragments. Each one uses the next fragment twice, under two names, so that the result doubles at each level. */
const buildFragmentBomb = (count: number, type: string, field: string) =>
  times(count, (at) => {
    const next = at + 1 < count ? `a: ${field} { ...f${at + 1} } b: ${field} { ...f${at + 1} }` : "";
    return `fragment f${at} on ${type} { name ${next} }`;
  });

const HOSTILE_DOCUMENTS: [title: string, query: string, variables?: object][] = [
  ["1,600 aliases of a description", `{ __schema { types { ${times(1_600, (at) => `a${at}: description`)} } } }`],
  ["5,000 aliases of __typename", `{ ${times(5_000, (at) => `a${at}: __typename`)} }`],
  ["more fields of its own than a hundred", `{ ${times(101, (at) => `a${at}: __typename`)} }`],
  [
    "a hundred and one fields of its own by way of fragments",
    `{ ...a ...b } fragment a on Query { ${times(60, (at) => `a${at}: __typename`)} } fragment b on Query { ${times(60, (at) => `b${at}: __typename`)} }`,
  ],
  ["one field a thousand times in one place", `{ ${times(1_000, () => "__typename")} }`],
  ["the same by inline fragments", `{ ${times(200, () => "... { __typename }")} }`],
  [
    "a bomb of fragments that goes beyond 20 levels",
    `{ __schema { types { ...f0 } } } ${buildFragmentBomb(30, "__Type", "ofType")}`,
  ],
  ["a circle of fragments", "{ ...a } fragment a on Query { ...b } fragment b on Query { ...a }"],
  [
    "types of types of types",
    "{ __schema { types { fields { type { fields { type { fields { type { name } } } } } } } } }",
  ],
  [
    "30 fields of each of 1,000 entries",
    `{ actionLogs(appId: 1, options: { limit: 1000 }) { logs { ${times(30, (at) => `a${at}: id`)} } } }`,
  ],
  [
    "the same by a variable",
    `query ($o: ActionLogsInput) { actionLogs(appId: 1, options: $o) { logs { ${times(30, (at) => `a${at}: id`)} } } }`,
    { o: { limit: 1000 } },
  ],
  ["1,600 directives", `{ __typename ${times(1_600, () => "@include(if: true)")} }`],
  ["300 directives", `{ __typename ${times(300, () => "@include(if: true)")} }`],
  ["a thousand variables", `query (${times(1_000, (at) => `$a${at}: Int`)}) { __typename }`],
  ["a thousand operations", times(1_000, (at) => `query q${at} { __typename }`)],
  ["2,400 brackets", `{ actionLogs(appId: 1, options: ${"[".repeat(2_400)}${"]".repeat(2_400)}) { count } }`],
  ["1,200 levels of fields", `${"{ a ".repeat(1_200)}${"}".repeat(1_200)}`],
  ["900 fields that are not there", `{ ${times(900, (at) => `x${at}`)} }`],
];

async function documents() {
  return createGraphqlDocumentChecker(await loadSchema());
}

describe("a service that gets GraphQL documents", () => {
  let service: TestService;
  before(async () => {
    service = await startTestService({ ROLES: "api" });
  });
  after(() => service.stop());

  describe("GraphQL documents that request too much", () => {
    for (const [title, query, variables = {}] of HOSTILE_DOCUMENTS) {
      it(`are rejected in the same way over HTTP and the websocket, in a short message: ${title}`, async () => {
        const { http, body } = await service.rest("POST", "/graphql", { body: { query, variables } });
        expect(http).to.equal(200);
        expect(body.data).to.equal(undefined);
        for (const { extensions } of body.errors) expect(extensions).to.deep.equal({ status: "REQUEST_INVALID" });
        expect(JSON.stringify(body).length).to.be.below(10_000);
        const client = service.socket();
        const refusal = await new Promise((resolve) =>
          client.subscribe(
            { query, variables: { ...variables } },
            { next: resolve, error: resolve, complete: () => resolve("complete") },
          ),
        );
        await client.dispose();
        expect(refusal).to.deep.equal(body.errors);
      });
    }

    it("get the name of the exceeded limit if a value has too many levels, at any place", async () => {
      const deep = `${"[".repeat(1_000)}${"]".repeat(1_000)}`;
      const objects = `${"{ a: ".repeat(600)}1${"}".repeat(600)}`;
      for (const query of [
        `{ actionLogs(appId: 1, options: ${deep}) { count } }`,
        `{ actionLogs(appId: 1, options: ${objects}) { count } }`,
        `{ __typename @include(if: ${deep}) }`,
        `query ($a: Int = ${deep}) { __typename }`,
        `query @skip(if: ${deep}) { __typename }`,
        `{ ...a } fragment a on Query @skip(if: ${deep}) { __typename }`,
      ]) {
        const { body } = await service.rest("POST", "/graphql", { body: { query } });
        const received = body.errors.map(({ message }: { message: string }) => message);
        expect(received, query.slice(0, 40)).to.deep.equal([
          "a GraphQL document can have at most 500 levels of nesting in a value",
        ]);
      }
    });

    it("are not cached when they are rejected, so that they cannot replace other documents", async () => {
      const { check, findCachedDocument } = await documents();
      const isCached = (query: string) =>
        findCachedDocument(createHash("sha256").update(query).digest("hex")) !== undefined;
      const validQuery = "query ($options: ActionLogsInput) { actionLogs(appId: 1, options: $options) { count } }";
      expect(check({ query: validQuery, variables: {} })).to.have.property("kind");
      expect(isCached(validQuery)).to.equal(true);
      for (const [, query, variables] of HOSTILE_DOCUMENTS) {
        expect(check({ query, variables: { ...variables } })).to.be.an("array");
        expect(isCached(query), query.slice(0, 60)).to.equal(false);
      }
      const other = `${validQuery} # and other variables`;
      expect(check({ query: other, variables: { options: 1 } })).to.be.an("array");
      expect(isCached(other)).to.equal(false);
    });

    it("do not include any document of Studio and the first page of GraphiQL", async () => {
      const { check } = await documents();
      const studio = readFileSync(STUDIO_DOCUMENTS_FILE, "utf8");
      const variables = { appId: 1, id: 1, actionId: 1, runId: 1, versionId: 1, limit: 1000, options: { limit: 1000 } };
      const refused: unknown[] = [];
      let seen = 0;
      // Studio sends each of its operations separately, so the test splits the document that contains all of them.
      const sent = Object.values(separateOperations(parse(studio))).map(print);
      for (const query of [...sent, FIRST_VISIT_QUERY]) {
        for (const operation of parse(query).definitions as readonly OperationDefinitionNode[]) {
          if (operation.kind !== "OperationDefinition") continue;
          const checked = check({ query, operationName: operation.name!.value, variables });
          // The test passes no values for some variables, so it ignores the errors about variables.
          if (!("kind" in checked)) refused.push(...checked.filter(({ message }) => !message.startsWith("Variable ")));
          seen += 1;
        }
      }
      expect(refused).to.deep.equal([]);
      expect(seen).to.be.above(20);
    });

    it("do not include all fields of 1,000 actions, and a larger introspection than tools send", async () => {
      const whole =
        "id name description code active environment triggers { trigger where { type dataSourceId data } } dependencies assets { name url path } frequency timezone createdAt updatedAt";
      const { errors } = await service.graphql(
        `{ actions(appId: 1, limit: 1000) { actions { ${whole} } pagination { total } } }`,
      );
      expect(errors).to.equal(undefined);
      const { data } = await service.graphql(`${getIntrospectionQuery({ oneOf: true })} # as written by hand`);
      expect(data.__schema.queryType).to.deep.equal({ name: "Query", kind: "OBJECT" });
    });
  });

  describe("GraphQL without a credential", () => {
    const sendWithoutCredential = (body: unknown) => service.rest("POST", "/graphql", { as: null, body });
    const REFUSED = { errors: [{ message: "a valid credential is required", extensions: { status: "UNAUTHORIZED" } }] };

    for (const [tool, question] of [
      ["GraphiQL", { inputValueDeprecation: false, schemaDescription: false }],
      ["graphql-js", {}],
    ] as const) {
      it(`answers the introspection query of ${tool} as with a credential`, async () => {
        const query = getIntrospectionQuery(question);
        const { http, body } = await sendWithoutCredential({ query, operationName: "IntrospectionQuery" });
        expect(http).to.equal(200);
        const executed = await service.graphql(`${query} # not known by heart`);
        expect(body).to.deep.equal(executed);
      });
    }

    it("parses nothing else: every other document gets the same error", async () => {
      const question = getIntrospectionQuery();
      const documents = [
        "{ __typename }",
        "{",
        "",
        "{ nothing }",
        `${question} #`,
        question.replace("__schema", "a: __schema"),
        "{ ".repeat(3_000),
      ];
      for (const query of documents) {
        const { http, body } = await sendWithoutCredential({ query });
        expect([http, body], query.slice(0, 40)).to.deep.equal([200, REFUSED]);
      }
      const { body } = await sendWithoutCredential({ query: question, operationName: "Other" });
      expect(body).to.deep.equal(REFUSED);
      for (const odd of [[], {}, { query: 1 }, [{ query: question }]])
        expect((await sendWithoutCredential(odd)).body).to.deep.equal(REFUSED);
      const read = await service.rest("GET", `/graphql?query=${encodeURIComponent("{ __typename }")}`, { as: null });
      expect([read.http, read.body]).to.deep.equal([200, REFUSED]);
      const stored = { persistedQuery: { version: 1, sha256Hash: "0".repeat(64) } };
      expect((await sendWithoutCredential({ extensions: stored })).body).to.deep.equal(REFUSED);
    });

    it("responds without waiting for a body that is larger than a known query, or of unknown length", async () => {
      const { hostname, port } = new URL(service.url);
      for (const length of ["Content-Length: 1000000", "Transfer-Encoding: chunked"]) {
        const socket = connect(Number(port), hostname);
        socket.write(`POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${length}\r\n\r\n`);
        const answer = await new Promise((resolve) => socket.once("data", (data) => resolve(String(data))));
        expect(answer)
          .to.match(/^HTTP\/1\.1 200 /)
          .and.to.contain("UNAUTHORIZED");
        socket.destroy();
      }
    });
  });
});
