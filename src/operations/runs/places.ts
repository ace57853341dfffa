/** The places of one runner: how many runs it performs at once, and that no app has them all. Knows no run. */

/** A place that is taken, until it is freed. */
export interface Place {
  /** Counts the place for that app. */
  give(appId: number): void;
  free(): void;
}

export interface Places {
  /** How many places an app may have at most: one stays for the others, so that long runs of one app do not keep them out. */
  readonly share: number;
  /** A place for the app at once, or null: none is free, somebody is in line, or the app has its share. */
  take(appId: number): Place | null;
  /** The next place that is free, in the order of asking. */
  next(): Promise<Place>;
  /** A free place that nobody is in line for, or null. */
  spare(): Place | null;
  /** A place beyond the number, for a run that one of the present runs waits for: without it both would wait for ever. */
  extra(appId: number): Place;
  /** How many are free. */
  free(): number;
  /** How many are taken beyond the number. */
  extras(): number;
  /** Whether some app has its share. */
  somebodyHasShare(): boolean;
  /** Resolves when no place is taken. */
  empty(): Promise<void>;
}

export function createPlaces(total: number): Places {
  const share = Math.max(1, total - 1);
  const ofApp = new Map<number, number>();
  const line: (() => void)[] = [];
  let taken = 0;
  let beyond = 0;
  let whenEmpty = () => {};

  const countOf = (appId: number) => ofApp.get(appId) ?? 0;

  function place(release: () => void): Place {
    let owner: number | null = null;
    return {
      give(appId) {
        owner = appId;
        ofApp.set(appId, countOf(appId) + 1);
      },
      free() {
        if (owner !== null) {
          if (countOf(owner) === 1) ofApp.delete(owner);
          else ofApp.set(owner, countOf(owner) - 1);
        }
        release();
        if (taken + beyond === 0) whenEmpty();
      },
    };
  }

  // A freed place goes to the first in line without being free in between.
  const ordinary = () =>
    place(() => {
      const first = line.shift();
      if (first) first();
      else taken -= 1;
    });

  function spare(): Place | null {
    if (taken >= total || line.length > 0) return null;
    taken += 1;
    return ordinary();
  }

  function given(appId: number, one: Place | null): Place | null {
    one?.give(appId);
    return one;
  }

  return {
    share,
    spare,
    take: (appId) => (countOf(appId) < share ? given(appId, spare()) : null),
    async next() {
      if (taken < total) taken += 1;
      else await new Promise<void>((resolve) => line.push(resolve));
      return ordinary();
    },
    extra(appId) {
      beyond += 1;
      const one = place(() => {
        beyond -= 1;
      });
      one.give(appId);
      return one;
    },
    free: () => total - taken,
    extras: () => beyond,
    somebodyHasShare: () => [...ofApp.values()].some((count) => count >= share),
    async empty() {
      if (taken + beyond > 0) await new Promise<void>((resolve) => (whenEmpty = resolve));
    },
  };
}
