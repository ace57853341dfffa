/** Makes a document report that its window is visible, although the service hides it. Runs before any other code. */
import type { Any } from "./any.js";

declare const self: Any;

/** Runs in the browser, which gets only the source text of this function. So it can use only globals and its own code. */
export function makeDocumentAlwaysVisible(): void {
  const scope = self;
  const { apply, defineProperty, getOwnPropertyDescriptor } = Reflect;
  const { prototype } = scope.Document;
  const { stopImmediatePropagation } = scope.Event.prototype;

  function overrideGetter(name: string, value: unknown): void {
    const descriptor: Any = getOwnPropertyDescriptor(prototype, name);
    if (descriptor === undefined) return;
    const { get } = {
      get(this: Any) {
        const actualValue = apply(descriptor.get, this, []);
        // Other documents, such as those that a DOMParser creates, have no window.
        return this === scope.document ? value : actualValue;
      },
    };
    defineProperty(prototype, name, { __proto__: null, ...descriptor, get });
  }

  for (const name of ["hidden", "webkitHidden"]) overrideGetter(name, false);
  for (const name of ["visibilityState", "webkitVisibilityState"]) overrideGetter(name, "visible");

  const stopEvent = (event: Any) => {
    if (event.isTrusted) apply(stopImmediatePropagation, event, []);
  };
  for (const type of ["visibilitychange", "webkitvisibilitychange"]) scope.addEventListener(type, stopEvent, true);
}
