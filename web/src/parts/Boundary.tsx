import { Component, type ReactNode } from 'react';
import { Page } from './Page';
import { ProblemAlert } from './ProblemAlert';

interface Props {
  children: ReactNode;
  /** Whether it stands for a whole page, which needs a title then. */
  page?: boolean;
}

/**
 * What cannot be drawn says so in its own place, and everything around it stays. What did not load, e.g. as the portal has been upgraded
 * since, is asked for again only when the page is loaded again.
 */
export class Boundary extends Component<Props, { broken: boolean; error?: unknown }> {
  override state: { broken: boolean; error?: unknown } = { broken: false };

  static getDerivedStateFromError(error: unknown) {
    return { broken: true, error };
  }

  override render() {
    if (!this.state.broken) return this.props.children;
    const said = <ProblemAlert title="This cannot be shown" error={this.state.error} again={() => window.location.reload()} />;
    return this.props.page ? <Page title="Something went wrong">{said}</Page> : said;
  }
}
