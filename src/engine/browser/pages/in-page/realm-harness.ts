/**
 * Runs scripts and then `execute` in a realm, whose globals it first cuts down to the ones given. Runs inside the browser, before the
 * author's code does.
 */
import type { BorrowedPlatform } from "./borrowed-platform.js";
import type { CodeOfText } from "./code-of-text.js";
import type { HarnessCore } from "./core.js";
import type { Stand } from "./lent-platform.js";
import type { IsolateMessage } from "./messages.js";
import type { RunCalls } from "./service-calls.js";
import type { StandInsOf } from "./stand-ins.js";

/** Sends a call of the service; each part of its answer is heard. */
type Ask = (hear: (head: string | null, text: string | null, last: boolean) => void, text: string) => void;

/**
 * As `harnessCore`: evaluated by its source text, ahead of the run. Answers what takes the loan of the worker's platform, where there is one,
 * and answers what begins the run and answers what ends it. A run sends messages of the type IsolateMessage. Only texts and such functions cross the realm's border. Nothing there
 * could act when the run is over: no timer but the worker's, no port, no event, no memory that threads share, no word of what was collected.
 */
export function realmHarness(
  core: HarnessCore,
  boundCodeOfText: CodeOfText,
  standIn: StandInsOf,
  borrow: BorrowedPlatform | null,
  calls: RunCalls | null,
  serviceGlobal: string,
  globals: readonly string[],
  loadMaxMs: number,
): unknown {
  const { defineProperty } = Reflect;
  const { now } = Date;
  /** Whether what was evaluated ahead, if anything was, has kept still since. */
  let isGood = true;
  let tell: (message: IsolateMessage) => void = () => {};
  const needsMore = () => tell("needs-more");
  core.keepOnly(globals);
  core.installConsole((line) => tell(`console ${line}`));
  // What has asked for something cannot begin anew.
  boundCodeOfText(borrow === null ? needsMore : () => {});

  async function run(payload: string, settings: string, scripts: readonly string[]): Promise<void> {
    const begun = now();
    const answer = await core.safe(core.evaluateAndCall(payload, settings, scripts));
    tell(`answer ${now() - begun} ${answer}`);
  }

  /** Ahead of the run that has them: good where they said nothing, needed nothing more, failed at nothing and were quick. */
  async function load(done: (isGood: boolean) => void, scripts: readonly string[]): Promise<void> {
    const begun = now();
    tell = () => {
      isGood = false;
    };
    const failure = await core.safe(core.load(scripts));
    done(isGood && failure === null && now() - begun <= loadMaxMs);
  }

  /** Gives the run's library its way to the service of that address. */
  function openService(base: string, ask: Ask, settings: string): void {
    if (calls === null || base === "") return;
    const { call, open, request, take } = calls;
    open((own, text) => ask((head, part, last) => take(own, head, part, last), text));
    defineProperty(globalThis, serviceGlobal, {
      value: { __proto__: null, base, call, request, settings },
      configurable: true,
    });
  }

  /** `payload` null: the scripts are evaluated ahead, and `hear` told whether that is good. */
  function begin(
    hear: (said: unknown) => void,
    base: string,
    ask: Ask,
    payload: string | null,
    settings: string,
    namesJson: string | null,
    navigatorJson: string,
    ...scripts: string[]
  ): () => void {
    if (namesJson !== null) standIn(namesJson, navigatorJson, needsMore);
    if (payload === null) void load(hear, scripts);
    else {
      tell = hear;
      if (!isGood) needsMore();
      openService(base, ask, settings);
      void run(payload, settings, scripts);
    }
    return () => core.drop(globals);
  }

  return (lender: Stand | null, description: string) => {
    if (borrow !== null && lender !== null) borrow(lender, description);
    return begin;
  };
}
