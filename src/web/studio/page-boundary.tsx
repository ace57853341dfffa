/** A page that could not be loaded or drawn says so in its place; the bar and the other pages go on. */
import { Component, type ReactNode } from "react";

export class PageBoundary extends Component<{ children: ReactNode }, { fault: unknown }> {
  override state: { fault: unknown } = { fault: null };

  static getDerivedStateFromError(fault: unknown) {
    return { fault };
  }

  override render() {
    const { fault } = this.state;
    if (fault === null) return this.props.children;
    // A new release has other file names: the browser says the same of those that are gone as of a lost connection.
    const isLoading = fault instanceof TypeError && /import|fetch|load/i.test(fault.message);
    return (
      <div className="welcome" role="alert">
        <h2>{isLoading ? "This page could not be loaded" : "This page has failed"}</h2>
        <p>{isLoading ? "The connection is lost, or Studio has been renewed since it was opened." : String(fault)}</p>
        <button type="button" className="primary" onClick={() => location.reload()}>
          Load Studio again
        </button>
      </div>
    );
  }
}
