/**
 * The one counter of the runs that this process performs at once: how many, how many of one app, and how many beside a run that waits
 * for them. Knows apps by their number, and no run.
 */

/** Beyond `ordinary`, for apps that have little or nothing running: what three apps can hold leaves room for a fourth. */
const FULLNESS = 4;
/** What one app may have once the ordinary places are taken, until they are taken three times over. */
const SHARE_WHEN_BUSY = 2;

/**
 * A place that is taken, until it is freed. A run that waits for another stands in its way, so that one goes in a place beside it: one
 * at a time, so that a tree of runs becomes a line, no longer than chains of causes may be. A place is free for others when all of its
 * line is.
 */
export interface Place {
  free(): void;
}

/** A place that is kept for a run that has not been found yet. */
export interface OpenPlace {
  /** How many runs its app may have, this one included. */
  readonly share: number;
  /** The app's it is now. */
  give(appId: number): Place;
  /** Nobody needed it. */
  free(): void;
}

export interface Places {
  /** A place for a run of the app, or null: none is free, or the app has its share. */
  take(appId: number): Place | null;
  /** Whether there will be one for a run of the app, should nobody need those that are kept open. */
  allows(appId: number): boolean;
  /** How many are free. */
  free(): number;
  /** How many of them an app may have at present. */
  share(): number;
  /** How many there are. */
  readonly total: number;
  /** A place for whoever's turn it is, or null: none is free. */
  open(): OpenPlace | null;
  /** A place for a run that the run in `place` waits for, or null: it has one already, or its app has too many. */
  beside(place: Place): Place | null;
  /** How many places each app has, those beside others not counted. */
  taken(): ReadonlyMap<number, number>;
  /** Whether an app has as many as it may, so that its queued runs wait while places are free. */
  somebodyHasShare(): boolean;
  /** Resolves when no place is taken. */
  empty(): Promise<void>;
}

interface Node extends Place {
  appId: number;
  /** The first of its line. */
  first: Node;
  above: Node | null;
  below: Node | null;
  ended: boolean;
}

/** Places beside others that one app has. */
interface Line {
  count: number;
  /** The first of the one line that may grow while the app has its share of such places: that one comes to its end, then another. */
  growing: Node | null;
}

/** @param ordinary runs at once while few apps run @param onFree called whenever somebody who waits may have a place now */
export function createPlaces(ordinary: number, onFree: () => void): Places {
  const total = ordinary * FULLNESS;
  const share = Math.max(1, ordinary - 1);
  const ofApp = new Map<number, number>();
  const lines = new Map<number, Line>();
  let whenEmpty: (() => void)[] = [];
  let taken = 0;
  let opened = 0;

  /** The fuller it is, the less one app may have: the last places are for apps that have none. */
  function shareOf(full: number): number {
    if (full < ordinary) return share;
    return full < total - ordinary ? Math.min(share, SHARE_WHEN_BUSY) : 1;
  }

  const shareNow = () => shareOf(taken);

  const countOf = (appId: number) => ofApp.get(appId) ?? 0;

  function giveBack(): void {
    taken -= 1;
    if (taken > 0) return;
    const emptied = whenEmpty;
    whenEmpty = [];
    for (const resolve of emptied) resolve();
  }

  function leave(node: Node): void {
    const { appId, above } = node;
    if (above === null) {
      if (countOf(appId) === 1) ofApp.delete(appId);
      else ofApp.set(appId, countOf(appId) - 1);
      giveBack();
      return;
    }
    above.below = null;
    const line = lines.get(appId)!;
    line.count -= 1;
    if (line.count < share || line.growing?.below === null) line.growing = null;
    if (line.count === 0) lines.delete(appId);
    if (above.ended) leave(above);
  }

  function node(appId: number, above: Node | null): Node {
    const one: Node = {
      appId,
      above,
      below: null,
      ended: false,
      get first(): Node {
        return above === null ? one : above.first;
      },
      free() {
        if (one.ended) return;
        one.ended = true;
        if (one.below === null) leave(one);
        onFree();
      },
    };
    return one;
  }

  function give(appId: number): Place {
    ofApp.set(appId, countOf(appId) + 1);
    return node(appId, null);
  }

  return {
    take(appId) {
      // A place that is open may become this app's.
      if (taken >= total || countOf(appId) + opened >= shareNow()) return null;
      taken += 1;
      return give(appId);
    },
    allows(appId) {
      const full = taken - opened;
      return full < total && countOf(appId) < shareOf(full);
    },
    open() {
      if (taken >= total) return null;
      const one = { share: shareNow() };
      taken += 1;
      opened += 1;
      return {
        ...one,
        give(appId) {
          opened -= 1;
          return give(appId);
        },
        free() {
          opened -= 1;
          giveBack();
        },
      };
    },
    total,
    free: () => total - taken,
    share: shareNow,
    beside(place) {
      const above = place as Node;
      if (above.ended || above.below !== null) return null;
      const line = lines.get(above.appId) ?? { count: 0, growing: null };
      if (line.count >= share) {
        line.growing ??= above.first;
        if (line.growing !== above.first) return null;
      }
      lines.set(above.appId, line);
      line.count += 1;
      above.below = node(above.appId, above);
      return above.below;
    },
    taken: () => ofApp,
    somebodyHasShare: () => [...ofApp.values()].some((count) => count >= shareNow()),
    async empty() {
      if (taken > 0) await new Promise<void>((resolve) => whenEmpty.push(resolve));
    },
  };
}
