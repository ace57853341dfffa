/**
 * Checks that rows that access rules hide affect no response of a list: neither rows nor totals, cursors, `hasMore` or errors. The test
 * sends each request twice, with the hidden rows and after their removal, and compares the responses.
 */
import { expect } from "chai";
import { sampleOf } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { mediaOf } from "../media/support.js";

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
const ALL = [{ type: ["read"], allow: "all" }];

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

  /** Sends each request as a visitor and without a credential, before and after it calls `remove`. Expects equal responses. */
  async function expectSameWithout(requests: readonly Request[], remove: () => Promise<void>): Promise<void> {
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

  it("of media", async () => {
    const editor = mediaOf(service);
    const open = await editor.folder("open");
    await editor.rest("PUT", `/folders/${open}/accessRules`, ALL);
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
    const places = [
      `folderId=${open}`,
      `folderId=${inner}`,
      "",
      "name=hidden",
      "name=shown",
      "name=n",
      "name=a%20hidden",
    ];
    const requests = PAGES.flatMap(({ limit, offset }) => [
      ...places.map((place) => `/media?${place}&limit=${limit}&offset=${offset}`),
      `/media/files?limit=${limit}&offset=${offset}`,
    ]).map((path) => ({ name: path, send: (as: string | null) => rest(as, "GET", app + path) }));
    const text = `query ($app: Int!, $name: String, $limit: Int) { mediaFolder(appId: $app, name: $name, limit: $limit) {
      files { name } folders { name } pagination { total hasMore } } }`;
    const graphql = [0, 1, 10].map((limit) => ({
      name: `graphql ${limit}`,
      send: (as: string | null) => service.graphql(text, { app: service.appId, name: "hidden", limit }, { as }),
    }));
    await expectSameWithout([...requests, ...graphql], async () => {
      for (const id of files) await editor.rest("DELETE", `/files/${id}`);
      for (const id of folders) await editor.rest("DELETE", `/folders/${id}`);
    });
    const [, listed] = (await rest(null, "GET", `${app}/media?folderId=${open}&limit=1`)) as [
      number,
      { pagination: object },
    ];
    expect(listed.pagination).to.deep.equal({ total: 2, hasMore: true });
  });

  it("of data sources", async () => {
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
      ...wheres.map((one) => ({ where: one, ...page, includePagination: true })),
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
    await expectSameWithout([...requests, ...reads], async () => {
      for (const id of hidden) await service.rest("DELETE", `${base}/Rows/entries/${id}`);
    });
  });

  it("of notifications", async () => {
    const ids: number[] = [];
    for (const [at, scope] of [{ email: "nobody@example.com" }, undefined, { email: "x" }, undefined].entries()) {
      const body = { status: "published", data: { title: `t${at}` }, ...(scope && { scope }) };
      const { body: made } = await service.rest("POST", `${app}/notifications`, { body });
      if (scope) ids.push(made.id ?? made.notification.id);
    }
    const paths = [
      ...PAGES.map(({ limit, offset }) => `/notifications?limit=${limit}&offset=${offset}`),
      "/notifications/unread",
    ];
    const requests = paths.map((path) => ({ name: path, send: (as: string | null) => rest(as, "GET", app + path) }));
    await expectSameWithout(requests, async () => {
      for (const id of ids) await service.rest("DELETE", `${app}/notifications/${id}`);
    });
  });
});
