/** Lets a document see its window as it is shown, also while the host hides it. Runs inside the browser, before any other code does. */

// biome-ignore lint/suspicious/noExplicitAny: values of unknown make, from globals of which this side has no types
type Any = any;
declare const self: Any;

/** As `harnessCore`: evaluated by its source text. */
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
        // Others, such as those that are parsed of a text, have no window.
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
