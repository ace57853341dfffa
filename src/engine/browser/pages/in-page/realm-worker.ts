/** Gives each run a realm of its own, in a worker whose own scope no author's code is in. Runs inside the browser. */
import type { LentPlatform } from "./lent-platform.js";
import type { Sent, TakeTexts } from "./page-texts.js";

// biome-ignore lint/suspicious/noExplicitAny: values of unknown make, from globals of which this side has no types
type Any = any;
declare const self: Any;

/**
 * As `harnessCore`: evaluated by its source text. Asked by null it makes a realm and says `r`: nothing of the last run goes on. Asked by
 * scripts it evaluates them there, ahead of a run that has them; says `n` where that is not good, and has a realm without them. Given a run
 * it passes on what that run's realm says, until it is asked again, and `f` before an answer that is to be this thread's last. What has been
 * made for a realm is held until the thread ends, so that an ended one is left with as little as can be.
 * @param realm the source text of a realm's harness
 * @param take what has the scripts of a run: their texts are the same from run to run, by which V8 finds what it has compiled of them
 * @param lent what realms are lent of this scope; before an answer then stands how often `fetch` was called
 */
export function realmWorker(realm: string, take: TakeTexts, lent: LentPlatform | null): void {
  const { ShadowRealm } = self;
  let next: Any = null;
  let loan: Any = null;
  let end = () => {};
  let count = 0;

  function makeRealm(): void {
    end();
    const own = lent?.forRun() ?? null;
    next = new ShadowRealm().evaluate(realm)(own?.lender ?? null, lent?.description ?? "");
    loan = own;
    end = () => void own?.end();
  }

  /** Evaluates scripts ahead. */
  function load(scripts: readonly Sent[], namesJson: string | null, navigatorJson: string): void {
    const own = count;
    const done = (isGood: boolean) => {
      if (own !== count) return;
      if (!isGood) makeRealm();
      self.postMessage(isGood ? "r" : "n");
    };
    end = next(done, null, "", namesJson, navigatorJson, ...take([], scripts));
  }

  function run([forget, scripts, ...values]: Any): void {
    const own = count;
    const lastLoan = loan;
    const tell = (text: string) => {
      if (own !== count) return;
      if (lastLoan === null || text[0] !== "a") return self.postMessage(text);
      if (lent!.isFull()) self.postMessage("f");
      const end = text.indexOf(" ");
      self.postMessage(`${text.slice(0, end)} ${lastLoan.end()}${text.slice(end)}`);
    };
    const drop = next(tell, ...values, ...take(forget, scripts));
    next = null;
    end = () => {
      lastLoan?.end();
      drop();
    };
  }

  self.onmessage = ({ data }: Any) => {
    count += 1;
    if (Array.isArray(data)) return run(data);
    makeRealm();
    if (data === null) self.postMessage("r");
    else load(data.scripts, data.namesJson, data.navigatorJson);
  };
}
