/**
 * Checks that rows that access rules hide change no response of a list, such as its rows, totals and cursors. The test sends each request
 * with and without the hidden rows, and compares the responses.
 */
import { readFileSync } from "node:fs";
import { expect } from "chai";
import { buildSchema } from "graphql";
import { publishNotifications } from "../harness/published-notifications.js";
import { sampleOf } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { mediaOf } from "../media/support.js";
import { HIDDEN_TEXT, type ListEndpoint, listEndpoints, type Reply } from "./list-requests.js";
import { createHiddenRows, HIDDEN_ID, OWN_ID } from "./list-rows.js";

interface Request {
  name: string;
  send: (as: string | null) => Promise<unknown>;
}

const LIMITS = [0, 1, 2, 3, 1_000];
const OFFSETS = [0, 1, 2, 5];
const PAGES = sampleOf(
  LIMITS.flatMap((limit) => OFFSETS.map((offset) => ({ limit, offset }))),
  4,
  5,
);
const READABLE_BY_ALL = [{ type: ["read"], allow: "all" }];

/** Matches times, which differ between two requests. */
const TIMESTAMPS = /\d{4}-\d\d-\d\dT[\d:.]+Z/g;
/** Matches fields about the last use of a token, session or person. Their values differ between two requests. */
const LAST_USE = /"(lastUsedAt|lastUsedAddress|lastSeenAt|address)":(null|"[^"]*")/g;
const HIDDEN_ROW = new RegExp(`${HIDDEN_TEXT}|\\b${HIDDEN_ID}\\b`);

/** Routes and queries that this test leaves out, each with the reason. */
const EXCLUDED_ENDPOINTS: Readonly<Record<string, string>> = {
  "GET /v1/apps/{appId}/data-sources/{ds}/queries": "lists the queries of this test; visitors have no access",
  "query mediaLink": "is no list; its signature contains the time at which the link expires",
  "query dataSourceQueries": "lists the queries of this test; visitors have no access",
};

/** Lists that have no hidden rows, each with the reason. The test compares their responses too. */
const WITHOUT_HIDDEN_ROWS: Readonly<Record<string, string>> = {
  "GET /v1/admin/administrators": "only administrators have access, who see all rows",
  "query administrators": "only administrators have access, who see all rows",
  "GET /v3/apps/{appId}/packages/declarations": "returns the files of a package",
  "query packageDeclarations": "returns the files of a package",
  "GET /v3/apps/{appId}/schedule/preview": "computes its list from the request",
  "query nextRuns": "computes its list from the request",
  "query codeProblems": "computes its list from the request",
  "GET /v3/apps/{appId}/runs/statistics": "counts the runs of the app in every hour",
  "query runStatistics": "counts the runs of the app in every hour",
  "query mediaAccessRules": "returns the rules of one folder",
};

/** Replies by endpoint. */
type Replies = ReadonlyMap<string, (Reply & { request: string })[]>;

interface Difference {
  endpoint: string;
  text: string;
}

const findDifferences = (before: Replies, after: Replies): Difference[] =>
  [...after].flatMap(([endpoint, replies]) =>
    replies.flatMap(({ request, text }, at) => {
      const earlier = before.get(endpoint)![at]!.text;
      return earlier === text
        ? []
        : [{ endpoint, text: `${endpoint} as ${request}: ${earlier} before, ${text} after` }];
    }),
  );

const textOf = (all: readonly Difference[]): string => all.map(({ text }) => text).join("\n");

const findOpenEndpoints = (endpoints: readonly ListEndpoint[], replies: Replies): ListEndpoint[] =>
  endpoints.filter(({ name }) => replies.get(name)!.some(({ succeeded }) => succeeded));

describe("hidden rows", () => {
  let service: TestService;
  let app: string;

  before(async () => {
    service = await startTestService({ ROLES: "api", ALLOW_PRIVATE_NETWORK: "1", RATE_LIMIT_MANAGE: "0" });
    app = `/v1/apps/${service.appId}`;
  });
  after(() => service.stop());

  const rest = async (as: string | null, method: string, path: string, body?: unknown) => {
    const answer = await service.rest(method, path, { as, body });
    return [answer.http, answer.body];
  };

  /** Sends each request with a page token and without a credential. Then calls `remove` and expects the same responses again. */
  async function expectSameAnswersWithout(requests: readonly Request[], remove: () => Promise<void>): Promise<void> {
    const answers = async () => {
      const all: [name: string, answer: string][] = [];
      for (const as of ["live", null]) {
        for (const { name, send } of requests) all.push([`${as} ${name}`, JSON.stringify(await send(as))]);
      }
      return all;
    };
    const answersWithHiddenRows = await answers();
    await remove();
    expect(answersWithHiddenRows).to.deep.equal(await answers());
  }

  /**
   * Sends the plain requests of each endpoint as each caller. If one of them succeeds, also sends the endpoint's filtered requests as this
   * caller. With `sampled`, `npm test` sends only a quarter of the filtered requests. Returns all responses, without times.
   */
  async function repliesTo(
    endpoints: readonly ListEndpoint[],
    callers: Record<string, string | null>,
    { id = OWN_ID, sampled = false } = {},
  ): Promise<Replies> {
    const replies = new Map<string, (Reply & { request: string })[]>();
    const repliesOf = async ({ name, plainRequests, filteredRequests, send }: ListEndpoint) => {
      const all: (Reply & { request: string })[] = [];
      replies.set(name, all);
      const sendAll = async (caller: string, requests: ListEndpoint["plainRequests"]): Promise<boolean> => {
        const before = all.length;
        for (const values of requests) {
          const { succeeded, text } = await send(service, callers[caller]!, id, values);
          const stableText = text.replace(LAST_USE, "").replace(TIMESTAMPS, "<time>");
          all.push({ request: `${caller} ${JSON.stringify(values)}`, succeeded, text: stableText });
        }
        return all.slice(before).some(({ succeeded }) => succeeded);
      };
      for (const [at, caller] of Object.keys(callers).entries()) {
        const isOpen = await sendAll(caller, plainRequests);
        if (isOpen) await sendAll(caller, sampled ? sampleOf(filteredRequests, at, 4) : filteredRequests);
      }
    };
    const waiting = [...endpoints];
    const work = async () => {
      for (let next = waiting.shift(); next; next = waiting.shift()) await repliesOf(next);
    };
    await Promise.all(Array.from({ length: 8 }, work));
    return replies;
  }

  it("of media change no response", async () => {
    const editor = mediaOf(service);
    const open = await editor.folder("open");
    await editor.rest("PUT", `/folders/${open}/accessRules`, READABLE_BY_ALL);
    const [inner, closed] = [await editor.folder("inner", open), await editor.folder("closed", open)];
    await editor.rest("PUT", `/folders/${closed}/accessRules`, []);
    const files: number[] = [];
    const folders = [closed];
    for (const name of ["b shown", "d shown"]) {
      await editor.upload(name, "x", { folderId: String(open) });
      await editor.upload(name, "x", { folderId: String(inner) });
    }
    for (const name of ["a hidden", "c hidden", "e hidden"]) {
      const { id } = await editor.upload(name, "x", { folderId: String(open) });
      await editor.rest("PUT", `/files/${id}/accessRules`, []);
      files.push(
        id,
        (await editor.upload(name, "x", { folderId: String(closed) })).id,
        (await editor.upload(name, "x")).id,
      );
      const folder = await editor.folder(name, open);
      await editor.rest("PUT", `/folders/${folder}/accessRules`, []);
      folders.push(folder);
    }
    const folderQueries = [
      `folderId=${open}`,
      `folderId=${inner}`,
      "",
      "name=hidden",
      "name=shown",
      "name=n",
      "name=a%20hidden",
    ];
    const requests = PAGES.flatMap(({ limit, offset }) => [
      ...folderQueries.map((folderQuery) => `/media?${folderQuery}&limit=${limit}&offset=${offset}`),
      `/media/files?limit=${limit}&offset=${offset}`,
    ]).map((path) => ({ name: path, send: (as: string | null) => rest(as, "GET", app + path) }));
    const text = `query ($app: Int!, $name: String, $limit: Int) { mediaFolder(appId: $app, name: $name, limit: $limit) {
      files { name } folders { name } pagination { total hasMore } } }`;
    const graphql = [0, 1, 10].map((limit) => ({
      name: `graphql ${limit}`,
      send: (as: string | null) => service.graphql(text, { app: service.appId, name: "hidden", limit }, { as }),
    }));
    await expectSameAnswersWithout([...requests, ...graphql], async () => {
      for (const id of files) await editor.rest("DELETE", `/files/${id}`);
      for (const id of folders) await editor.rest("DELETE", `/folders/${id}`);
    });
    const [, listed] = (await rest(null, "GET", `${app}/media?folderId=${open}&limit=1`)) as [
      number,
      { pagination: object },
    ];
    expect(listed.pagination).to.deep.equal({ total: 2, hasMore: true });
  });

  it("of data sources change no response", async () => {
    const base = `${app}/data-sources`;
    const rule = { type: ["select"], allow: "all", require: [{ Owner: { equals: "all" } }] };
    const { dataSource } = (await service.rest("POST", base, { body: { name: "Rows", accessRules: [rule] } })).body;
    const hidden: number[] = [];
    for (const [at, owner] of ["x", "all", ["all", "x"], "all", "x", ["all"], "all"].entries()) {
      const { body } = await service.rest("POST", `${base}/Rows/entries`, {
        body: { Owner: owner, N: at, Name: `n${at}` },
      });
      if (owner !== "all") hidden.push(body.id);
    }
    const where = { Owner: "all" };
    const wheres = [where, { ...where, Name: "n0" }, { ...where, N: { $gte: 1 } }, { Owner: "x" }, {}, { Name: "n0" }];
    const queries: object[] = PAGES.flatMap((page) => [
      ...wheres.map((condition) => ({ where: condition, ...page, includePagination: true })),
      { where, ...page, order: [["data.N", "DESC"]], includePagination: true },
    ]);
    for (const limit of [1, 2, 1_000]) queries.push({ where, limit, cursor: "first" });
    queries.push(
      { where, aggregate: [{ $count: "n" }] },
      { where, aggregate: [{ $group: { _id: "$Owner", n: { $max: "$N" } } }] },
    );
    const requests = queries.map((query) => ({
      name: JSON.stringify(query),
      send: (as: string | null) => rest(as, "POST", `${base}/Rows/query`, query),
    }));
    const reads = [`/indexes/Name`, `/indexes/Owner,N`, "/export?format=json"].map((path) => ({
      name: path,
      send: (as: string | null) => rest(as, "GET", `${base}/${dataSource.id}${path}`),
    }));
    await expectSameAnswersWithout([...requests, ...reads], async () => {
      for (const id of hidden) await service.rest("DELETE", `${base}/Rows/entries/${id}`);
    });
  });

  it("of notifications change no response", async () => {
    const ids: number[] = [];
    for (const [at, scope] of [{ email: "nobody@example.com" }, undefined, { email: "x" }, undefined].entries()) {
      const body = { status: "published", data: { title: `t${at}` }, ...(scope && { scope }) };
      const { body: made } = await service.rest("POST", `${app}/notifications`, { body });
      if (scope) ids.push(made.id ?? made.notification.id);
    }
    // There are more hidden notifications than one query reads, and they are newer than the visible ones.
    await publishNotifications(service.db, service.appId, 1_000, { email: "nobody@example.com" });
    const paths = [
      ...PAGES.map(({ limit, offset }) => `/notifications?limit=${limit}&offset=${offset}`),
      "/notifications/unread",
    ];
    const requests = paths.map((path) => ({ name: path, send: (as: string | null) => rest(as, "GET", app + path) }));
    await expectSameAnswersWithout(requests, async () => {
      for (const id of ids) await service.rest("DELETE", `${app}/notifications/${id}`);
      await service.db.query("DELETE FROM notification WHERE scope IS NOT NULL");
    });
  });

  it("of every list that a route or query returns change no response", async () => {
    const { body } = await service.rest("GET", "/v1/openapi.json", { as: null });
    const schema = buildSchema(readFileSync("schema/schema.graphql", "utf8"));
    const all = listEndpoints(body, schema).filter(({ name }) => !(name in EXCLUDED_ENDPOINTS));
    const endpoints = sampleOf(all, 2, 16);
    const hiddenRows = createHiddenRows(service);
    const { admin, visitors, members, owner } = await hiddenRows.addOwnApp();

    const sampled = true;
    const visitorsBefore = await repliesTo(endpoints, visitors);
    const ownerBefore = await repliesTo(endpoints, { owner }, { sampled });
    const membersBefore = await repliesTo(endpoints, members, { sampled });
    const openToVisitors = findOpenEndpoints(endpoints, visitorsBefore);
    const openToOwner = findOpenEndpoints(endpoints, ownerBefore);
    const openToMembers = findOpenEndpoints(endpoints, membersBefore);
    const adminBefore = await repliesTo(openToVisitors, { admin });
    const hiddenPeople = await hiddenRows.addHiddenApp();
    const ownerDifferences = findDifferences(ownerBefore, await repliesTo(openToOwner, { owner }, { sampled }));
    await hiddenRows.addSiblingApp();
    const memberDifferences = findDifferences(membersBefore, await repliesTo(openToMembers, members, { sampled }));
    const hiddenAppReplies = await repliesTo(endpoints, hiddenPeople, { id: HIDDEN_ID, sampled });
    await hiddenRows.addHiddenContent(admin);
    const visitorDifferences = findDifferences(visitorsBefore, await repliesTo(openToVisitors, visitors));
    const adminDifferences = findDifferences(adminBefore, await repliesTo(openToVisitors, { admin }));
    const changed = new Set(adminDifferences.map(({ endpoint }) => endpoint));

    expect(textOf(ownerDifferences), "to the owner of the organization").to.equal("");
    expect(textOf(memberDifferences), "to people with a role").to.equal("");
    expect(textOf(visitorDifferences), "to visitors").to.equal("");
    const uncovered = endpoints.filter((endpoint) => {
      const { name, returnsList } = endpoint;
      const isOpenToPeople = openToOwner.includes(endpoint) || openToMembers.includes(endpoint);
      const isInHiddenApp = hiddenAppReplies
        .get(name)!
        .some(({ succeeded, text }) => succeeded && HIDDEN_ROW.test(text));
      const isCovered = openToVisitors.includes(endpoint) ? changed.has(name) : isOpenToPeople && isInHiddenApp;
      return returnsList && !isCovered;
    });
    const names = uncovered.map(({ name }) => name).sort();
    const isSent = (name: string) => endpoints.some((endpoint) => endpoint.name === name);
    expect(names).to.deep.equal(Object.keys(WITHOUT_HIDDEN_ROWS).filter(isSent).sort());
    expect(all.map(({ name }) => name)).to.include.members(Object.keys(WITHOUT_HIDDEN_ROWS));
  });
});
