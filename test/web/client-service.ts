/** Test server of the client library: serves pages, returns the responses that a test has set, and records requests. */
import type { AddressInfo } from "node:net";
import Fastify, { type FastifyInstance, type FastifyRequest } from "fastify";
import { buildDebugPage } from "../../src/api/debug-page.js";
import { registerWebAssets } from "../../src/api/web-assets.js";
import { compileActionScript } from "../../src/rules/compile-script.js";
import type { PageEnvWithSession } from "../../src/rules/env-script.js";
import { createFeed } from "./client-feed.js";

export interface ReceivedRequest {
  method: string;
  path: string;
  body: unknown;
  headers: FastifyRequest["headers"];
}

export interface ScriptedAnswer {
  status?: number;
  body?: unknown;
  headers?: Record<string, string>;
  /** If set, the server closes the connection before it has sent the whole response. */
  cut?: "before the headers" | "after the headers";
}

/** Strict content security policy of the page, under which the library must work. */
const pagePolicy = (scripts: string) => `default-src 'none'; img-src data:; connect-src *; script-src ${scripts}`;

/** Handles the routes that this server does not define: records each request, and returns the test's response, by default 200 with {}. */
function createRequestRecorder(app: FastifyInstance) {
  const received: ReceivedRequest[] = [];
  const answers = new Map<string, ScriptedAnswer>();
  let nextArrival = Promise.withResolvers<void>();
  app.all("/*", (request, reply) => {
    const path = request.url;
    received.push({ method: request.method, path, body: request.body ?? null, headers: request.headers });
    nextArrival.resolve();
    nextArrival = Promise.withResolvers();
    const { status = 200, body = {}, headers = {}, cut } = answers.get(`${request.method} ${path}`) ?? {};
    if (cut !== undefined) {
      reply.hijack();
      const head = { "content-type": "application/json", "content-length": 1000, "access-control-allow-origin": "*" };
      if (cut === "after the headers") reply.raw.writeHead(status, head).flushHeaders();
      return reply.raw.socket!.end();
    }
    return reply.code(status).headers(headers).send(body);
  });

  async function waitForRequests(path: string, count = 1): Promise<ReceivedRequest[]> {
    for (;;) {
      const found = received.filter((request) => request.path === path);
      if (found.length >= count) return found;
      await nextArrival.promise;
    }
  }
  return { received, answers, requests: waitForRequests };
}

interface PageRoute {
  /** `with` lists the scripts to load, separated by commas. `policy` lists the allowed sources of scripts. */
  Querystring: { with?: string; policy?: string; nonce?: string };
}

interface CompileRoute {
  Params: { id: string };
  Querystring: Record<string, string>;
}

export async function startClientService() {
  const app = Fastify({ forceCloseConnections: true });
  const feed = createFeed(app.server);
  registerWebAssets(app);
  const page = {
    env: {} as Record<string, unknown>,
    dependencyLoads: 0,
    tampered: false,
    compileHeaders: {} as FastifyRequest["headers"],
  };

  app.get<PageRoute>("/page", ({ query }, reply) => {
    const nonce = query.nonce ? ` nonce="${query.nonce}"` : "";
    const scriptElement = (src: string) =>
      `<script${nonce}${src.endsWith(".mjs") ? ' type="module"' : ""} src="${src}"></script>`;
    const scripts = ["/env.js", ...(query.with ?? "/client/svc.js").split(",")].map(scriptElement).join("");
    const html = `<!doctype html><title>Shop</title><link rel="icon" href="data:,">${scripts}`;
    reply.header("content-security-policy", pagePolicy(query.policy ?? "'self'"));
    return reply.type("text/html").send(html);
  });
  const serveScript = (path: string, source: () => string) =>
    app.get(path, (_request, reply) => reply.type("text/javascript").send(source()));
  serveScript("/env.js", () => `window.ENV = ${JSON.stringify(page.env)};`);
  // The service sends this header too, so that pages with an opaque origin can load stored scripts.
  app.get("/dependency.js", (_request, reply) =>
    reply
      .headers({ "content-type": "text/javascript", "access-control-allow-origin": "*" })
      .send(`window.dependencyValue = ${++page.dependencyLoads};`),
  );
  app.get<CompileRoute>("/v3/apps/1/actions/:id/compile", (request, reply) => {
    const action = feed.actions.get(Number(request.params.id));
    if (action && "html" in request.query) {
      const { html, headers } = buildDebugPage({
        action: { assets: [], ...action, script: compileActionScript(action) },
        env: { ...(page.env as unknown as PageEnvWithSession), token: "of-the-page" },
        base: "",
      });
      return reply.headers(headers).send(html);
    }
    page.compileHeaders = request.headers;
    const source = action ? compileActionScript(action) : "";
    return reply.type("text/javascript").send(page.tampered ? `${source};` : source);
  });
  const recorder = createRequestRecorder(app);
  await app.listen({ port: 0, host: "127.0.0.1" });

  return {
    ...recorder,
    feed,
    page,
    origin: `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`,
    reset() {
      recorder.received.length = 0;
      recorder.answers.clear();
      feed.actions.clear();
      feed.connectionParams.length = 0;
      feed.state.rejectionStatus = null;
      Object.assign(page, { env: { appId: 1 }, dependencyLoads: 0, tampered: false });
    },
    async close() {
      feed.cut();
      await app.close();
    },
  };
}

export type ClientService = Awaited<ReturnType<typeof startClientService>>;
