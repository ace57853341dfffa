/** Makes a document report its window as visible while the service hides it. Runs before any other code. */

// biome-ignore lint/suspicious/noExplicitAny: globals of the browser have no types here
type Any = any;
declare const self: Any;

/** Evaluated by its source text, as `harnessCore`. */
export function visibleAlways(): void {
  const scope = self;
  const { apply, defineProperty, getOwnPropertyDescriptor } = Reflect;
  const { prototype } = scope.Document;
  const { stopImmediatePropagation } = scope.Event.prototype;

  function standIn(name: string, value: unknown): void {
    const found: Any = getOwnPropertyDescriptor(prototype, name);
    if (found === undefined) return;
    const { get } = {
      get(this: Any) {
        const own = apply(found.get, this, []);
        // Other documents, such as parsed ones, have no window.
        return this === scope.document ? value : own;
      },
    };
    defineProperty(prototype, name, { __proto__: null, ...found, get });
  }

  for (const name of ["hidden", "webkitHidden"]) standIn(name, false);
  for (const name of ["visibilityState", "webkitVisibilityState"]) standIn(name, "visible");

  const keepBack = (event: Any) => {
    if (event.isTrusted) apply(stopImmediatePropagation, event, []);
  };
  for (const type of ["visibilitychange", "webkitvisibilitychange"]) scope.addEventListener(type, keepBack, true);
}
