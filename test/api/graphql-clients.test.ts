/**
 * Tests GraphQL clients with the configuration of their documentation: queries by GET and POST, errors with their message, subscriptions.
 */

import { setTimeout as delay } from "node:timers/promises";
import { ApolloClient, CombinedGraphQLErrors, gql, HttpLink, InMemoryCache } from "@apollo/client/core";
import { GraphQLWsLink } from "@apollo/client/link/subscriptions";
import { Client, cacheExchange, fetchExchange, subscriptionExchange } from "@urql/core";
import { expect } from "chai";
import { createClient } from "graphql-ws";
import WebSocket from "ws";
import { startCuttingProxy } from "../harness/cutting-proxy.js";
import { longTest } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";

const ACTION = "query Action($id: Int!) { action(appId: 1, id: $id) { id name } }";
const CODE = "async function execute() { return 1; }";
const LOG_SUBSCRIPTION = "subscription { actionLogAdded(appId: 1) { type } }";

describe("GraphQL clients in their released form", () => {
  let service: TestService;
  let id: number;

  before(async () => {
    service = await startTestService({ ROLES: "api,runner", RUNNER_CONCURRENCY: "1" });
    const body = { name: "first", code: CODE, active: true, triggers: [{ trigger: "manual" }] };
    id = (await service.rest("POST", "/v3/apps/1/actions", { body })).body.action.id;
  });
  const stopClients: (() => Promise<void>)[] = [];
  after(async () => {
    for (const stop of stopClients.reverse()) await stop();
    await service.stop();
  });

  const headers = () => ({ authorization: `Bearer ${service.tokens.editor}` });
  const url = () => `${service.url}/graphql`;
  const socket = () =>
    createClient({
      url: url().replace("http", "ws"),
      webSocketImpl: WebSocket,
      connectionParams: { authToken: service.tokens.editor },
    });
  const run = () => service.rest("POST", "/v3/apps/1/actions/first/runWithResult", { body: {} });

  /** Calls `follow` to subscribe, and starts runs until the subscriber receives a message. Returns the type of the first message. */
  async function firstMessageType(follow: (onType: (type: string) => void) => void): Promise<string> {
    let found: string | null = null;
    follow((type) => {
      found ??= type;
    });
    while (found === null) await run();
    return found;
  }

  describe("Apollo Client 4", () => {
    const apollo = (useGETForQueries: boolean) =>
      new ApolloClient({
        link: new HttpLink({ uri: url(), headers: headers(), useGETForQueries }),
        cache: new InMemoryCache(),
      });

    for (const [method, isGet] of [
      ["POST", false],
      ["GET", true],
    ] as const) {
      it(`queries by ${method} with variables, and shows an error with its message and status`, async () => {
        const client = apollo(isGet);
        const { data } = await client.query<{ action: { name: string } }>({ query: gql(ACTION), variables: { id } });
        expect(data?.action.name).to.equal("first");
        for (const [query, status] of [
          [ACTION, "ACTION_NOT_FOUND"],
          ["query Wrong($id: Int!) { nothing(id: $id) }", "REQUEST_INVALID"],
        ] as const) {
          const error = await client.query({ query: gql(query), variables: { id: 999 } }).then(
            () => null,
            (thrown: unknown) => thrown,
          );
          if (!CombinedGraphQLErrors.is(error)) throw new Error(`not GraphQL's errors: ${error}`);
          expect(error.errors[0]!.message).to.not.equal("");
          expect(error.errors[0]!.extensions?.["status"]).to.equal(status);
        }
        client.stop();
      });
    }

    it("follows a subscription over graphql-ws", async () => {
      const transport = socket();
      const client = new ApolloClient({ link: new GraphQLWsLink(transport), cache: new InMemoryCache() });
      const type = await firstMessageType((onType) =>
        client
          .subscribe<{ actionLogAdded: { type: string } }>({ query: gql(LOG_SUBSCRIPTION) })
          .subscribe(({ data }) => data && onType(data.actionLogAdded.type)),
      );
      expect(type).to.equal("app.task.completed");
      client.stop();
      await transport.dispose();
    });
  });

  describe("urql", () => {
    const urql = (preferGetMethod: boolean) =>
      new Client({
        url: url(),
        exchanges: [cacheExchange, fetchExchange],
        fetchOptions: () => ({ headers: headers() }),
        preferGetMethod,
      });

    for (const [method, isGet] of [
      ["POST", false],
      ["GET", true],
    ] as const) {
      it(`queries by ${method} with variables, and shows an error with its message and status`, async () => {
        const client = urql(isGet);
        const { data } = await client.query(ACTION, { id }).toPromise();
        expect(data.action.name).to.equal("first");
        for (const [query, status] of [
          [ACTION, "ACTION_NOT_FOUND"],
          ["query Wrong($id: Int!) { nothing(id: $id) }", "REQUEST_INVALID"],
        ] as const) {
          const { error } = await client.query(query, { id: 999 }).toPromise();
          expect(error?.networkError).to.equal(undefined);
          expect(error?.graphQLErrors[0]?.message).to.be.a("string").and.not.equal("");
          expect(error?.graphQLErrors[0]?.extensions["status"]).to.equal(status);
        }
      });
    }

    it("follows a subscription over graphql-ws", async () => {
      const transport = socket();
      const client = new Client({
        url: url(),
        preferGetMethod: false,
        exchanges: [
          subscriptionExchange({
            forwardSubscription: ({ query = "", variables }) => ({
              subscribe: (sink) => ({
                unsubscribe: transport.subscribe({ query, variables: variables ?? {} }, sink as never),
              }),
            }),
          }),
        ],
      });
      const type = await firstMessageType((onType) =>
        client.subscription(LOG_SUBSCRIPTION, {}).subscribe(({ data }) => data && onType(data.actionLogAdded.type)),
      );
      expect(type).to.equal("app.task.completed");
      await transport.dispose();
    });
  });

  longTest("graphql-ws subscribes again by itself after its connection was cut", async () => {
    const sockets: WebSocket[] = [];
    const client = createClient({
      url: url().replace("http", "ws"),
      webSocketImpl: class extends WebSocket {
        constructor(address: string, protocols: string[]) {
          super(address, protocols);
          sockets.push(this);
        }
      },
      connectionParams: { authToken: service.tokens.editor },
    });
    const types: string[] = [];
    client.subscribe<{ actionLogAdded: { type: string } }>(
      { query: LOG_SUBSCRIPTION },
      { next: ({ data }) => types.push(data!.actionLogAdded.type), error: () => undefined, complete: () => undefined },
    );
    while (types.length === 0) await run();
    sockets[0]!.terminate();
    while (sockets.length < 2) await run();
    const before = types.length;
    while (types.length === before) await run();
    expect(sockets.length).to.equal(2);
    await client.dispose();
  });

  longTest(
    "graphql-ws behind a proxy that cuts connections misses no message of a subscription that resumes",
    async () => {
      const base = "/v1/apps/1";
      const { dataSource } = (await service.rest("POST", `${base}/data-sources`, { body: { name: "cut" } })).body;
      const proxy = await startCuttingProxy(service.url);
      stopClients.push(() => proxy.stop());
      const client = createClient({
        url: new URL("/graphql", proxy.url.replace("http", "ws")).href,
        webSocketImpl: WebSocket,
        connectionParams: { authToken: service.tokens.editor },
        ...{ retryAttempts: Number.POSITIVE_INFINITY, shouldRetry: () => true, retryWait: () => delay(20) },
      });
      stopClients.push(async () => client.dispose());
      const failures: unknown[] = [];
      /** Subscribes. `take` stores each event's position in the variables, which the client sends again after a reconnect. */
      function follow<Data>(query: string, variables: Record<string, unknown>, take: (data: Data) => void): void {
        client.subscribe<{ event: Data }>(
          { query, variables },
          {
            next: ({ data }) => data && take(data.event),
            error: (error) => failures.push(error),
            complete: () => undefined,
          },
        );
      }
      const received = { logs: [] as number[], entries: [] as number[], notifications: [] as number[] };
      let positions = 0;
      const [logs, entries, notes] = [{ after: 0 }, { since: null as string | null }, { after: 0 }];
      follow<{ id: number }>(
        "subscription ($after: Int) { event: actionLogAdded(appId: 1, after: $after) { id } }",
        logs,
        ({ id }) => {
          logs.after = id;
          received.logs.push(id);
        },
      );
      follow<{ position: string; reset: boolean; inserted: { id: number }[] }>(
        `subscription ($since: String) { event: dataSourceChanged(appId: 1, dataSourceId: "${dataSource.id}", since: $since) {
        position reset inserted { id } } }`,
        entries,
        ({ position, inserted }) => {
          entries.since = position;
          positions += 1;
          received.entries.push(...inserted.map(({ id }) => id));
        },
      );
      follow<{ id: number; cursor: number }>(
        "subscription ($after: Int) { event: notificationAdded(appId: 1, after: $after) { id cursor } }",
        notes,
        ({ id, cursor }) => {
          notes.after = cursor;
          received.notifications.push(id);
        },
      );
      await until(async () => positions > 0);
      proxy.cut();
      const written = { entries: [] as number[], notifications: [] as number[] };
      for (let turn = 0; turn < 40; turn += 1) {
        await run();
        const entry = await service.rest("POST", `${base}/data-sources/${dataSource.id}/entries`, { body: { turn } });
        written.entries.push(entry.body.id);
        const body = { status: "published", data: { title: `${turn}` } };
        written.notifications.push((await service.rest("POST", `${base}/notifications`, { body })).body.id);
      }
      expect(proxy.cuts()).to.be.above(0);
      proxy.restore();
      const { logs: stored } = (await service.rest("POST", "/v3/apps/1/actions/logs", { body: { limit: 1_000 } })).body;
      const ids = (stored as { id: number }[]).map(({ id }) => id).reverse();
      await until(async () => received.logs.at(-1) === ids.at(-1) && received.notifications.length >= 40);
      await until(async () => received.entries.length >= 40);
      expect(failures).to.deep.equal([]);
      expect(received).to.deep.equal({ logs: ids, ...written });
    },
  );
});
