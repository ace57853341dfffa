/**
 * React error boundary around a page. It shows an error in place of the page, so that the navigation stays usable. It renders the page again
 * when `resetKey` changes, for example when the person opens another item.
 */
import { Component, type ReactNode } from "react";
import { LoadError } from "./load-error.js";

interface PageBoundaryProps {
  resetKey?: string | null;
  children: ReactNode;
}

export class PageBoundary extends Component<PageBoundaryProps, { fault: unknown }> {
  override state: { fault: unknown } = { fault: null };

  static getDerivedStateFromError(fault: unknown) {
    return { fault };
  }

  override componentDidUpdate({ resetKey }: PageBoundaryProps) {
    if (resetKey !== this.props.resetKey && this.state.fault !== null) this.setState({ fault: null });
  }

  override render() {
    const { fault } = this.state;
    if (fault === null) return this.props.children;
    const isLoading = fault instanceof LoadError;
    return (
      <div className="welcome" role="alert">
        <h2>{isLoading ? "This page could not be loaded" : "This page has failed"}</h2>
        <p>{isLoading ? "The connection is lost, or Studio was updated since it was opened." : String(fault)}</p>
        <button type="button" className="primary" onClick={() => location.reload()}>
          Load Studio again
        </button>
      </div>
    );
  }
}
