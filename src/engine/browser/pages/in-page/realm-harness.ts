/** Runs the scripts of one run and then `execute` in a ShadowRealm. Removes all globals that the mode does not have. Runs before the action's code. */

import type { CodeOfText } from "./code-of-text.js";
import type { HarnessCore } from "./core.js";
import type { HostHandle } from "./host-platform.js";
import type { IsolateMessage } from "./messages.js";
import type { RealmPlatform } from "./realm-platform.js";
import type { RunCalls } from "./service-calls.js";
import type { StandInsOf } from "./stand-ins.js";

/** Sends a request to the service and returns its ID; `receivePart` receives each part of the response. */
type SendRequest = (
  receivePart: (head: string | null, text: string | null, last: boolean) => void,
  text: string,
) => number;

/**
 * Evaluated by its source text, as `harnessCore`, when the realm is created. Returns a function that receives the functions of the worker, if
 * the realm can use them, and returns a function that starts the run. That one returns a function that frees the run's globals. A run sends
 * messages of the type IsolateMessage. Only texts and functions cross the border of a realm. A realm has no timers, ports, events, shared memory
 * or finalizers of its own, so nothing in it is active after the run.
 */
export function realmHarness(
  core: HarnessCore,
  restrictCodeOfText: CodeOfText,
  defineStandIns: StandInsOf,
  installPlatform: RealmPlatform | null,
  calls: RunCalls | null,
  serviceGlobal: string,
  globals: readonly string[],
): unknown {
  const { defineProperty } = Reflect;
  const { now } = Date;
  let send: (message: IsolateMessage) => void = () => {};
  const needsMore = () => send("needs-more");
  core.keepOnly(globals);
  core.installConsole((line) => send(`console ${line}`));
  // A network isolate sends no needs-more: its run may have sent a request, and then it cannot be repeated.
  restrictCodeOfText(installPlatform === null ? needsMore : () => {});

  async function run(payload: string, settings: string, scripts: readonly string[]): Promise<void> {
    const startedAt = now();
    const answer = await core.safe(core.evaluateAndCall(payload, settings, scripts));
    send(`answer ${now() - startedAt} ${answer}`);
  }

  /** Defines the global by which the library in the run sends requests to the service at this address. */
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

  return (hostScope: HostHandle | null, description: string) => {
    if (installPlatform !== null && hostScope !== null) installPlatform(hostScope, description);
    return start;
  };
}
