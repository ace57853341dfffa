/** Gives each run a realm of its own, in a worker whose own scope no author's code is in. Runs inside the browser. */
import type { LentPlatform } from "./lent-platform.js";
import type { TakeTexts } from "./page-texts.js";

// biome-ignore lint/suspicious/noExplicitAny: values of unknown make, from globals of which this side has no types
type Any = any;
declare const self: Any;

/**
 * As `harnessCore`: evaluated by its source text. Asked by null it makes a realm and says `r`: nothing of the last run goes on. Given a run
 * it passes on what that run's realm says, until it is asked again. What has been made for a realm is held until the thread ends, so that an
 * ended one is left with as little as can be.
 * @param realm the source text of a realm's harness
 * @param take what has the scripts of a run: their texts are the same from run to run, by which V8 finds what it has compiled of them
 * @param lent what realms are lent of this scope; before an answer then stands how often `fetch` was called
 */
export function realmWorker(realm: string, take: TakeTexts, lent: LentPlatform | null): void {
  const { ShadowRealm } = self;
  let next: Any = null;
  let nextLoan: Any = null;
  let end = () => {};
  let count = 0;

  self.onmessage = ({ data }: Any) => {
    count += 1;
    if (data === null) {
      end();
      nextLoan = lent?.forRun() ?? null;
      next = new ShadowRealm().evaluate(realm)(nextLoan?.lender ?? null, lent?.description ?? "");
      return self.postMessage("r");
    }
    const own = count;
    const loan = nextLoan;
    const tell = (text: string) => {
      if (own !== count) return;
      if (loan === null || text[0] !== "a") return self.postMessage(text);
      const end = text.indexOf(" ");
      self.postMessage(`${text.slice(0, end)} ${loan.end()}${text.slice(end)}`);
    };
    const [forget, scripts, ...values] = data;
    const run = next;
    next = null;
    const drop = run(tell, ...values, ...take(forget, scripts));
    end = () => {
      loan?.end();
      drop();
    };
  };
}
