/** Runs the scripts of one run and then `execute` in a ShadowRealm. Removes all globals that the mode does not have. Runs before the action's code. */
import type { BorrowedPlatform } from "./borrowed-platform.js";
import type { CodeOfText } from "./code-of-text.js";
import type { HarnessCore } from "./core.js";
import type { Stand } from "./lent-platform.js";
import type { IsolateMessage } from "./messages.js";
import type { RunCalls } from "./service-calls.js";
import type { StandInsOf } from "./stand-ins.js";

/** Sends a request to the service; `hear` receives each part of the answer. */
type Ask = (hear: (head: string | null, text: string | null, last: boolean) => void, text: string) => void;

/**
 * Evaluated by its source text, as `harnessCore`, when the realm is created. Returns a function that receives the functions of the worker, if
 * the realm can use them, and returns a function that starts the run. That one returns a function that frees the run's globals. A run sends
 * messages of the type IsolateMessage. Only texts and functions cross the border of a realm. A realm has no timers, ports, events, shared memory
 * or finalizers of its own, so nothing in it is active after the run.
 */
export function realmHarness(
  core: HarnessCore,
  boundCodeOfText: CodeOfText,
  standIn: StandInsOf,
  borrow: BorrowedPlatform | null,
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
  // A run that has made a request cannot be repeated.
  boundCodeOfText(borrow === null ? needsMore : () => {});

  async function run(payload: string, settings: string, scripts: readonly string[]): Promise<void> {
    const begun = now();
    const answer = await core.safe(core.evaluateAndCall(payload, settings, scripts));
    send(`answer ${now() - begun} ${answer}`);
  }

  /** Defines the global by which the run's library sends requests to the service of that address. */
  function openService(base: string, ask: Ask, settings: string): void {
    if (calls === null || base === "") return;
    const { call, open, request, take } = calls;
    open((own, text) => ask((head, part, last) => take(own, head, part, last), text));
    defineProperty(globalThis, serviceGlobal, {
      value: { __proto__: null, base, call, request, settings },
      configurable: true,
    });
  }

  function start(
    receive: (message: unknown) => void,
    base: string,
    ask: Ask,
    payload: string,
    settings: string,
    standInsJson: string | null,
    navigatorJson: string,
    ...scripts: string[]
  ): () => void {
    send = receive;
    if (standInsJson !== null) standIn(standInsJson, navigatorJson, needsMore);
    openService(base, ask, settings);
    void run(payload, settings, scripts);
    return () => core.drop(globals);
  }

  return (lender: Stand | null, description: string) => {
    if (borrow !== null && lender !== null) borrow(lender, description);
    return start;
  };
}
