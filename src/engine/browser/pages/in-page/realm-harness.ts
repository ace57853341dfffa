/** Harness (script that executes a run) of a ShadowRealm. Removes all globals that the mode does not have, and calls `execute`. */

import type { CodeFromTextRestriction } from "./code-of-text.js";
import type { HarnessCore } from "./core.js";
import type { WorkerObjectHandle } from "./host-platform.js";
import type { IsolateMessage } from "./messages.js";
import type { InstallRealmPlatform } from "./realm-platform.js";
import type { RunServiceCalls } from "./service-calls.js";
import type { DefineStandIns } from "./stand-ins.js";

/** Sends a request to the service and returns the request's ID. `receivePart` receives each part of the response. */
type SendRequest = (
  receivePart: (head: string | null, text: string | null, last: boolean) => void,
  text: string,
) => number;

/** The browser evaluates this function's source text when it creates the realm. So it can use only globals and its own code. */
export function createRealmHarness(
  core: HarnessCore,
  restrictCodeOfText: CodeFromTextRestriction,
  defineStandIns: DefineStandIns,
  installPlatform: InstallRealmPlatform | null,
  calls: RunServiceCalls | null,
  serviceGlobal: string,
  globals: readonly string[],
): unknown {
  const { defineProperty } = Reflect;
  const { now } = Date;
  let send: (message: IsolateMessage) => void = () => {};
  const needsMore = () => send("needs-more");
  core.keepOnly(globals);
  core.installConsole((line) => send(`console ${line}`));
  // In a network isolate, the run may already have sent a request, so `import()` only throws, and the run is not repeated.
  restrictCodeOfText(installPlatform === null ? needsMore : () => {});

  async function run(payload: string, settings: string, scripts: readonly string[]): Promise<void> {
    const startedAt = now();
    const answer = await core.safe(core.evaluateAndCall(payload, settings, scripts));
    send(`answer ${now() - startedAt} ${answer}`);
  }

  /** Defines the global through which the client library sends requests to the service at the URL `base`. */
  function openService(base: string, sendRequest: SendRequest, settings: string): void {
    if (calls === null || base === "") return;
    const { call, connect, request, receive } = calls;
    connect((number, text) => sendRequest((head, part, last) => receive(number, head, part, last), text));
    defineProperty(globalThis, serviceGlobal, {
      value: { __proto__: null, base, call, request, settings },
      configurable: true,
    });
  }

  function start(
    receive: (message: unknown) => void,
    base: string,
    sendRequest: SendRequest,
    payload: string,
    settings: string,
    standInsJson: string | null,
    navigatorJson: string,
    ...scripts: string[]
  ): () => void {
    send = receive;
    if (standInsJson !== null) defineStandIns(standInsJson, navigatorJson, needsMore);
    openService(base, sendRequest, settings);
    void run(payload, settings, scripts);
    return () => core.removeRunGlobals(globals);
  }

  return (hostScope: WorkerObjectHandle | null, description: string) => {
    if (installPlatform !== null && hostScope !== null) installPlatform(hostScope, description);
    return start;
  };
}
