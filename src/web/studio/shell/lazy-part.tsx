/** Creates components for parts of a page whose code is in a file of its own, such as a chart. */
import { Component, type ComponentType, lazy, type ReactNode, Suspense } from "react";
import { importOrThrowLoadError, LoadError } from "./load-error.js";

/**
 * Returns a component that loads its code when it is first shown. If the code cannot be loaded, an error text with a button that tries again
 * takes the place of this part, so that the rest of the page stays usable.
 * @param loading shown until the code is loaded
 */
export function createLazyPart<Props extends object>(
  loadComponent: () => Promise<ComponentType<Props>>,
  loading: ReactNode,
): ComponentType<Props> {
  // React stores the error of a lazy component. So each attempt needs a new lazy component.
  const createAttempt = (): ComponentType<Props> =>
    lazy(async () => ({ default: await importOrThrowLoadError(loadComponent()) }));
  let Part = createAttempt();

  return class LazyPart extends Component<Props, { fault: unknown }> {
    override state: { fault: unknown } = { fault: null };

    static getDerivedStateFromError(fault: unknown) {
      return { fault };
    }

    private tryAgain = () => {
      Part = createAttempt();
      this.setState({ fault: null });
    };

    override render() {
      const { fault } = this.state;
      if (fault === null) {
        return (
          <Suspense fallback={loading}>
            <Part {...this.props} />
          </Suspense>
        );
      }
      // The page's boundary shows an error in the part's own code.
      if (!(fault instanceof LoadError)) throw fault;
      return (
        <p className="fault" role="alert">
          This part of the page could not be loaded.{" "}
          <button type="button" onClick={this.tryAgain}>
            Try again
          </button>
        </p>
      );
    }
  };
}
